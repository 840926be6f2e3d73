package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

var orders = []check{
	{"an order comes back as it was stored, in each of its states", func(t *testing.T, s Opened) {
		for name, want := range statesOf(t) {
			do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(want)) })
			got := orderIn(t, s.Beside, want.ID)
			assert.Positive(t, got.Version, name)
			got.Version = want.Version
			assert.Equal(t, want, got, name)
		}
	}},
	{"a saved order comes back as it was saved", func(t *testing.T, s Opened) {
		for name, want := range statesOf(t) {
			placed := want
			placed.Status, placed.Attempt, placed.PayingKey = order.Placed, payment.Attempt{}, ""
			placed.PaymentID, placed.ChargeID, placed.PaidAt = "", "", time.Time{}
			placed.CancelledAt, placed.CancelReason = time.Time{}, ""
			do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(placed)) })
			want.Version = orderIn(t, s.Work, want.ID).Version
			do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Save(t.Context(), order.Rehydrate(want)) })

			got := orderIn(t, s.Beside, want.ID)
			assert.Greater(t, got.Version, want.Version, name)
			got.Version = want.Version
			assert.Equal(t, want, got, name)
		}
	}},
	{"what a caller does to his copy changes nothing that is stored", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		copied := orderIn(t, s.Work, o.State().ID)
		copied.Lines[0].Name = "coffee"
		do(t, s.Work, func(tx port.Tx) error {
			o, err := tx.Orders().Lock(t.Context(), copied.ID, alice)
			require.NoError(t, err)
			_, err = o.Cancel("never saved", tx.Now())
			return err
		})
		got := orderIn(t, s.Beside, copied.ID)
		assert.Equal(t, "煎茶", got.Lines[0].Name)
		assert.Equal(t, order.Placed, got.Status)
	}},
	{"a stranger finds no order, and neither does anyone an unknown one", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		for _, c := range []struct {
			id       order.ID
			customer string
		}{
			{o.State().ID, "mallory"},
			{o.State().ID, "Alice"},
			{o.State().ID, "alice "},
			{o.State().ID, ""},
			{order.NewID(), alice},
		} {
			do(t, s.Work, func(tx port.Tx) error {
				_, err := tx.Orders().Find(t.Context(), c.id, c.customer)
				require.ErrorIs(t, err, order.ErrNotFound)
				_, err = tx.Orders().Lock(t.Context(), c.id, c.customer)
				require.ErrorIs(t, err, order.ErrNotFound)
				_, err = tx.Orders().LockIfOpen(t.Context(), c.id, c.customer, "k")
				require.ErrorIs(t, err, order.ErrNotFound)
				return nil
			})
		}
	}},
	{"every order is answered to who asks for it if it is open", func(t *testing.T, s Opened) {
		for name, want := range statesOf(t) {
			do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(want)) })
			for _, key := range []string{"", want.PayingKey, "another"} {
				do(t, s.Work, func(tx port.Tx) error {
					got, err := tx.Orders().LockIfOpen(t.Context(), want.ID, alice, key)
					require.NoError(t, err, name)
					assert.Equal(t, want.Status, got.State().Status)
					return nil
				})
			}
		}
	}},
	{"an order that was changed meanwhile is not overwritten", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		stale := locked(t, s.Work, o)
		cancelled(t, s.Beside, o)
		_, err := stale.Cancel("too late", time.Now())
		require.NoError(t, err)
		err = s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error { return tx.Orders().Save(t.Context(), stale) })
		require.ErrorIs(t, err, port.ErrUnavailable)
		assert.Equal(t, "changed my mind", orderIn(t, s.Beside, o.State().ID).CancelReason)
	}},
	{"an order id, a payment id and a charge id are there once", func(t *testing.T, s Opened) {
		paid := paidOrder(t)
		do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(paid)) })

		samePayment, sameCharge := paidOrder(t), paidOrder(t)
		samePayment.PaymentID, sameCharge.ChargeID = paid.PaymentID, paid.ChargeID
		for name, twin := range map[string]order.State{
			"order id": paid, "payment id": samePayment, "charge id": sameCharge,
		} {
			err := s.Beside.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				return tx.Orders().Add(t.Context(), order.Rehydrate(twin))
			})
			require.Error(t, err, name)
			require.NotErrorIs(t, err, port.ErrCommitUnknown, name)
		}
		assert.Equal(t, paid.ChargeID, orderIn(t, s.Work, paid.ID).ChargeID)
	}},
	{"an order that would be paid by another one's charge is told so, and stays as it is", func(t *testing.T, s Opened) {
		taken := paidOrder(t)
		do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(taken)) })
		o := added(t, s.Work)
		begun(t, s.Work, o, "k")
		err := s.Beside.Do(t.Context(), port.Fully, changing(t, o, func(o *order.Order, now time.Time) error {
			return o.ConfirmPayment(1, payment.Charge{ID: taken.ChargeID, Money: o.State().Total}, now)
		}))
		require.ErrorIs(t, err, order.ErrChargeTaken)
		assert.Equal(t, order.PaymentPending, orderIn(t, s.Work, o.State().ID).Status)
	}},
	{"PAID and a payment go together", func(t *testing.T, s Opened) {
		withoutPayment, withoutCharge, withoutTime := paidOrder(t), paidOrder(t), paidOrder(t)
		withoutPayment.PaymentID, withoutCharge.ChargeID, withoutTime.PaidAt = "", "", time.Time{}
		notPaid := paidOrder(t)
		notPaid.Status = order.Placed
		for name, broken := range map[string]order.State{
			"no payment id": withoutPayment, "no charge id": withoutCharge, "no time": withoutTime,
			"a payment, but PLACED": notPaid,
		} {
			require.Error(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				return tx.Orders().Add(t.Context(), order.Rehydrate(broken))
			}), name)
		}
	}},
}

