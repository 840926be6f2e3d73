package checkout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/storetest"
)

// byHand changes the stored order as no verb would.
func (s shop) byHand(t *testing.T, id order.ID, change func(o *order.State)) {
	t.Helper()
	require.NoError(t, s.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		o, err := tx.Orders().Lock(t.Context(), id, "alice")
		if err != nil {
			return err
		}
		state := o.State()
		change(&state)
		return tx.Orders().Save(t.Context(), order.Rehydrate(state))
	}))
}

func cancelledByHand(o *order.State) { o.Status, o.PayingKey = order.Cancelled, "" }

func placedByHand(o *order.State) { o.Status, o.PayingKey = order.Placed, "" }

func paidByHand(o *order.State) {
	o.Status, o.PayingKey = order.Paid, ""
	o.PaymentID, o.ChargeID, o.PaidAt = "hand", "ch_seen", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
}

// A word that can be true of the order as a hand has left it ends the payment; every other one is refused for good,
// changes nothing and says what stands there.
func TestAWordAboutAnOrderThatAHandHasChangedIsTakenOrRefusedForGood(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(o *order.State)
		charged bool
		says    string     // why the word is refused; empty: it is taken
		refusal fault.Code // of the outcome; empty: the receipt
		status  order.Status
	}{
		"cancelled, charged":     {cancelledByHand, true, "CANCELLED by hand", "", order.Cancelled},
		"cancelled, not charged": {cancelledByHand, false, "", "invalid_state", order.Cancelled},
		"placed, charged":        {placedByHand, true, "", "", order.Paid},
		"placed, not charged":    {placedByHand, false, "", "payment_declined", order.Placed},
		"placed over other money, charged": {func(o *order.State) {
			placedByHand(o)
			o.Total = money.Of(7, money.JPY)
		}, true, "over other money", "", order.Placed},
		"placed over other money, not charged": {func(o *order.State) {
			placedByHand(o)
			o.Total = money.Of(7, money.JPY)
		}, false, "", "amount_mismatch", order.Placed},
		"paid by that charge, charged": {paidByHand, true, "", "", order.Paid},
		"paid, not charged":            {paidByHand, false, "PAID, by a hand", "", order.Paid},
		"paid by another charge, charged": {func(o *order.State) {
			paidByHand(o)
			o.ChargeID = "ch_other"
		}, true, "PAID, by a hand", "", order.Paid},
		"paid for by another key, not charged": {
			func(o *order.State) { o.PayingKey = "k2" }, false,
			"another request", "", order.PaymentPending,
		},
		"paid for by another key, charged": {
			func(o *order.State) { o.PayingKey = "k2" }, true,
			"another request", "", order.PaymentPending,
		},
		"asked for other money, charged": {
			func(o *order.State) { o.Attempt.Money = money.Of(7, money.JPY) }, true,
			"other money", "", order.PaymentPending,
		},
		"its total changed, charged": {
			func(o *order.State) { o.Total = money.Of(7, money.JPY) }, true,
			"total was changed", "", order.PaymentPending,
		},
		"its total changed, not charged": {
			func(o *order.State) { o.Total = money.Of(7, money.JPY) }, false,
			"", "payment_declined", order.Placed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBothShops(t, func(t *testing.T, s shop) {
				id := s.left(t, storetest.Unreachable)
				s.byHand(t, id, c.change)
				left := s.record(t, storetest.Payment(id, "k"))
				view, err := s.Resolve(t.Context(), word(c.charged))
				assert.Equal(t, c.status, s.state(t, id).Status)
				if c.says != "" {
					assertContradicted(t, err, c.says)
					assert.Equal(t, left, s.record(t, storetest.Payment(id, "k")), "nothing has changed")
					assert.Empty(t, s.audited(t, port.AuditResolved))
					return
				}
				require.NoError(t, err)
				assert.NotEqual(t, idempotency.InProgress, view.Status)
				assert.Equal(t, c.refusal, s.record(t, storetest.Payment(id, "k")).Outcome.Refusal)
				assert.Len(t, s.audited(t, port.AuditResolved), 1)
			})
		})
	}
}

func assertContradicted(t *testing.T, err error, says string) {
	t.Helper()
	f, isFault := fault.From(err)
	require.True(t, isFault, "%v", err)
	assert.Equal(t, fault.CodeInvalid, f.Code())
	require.Len(t, f.Violations(), 1)
	assert.Equal(t, "outcome", f.Violations()[0].Field)
	assert.Contains(t, f.Violations()[0].Detail, says)
}