// tea is a new order of alice's over 1000 yen.
func tea(t *testing.T) *order.Order {
	t.Helper()
	cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}})
	require.NoError(t, err)
	return order.Place(alice, cart, instant(0))
}

// added is a stored order over tea.
func added(t *testing.T, w port.UnitOfWork) *order.Order {
	t.Helper()
	o := tea(t)
	do(t, w, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), o) })
	return o
}

// locked is the order as a transaction that has ended since had it.
func locked(t *testing.T, w port.UnitOfWork, o *order.Order) (found *order.Order) {
	t.Helper()
	do(t, w, func(tx port.Tx) (err error) {
		found, err = tx.Orders().Lock(t.Context(), o.State().ID, alice)
		return err
	})
	return found
}

// changing applies a verb to the stored order.
func changing(t *testing.T, o *order.Order, verb func(o *order.Order, now time.Time) error) func(tx port.Tx) error {
	return func(tx port.Tx) error {
		stored, err := tx.Orders().Lock(t.Context(), o.State().ID, alice)
		if err != nil {
			return err
		}
		if err := verb(stored, tx.Now()); err != nil {
			return err
		}
		return tx.Orders().Save(t.Context(), stored)
	}
}

func cancelled(t *testing.T, w port.UnitOfWork, o *order.Order) {
	t.Helper()
	do(t, w, changing(t, o, func(o *order.Order, now time.Time) error {
		_, err := o.Cancel("changed my mind", now)
		return err
	}))
}

func begun(t *testing.T, w port.UnitOfWork, o *order.Order, key string) {
	t.Helper()
	do(t, w, changing(t, o, beginning(key)))
}

func beginning(key string) func(o *order.Order, now time.Time) error {
	return func(o *order.Order, now time.Time) error {
		_, _, err := o.BeginPayment(order.PaymentRequest{Key: key, Money: o.State().Total}, now)
		return err
	}
}

func paying(key string) func(o *order.Order, now time.Time) error {
	return func(o *order.Order, now time.Time) error {
		if err := beginning(key)(o, now); err != nil {
			return err
		}
		attempt := o.State().Attempt
		charge := payment.Charge{ID: "ch_" + attempt.GatewayKey(), Money: attempt.Money}
		return o.ConfirmPayment(attempt.Number, charge, now)
	}
}

// instant is a time with all its microseconds.
func instant(plus time.Duration) time.Time {
	return time.Date(2026, 11, 30, 1, 2, 3, 123_456_000, time.UTC).Add(plus)
}

// statesOf is an order in each of its states, with every field that the state can have, at the edges of their ranges.
func statesOf(t *testing.T) map[string]order.State {
	t.Helper()
	dinar, err := money.ParseCurrency("KWD")
	require.NoError(t, err)
	dear := tea(t).State()
	dear.Total = money.Of(money.MaxUnits, dinar)
	dear.Lines = []order.Line{
		{SKU: strings.Repeat("茶", 256), Name: "o<&>\"é\u2028\U0001f375", Quantity: 1, UnitPrice: order.MaxUnitPrice},
		{SKU: "' ; --", Name: " spaces ", Quantity: order.MaxQuantity, UnitPrice: 0},
	}

	pending := tea(t).State()
	pending.Status, pending.PayingKey = order.PaymentPending, strings.Repeat("K", 255)
	pending.Attempt = payment.Attempt{
		OrderID: string(pending.ID), Number: 7, Money: pending.Total,
		Method: "pm_é", BegunAt: instant(time.Microsecond), Provider: "https://psp.example/" + strings.Repeat("é", 200),
	}

	declined := pending
	declined.ID = order.NewID()
	declined.Attempt.OrderID = string(declined.ID)
	declined.Status, declined.PayingKey = order.Placed, ""
	declined.Attempt.WrittenOff = 5

	cancelled := tea(t).State()
	cancelled.Status, cancelled.CancelledAt, cancelled.CancelReason = order.Cancelled, instant(time.Hour), "気が変わった"

	return map[string]order.State{
		"placed": dear, "pending": pending, "declined": declined, "paid": paidOrder(t), "cancelled": cancelled,
	}
}

func paidOrder(t *testing.T) order.State {
	t.Helper()
	o := tea(t)
	require.NoError(t, paying("k")(o, instant(999_999*time.Microsecond)))
	return o.State()
}