// Whoever cancels by hand does not take back what the provider has taken.
func TestMoneyThatWasTakenForAnOrderThatAHandHasCancelledIsNotDenied(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		for _, change := range []func(o *order.State){cancelledByHand, placedByHand} {
			id := s.left(t, storetest.Losing(storetest.Approving))
			s.byHand(t, id, change)
			_, err := s.Resolve(t.Context(), word(false))
			require.ErrorIs(t, err, payment.ErrChargeFound)
			assert.Equal(t, idempotency.InProgress, s.record(t, storetest.Payment(id, "k")).Status)
			s.clock.Pass(2 * storetest.Times.Lease)
			s.byHand(t, id, func(o *order.State) { o.Status, o.PayingKey = order.PaymentPending, "k" })
			yes := word(true)
			yes.ChargeID = string(id)
			_, err = s.Resolve(t.Context(), yes)
			require.NoError(t, err, "a hand has made good what a hand has done")
			assert.Equal(t, order.Paid, s.state(t, id).Status)
			s.clock.Pass(storetest.Times.Retention)
		}
	})
}

// The word ends such a payment here, and nobody has told the provider: its charge may come all the same.
func TestTheNextKeyFindsAChargeThatCameAfterAHandAndAWord(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		running := s.state(t, id).Attempt
		s.byHand(t, id, placedByHand)
		_, err := s.Resolve(t.Context(), word(false))
		require.NoError(t, err)
		_, err = s.Provider.Charge(t.Context(), running)
		require.NoError(t, err)

		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, answer).Status)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// An order that a hand has changed while the list was read is not decided by what stood before.
func TestAnOrderThatAHandChangesWhileItsPaymentIsGivenUpIsLeftAlone(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		s.byHand(t, id, cancelledByHand)
		s.Gateway = asked{s.Provider, func() { s.byHand(t, id, placedByHand) }}
		_, err := s.Resolve(t.Context(), word(false))
		assertUnknown(t, err)
		assert.Equal(t, idempotency.InProgress, s.record(t, storetest.Payment(id, "k")).Status)
		assert.Empty(t, s.audited(t, port.AuditResolved))
	})
}

// asked is a provider whose list is read at a moment that matters.
type asked struct {
	*storetest.Provider
	meanwhile func()
}

func (a asked) Lookup(ctx context.Context, orderID string) ([]payment.Booking, error) {
	a.meanwhile()
	return a.Provider.Lookup(ctx, orderID)
}

// Only a person can say what is to become of it: the recovery tries it once and then leaves it to one.
func TestTheRecoveryLeavesAnOrderThatAHandHasCancelledToAPerson(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		s.byHand(t, id, cancelledByHand)
		recovery := idempotent.NewRecovery(s.Store, time.Second, map[idempotency.Operation]idempotent.Resume{
			storetest.ScopeOf(storetest.Payment(id, "k")).Operation: s.Resume,
		})
		tried, err := recovery.Round(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, tried, 1)
		assertUnknown(t, tried[0].Err)
		s.clock.Pass(time.Hour)
		tried, err = recovery.Round(t.Context(), 10)
		require.NoError(t, err)
		assert.Empty(t, tried)
		assert.Equal(t, 1, s.Provider.Calls(), "nobody is charged for a cancelled order")
		_, err = s.Resolve(t.Context(), word(false))
		require.NoError(t, err)
	})
}

// The order looks like one that nobody has begun to pay, and the charge stands at the provider.
func TestAnOrderThatAHandHasMadePlacedIsChargedByNoNextRun(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Losing(storetest.Approving))
		s.byHand(t, id, placedByHand)
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		s.clock.Pass(storetest.Times.Lease)
		recovery := idempotent.NewRecovery(s.Store, time.Second, map[idempotency.Operation]idempotent.Resume{
			storetest.ScopeOf(storetest.Payment(id, "k")).Operation: s.Resume,
		})
		tried, err := recovery.Round(t.Context(), 10)
		require.NoError(t, err)
		assert.Empty(t, tried, "it is a person's case")
		assert.Equal(t, order.Placed, s.state(t, id).Status)
		assert.Equal(t, 1, s.Provider.Calls())
		s.clock.Pass(2 * storetest.Times.Lease)
		yes := word(true)
		yes.ChargeID = string(id)
		_, err = s.Resolve(t.Context(), yes)
		require.NoError(t, err)
		assert.Equal(t, order.Paid, s.state(t, id).Status)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// A word that is refused leaves the order as the hand has: no attempt of its own, which another one would charge.
func TestAnUntrueWordAboutAnOrderThatAHandHasMadePlacedCostsNoSecondCharge(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		other, _ := s.paid(t, "other")
		id := s.left(t, storetest.Losing(storetest.Approving))
		s.byHand(t, id, placedByHand)
		said := word(true)
		said.ChargeID = s.state(t, other).ChargeID
		left := s.state(t, id)
		_, err := s.Resolve(t.Context(), said)
		require.Error(t, err)
		assert.Equal(t, left, s.state(t, id))
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		assert.Equal(t, left, s.state(t, id))
		assert.Equal(t, 1, s.Provider.CallsUnder(string(id)+":1"))
		assert.Zero(t, s.Provider.CallsUnder(string(id)+":2"))
	})
}

// A new key's decline says nothing of the attempt before it.
func TestNotChargedLooksForTheChargesOfAllAttemptsOfAnOrderThatAHandHasMadePlaced(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Losing(storetest.Approving))
		s.byHand(t, id, placedByHand)
		s.Provider.Next(storetest.Declining("card_declined"))
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
		require.NoError(t, err)
		require.NotEmpty(t, answer.Refusal)
		_, err = s.Resolve(t.Context(), word(false))
		require.ErrorIs(t, err, payment.ErrChargeFound)
	})
}

// A holder sleeps until its record has its outcome from another one, and that is expired: nobody's case, and no run's.
func TestAHolderThatSleepsBeyondTheRetentionLeavesNoRecordBehind(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		c := storetest.Payment(id, "k")
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			s.clock.Pass(2 * storetest.Times.Lease)
			s.Provider.Next(storetest.Declining("card_declined"))
			answer, err := s.Beside().ConfirmPayment(ctx, c)
			require.NoError(t, err)
			require.NotEmpty(t, answer.Refusal)
			s.clock.Pass(2 * storetest.Times.Retention)
			return storetest.Declining("card_declined")(ctx, a, book)
		})
		_, err := s.ConfirmPayment(t.Context(), c)
		assertUnknown(t, err)
		assert.Equal(t, idempotency.Failed, s.record(t, c).Status)
		answer, err := s.ConfirmPayment(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, answer).Status)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// Neither the money that was charged nor the total that a hand has made of it is confirmed to anybody until a person has
// decided: by the total that it was, or by a refund.
func TestAPaymentWhoseTotalAHandHasChangedWaitsForAPerson(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		changed := func(o *order.State) { o.Total = money.Of(5000, money.JPY) }
		again := func(o *order.State) { o.Total = money.Of(1000, money.JPY) }
		t.Run("between its commits", func(t *testing.T) {
			id := s.placed(t)
			c := storetest.Payment(id, "between")
			s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
				s.byHand(t, id, changed) //nolint:contextcheck // the test's
				return storetest.Approving(ctx, a, book)
			})
			for range 2 {
				_, err := s.ConfirmPayment(t.Context(), c)
				assertUnknown(t, err)
				require.ErrorIs(t, err, order.ErrTotalChanged)
			}
			assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
			assert.Equal(t, idempotency.InProgress, s.record(t, c).Status)
			s.byHand(t, id, again)
			answer, err := s.ConfirmPayment(t.Context(), c)
			require.NoError(t, err)
			assert.Equal(t, order.Paid, receipt(t, answer).Status)
			assert.EqualValues(t, 1000, receipt(t, answer).Amount)
			assert.Equal(t, 1, s.Provider.ChargesUnder(string(id)+":1"))
		})
		t.Run("before the provider was asked", func(t *testing.T) {
			id := s.left(t, storetest.Unreachable)
			s.byHand(t, id, changed)
			before := s.Provider.Charges()
			_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
			assertUnknown(t, err)
			require.ErrorIs(t, err, payment.ErrNotListed)
			require.ErrorIs(t, err, order.ErrTotalChanged, "it says what a person has to do")
			assert.Equal(t, before, s.Provider.Charges(), "no money is taken that could not pay the order")
			s.byHand(t, id, again)
			_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
			require.NoError(t, err)
			assert.Equal(t, before+1, s.Provider.Charges())
		})
	})
}

func TestAWordAboutAnotherOrdersChargeChangesNothing(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		other, _ := s.paid(t, "other")
		id := s.left(t, storetest.Unreachable)
		said := word(true)
		said.ChargeID = s.state(t, other).ChargeID
		for range 2 {
			_, err := s.Resolve(t.Context(), said)
			f, isFault := fault.From(err)
			require.True(t, isFault, "%v", err)
			assert.Equal(t, fault.CodeInvalid, f.Code())
			assert.Equal(t, "chargeId", f.Violations()[0].Field)
		}
		assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
		assert.Empty(t, s.audited(t, port.AuditResolved))
		_, err := s.Resolve(t.Context(), word(true))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, s.state(t, id).Status)
	})
}
