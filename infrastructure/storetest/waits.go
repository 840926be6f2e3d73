package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// waits is what happens while another transaction is open. Where stores differ, Opened.OneAtATime declares it.
var waits = []check{
	{"a reader waits for nobody", func(t *testing.T, s Opened) {
		o, stands := added(t, s.Work), reserved(t, s.Work, reservation("k"))
		release := hold(t, s.Work, func(tx port.Tx) error {
			if err := changing(t, o, paying("k"))(tx); err != nil {
				return err
			}
			if err := tx.Records().Replace(t.Context(), stands, stands.Abandoned(tx.Now())); err != nil {
				return err
			}
			_, err := tx.Records().Find(t.Context(), stands.Scope) // whatever was deferred is sent by now
			return err
		})
		assert.Equal(t, order.Placed, orderIn(t, s.Beside, o.State().ID).Status)
		found, err := RecordIn(t.Context(), s.Beside, stands.Scope)
		require.NoError(t, err)
		assert.Equal(t, stands, found)
		release()
		assert.Equal(t, order.Paid, orderIn(t, s.Beside, o.State().ID).Status)
	}},
	{"who locks an order after another sees what the other made of it", func(t *testing.T, s Opened) {
		const each = 8
		o := added(t, s.Work)
		var runs atomic.Int64
		atOnce(each, func(i int) {
			err := s.either(i).Do(t.Context(), port.Fully, func(tx port.Tx) error {
				runs.Add(1)
				return changing(t, o, beginningAndDeclining)(tx)
			})
			assert.NoError(t, err)
		})
		assert.Equal(t, each, orderIn(t, s.Work, o.State().ID).Attempt.Number)
		assert.EqualValues(t, each, runs.Load(), "the lock orders them; no conflict does")
	}},
	{"a reservation does not queue for a busy order", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		release := hold(t, s.Work, changing(t, o, beginning("k")))
		for name, lock := range map[string]func(tx port.Tx) error{
			"Lock": func(tx port.Tx) error {
				_, err := tx.Orders().Lock(t.Context(), o.State().ID, alice)
				return err
			},
			"LockIfOpen": func(tx port.Tx) error {
				_, err := tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "another")
				return err
			},
		} {
			started := time.Now()
			told(t, s.Beside.Do(t.Context(), port.Briefly, lock), s.busy(order.ErrPaymentInProgress), name)
			if !s.OneAtATime {
				assert.Less(t, time.Since(started), s.LockTimeout*6/10, name)
			}
		}
		release()
	}},
	{"a completion's wait for a busy order ends too, and is longer", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		release := hold(t, s.Work, changing(t, o, beginning("k")))
		started := time.Now()
		err := s.Beside.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			_, err := tx.Orders().Lock(t.Context(), o.State().ID, alice)
			return err
		})
		told(t, err, s.busy(order.ErrPaymentInProgress))
		assert.GreaterOrEqual(t, time.Since(started), s.LockTimeout*9/10)
		release()
	}},
	{"an order that is decided is answered although another transaction holds it", func(t *testing.T, s Opened) {
		paid, pending := added(t, s.Work), added(t, s.Work)
		do(t, s.Work, changing(t, paid, paying("k")))
		begun(t, s.Work, pending, "k")
		release := hold(t, s.Work, func(tx port.Tx) error {
			if _, err := tx.Orders().Lock(t.Context(), paid.State().ID, alice); err != nil {
				return err
			}
			_, err := tx.Orders().Lock(t.Context(), pending.State().ID, alice)
			return err
		})
		var found []order.Status
		err := s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			found = nil
			for _, o := range []*order.Order{paid, pending} {
				o, err := tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "another")
				if err != nil {
					return err
				}
				found = append(found, o.State().Status)
			}
			return nil
		})
		release()
		if s.OneAtATime {
			require.ErrorIs(t, err, port.ErrUnavailable)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, []order.Status{order.Paid, order.PaymentPending}, found)
	}},
	{"an announced order is locked with the reservation that is granted", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		var found *order.Order
		release := hold(t, s.Work, func(tx port.Tx) (err error) {
			tx.Orders().Announce(o.State().ID, alice, "k")
			if _, err = tx.Records().Reserve(t.Context(), reservation("k"), time.Minute); err != nil {
				return err
			}
			found, err = tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "k")
			return err
		})
		err := s.Beside.Do(t.Context(), port.Briefly, changing(t, o, beginning("another")))
		told(t, err, s.busy(order.ErrPaymentInProgress))
		release()
		assert.Equal(t, order.Placed, found.State().Status)
		assert.Equal(t, o.State().ID, found.State().ID)
	}},
	{"an announced order that is busy is told as such, and nothing is reserved", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		release := hold(t, s.Work, changing(t, o, beginning("another")))
		err := s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			tx.Orders().Announce(o.State().ID, alice, "k")
			if _, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute); err != nil {
				return err
			}
			_, err := tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "k")
			return err
		})
		told(t, err, s.busy(order.ErrPaymentInProgress))
		release()
		_, err = RecordIn(t.Context(), s.Work, reservation("k").Scope)
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	}},
	{"a reservation that is not granted waits for no announced order, and holds none", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		reserved(t, s.Work, reservation("k"))
		release := hold(t, s.Work, changing(t, o, beginning("k")))
		if !s.OneAtATime {
			err := s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
				tx.Orders().Announce(o.State().ID, alice, "k")
				_, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute)
				return err
			})
			require.NoError(t, err)
		}
		release()
		release = hold(t, s.Work, func(tx port.Tx) error {
			tx.Orders().Announce(o.State().ID, alice, "k")
			_, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute)
			return err
		})
		if !s.OneAtATime {
			do(t, s.Beside, func(tx port.Tx) error {
				_, err := tx.Orders().Lock(t.Context(), o.State().ID, alice)
				return err
			})
		}
		release()
	}},
	{"whoever takes a record over locks the announced order as it is then", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		begun(t, s.Work, o, "k")
		reserved(t, s.Work, reservation("k"))
		var found *order.Order
		release := hold(t, s.Work, func(tx port.Tx) (err error) {
			tx.Orders().Announce(o.State().ID, alice, "k")
			if _, err = tx.Records().Reserve(t.Context(), reservation("k"), time.Minute); err != nil {
				return err
			}
			found, err = tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "k")
			return err
		})
		err := s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			_, err := tx.Orders().Lock(t.Context(), o.State().ID, alice)
			return err
		})
		told(t, err, s.busy(order.ErrPaymentInProgress))
		release()
		assert.Equal(t, order.PaymentPending, found.State().Status)
	}},
	{"another order than the announced one is read as if none had been announced", func(t *testing.T, s Opened) {
		announced, o := added(t, s.Work), added(t, s.Work)
		do(t, s.Work, func(tx port.Tx) error {
			tx.Orders().Announce(announced.State().ID, alice, "k")
			if _, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute); err != nil {
				return err
			}
			found, err := tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "k")
			if err != nil {
				return err
			}
			assert.Equal(t, o.State().ID, found.State().ID)
			_, err = tx.Orders().LockIfOpen(t.Context(), announced.State().ID, "mallory", "k")
			require.ErrorIs(t, err, order.ErrNotFound)
			return nil
		})
	}},
	// C65: what decides is read behind the lock, not before it.
	{"an order that is decided while one waits for it is answered as it was decided", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		release := hold(t, s.Work, changing(t, o, paying("k")))
		found, ended := order.Status(""), make(chan error, 1)
		go func() {
			ended <- s.Beside.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				o, err := tx.Orders().LockIfOpen(t.Context(), o.State().ID, alice, "another")
				if err == nil {
					found = o.State().Status
				}
				return err
			})
		}()
		release()
		require.NoError(t, <-ended)
		assert.Equal(t, order.Paid, found)
	}},
	{"a stranger holds nothing", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		var locked, lockedIfOpen error
		release := hold(t, s.Work, func(tx port.Tx) error {
			_, locked = tx.Orders().Lock(t.Context(), o.State().ID, "mallory")
			_, lockedIfOpen = tx.Orders().LockIfOpen(t.Context(), o.State().ID, "mallory", "k")
			return nil
		})
		require.ErrorIs(t, locked, order.ErrNotFound)
		require.ErrorIs(t, lockedIfOpen, order.ErrNotFound)
		err := s.Beside.Do(t.Context(), port.Briefly, changing(t, o, beginning("k")))
		release()
		if s.OneAtATime {
			require.ErrorIs(t, err, port.ErrUnavailable)
			return
		}
		require.NoError(t, err)
	}},
	{"a key that another transaction is reserving is busy", func(t *testing.T, s Opened) {
		first, second := reservation("k"), reservation("k")
		release := hold(t, s.Work, reserving(t, first))
		err := s.Beside.Do(t.Context(), port.Briefly, reserving(t, second))
		told(t, err, s.busy(idempotency.ErrInProgress))
		release()
		assert.Equal(t, first.Token, reserved(t, s.Beside, second).Token)
	}},
	{"who waits for a key finds what the other left", func(t *testing.T, s Opened) {
		first, second := reservation("k"), reservation("k")
		release := hold(t, s.Work, reserving(t, first))
		found, ended := idempotency.Record{}, make(chan error, 1)
		go func() {
			ended <- s.Beside.Do(t.Context(), port.Fully, func(tx port.Tx) (err error) {
				found, err = tx.Records().Reserve(t.Context(), second, time.Minute)
				return err
			})
		}()
		release()
		require.NoError(t, <-ended)
		assert.Equal(t, first.Token, found.Token)
	}},
	{"a wait ends at once when its context does", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		release := hold(t, s.Work, func(tx port.Tx) error {
			if _, err := tx.Orders().Lock(t.Context(), o.State().ID, alice); err != nil {
				return err
			}
			return reserving(t, reservation("k"))(tx)
		})
		for name, waiting := range map[string]func(ctx context.Context, tx port.Tx) error{
			"for an order": func(ctx context.Context, tx port.Tx) error {
				_, err := tx.Orders().Lock(ctx, o.State().ID, alice)
				return err
			},
			"for a key": func(ctx context.Context, tx port.Tx) error {
				_, err := tx.Records().Reserve(ctx, reservation("k"), time.Minute)
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), s.LockTimeout/10)
			started := time.Now()
			err := s.Beside.Do(ctx, port.Fully, func(tx port.Tx) error { return waiting(ctx, tx) })
			cancel()
			require.ErrorIs(t, err, port.ErrUnavailable, name)
			assert.Less(t, time.Since(started), s.LockTimeout*6/10, name)
		}
		release()
		do(t, s.Beside, changing(t, o, beginning("k"))) // no session is left behind
	}},
}

func reserving(t *testing.T, n idempotency.Reservation) func(tx port.Tx) error {
	return func(tx port.Tx) error {
		_, err := tx.Records().Reserve(t.Context(), n, time.Minute)
		return err
	}
}

func beginningAndDeclining(o *order.Order, now time.Time) error {
	if err := beginning("k")(o, now); err != nil {
		return err
	}
	return o.DeclinePayment(o.State().Attempt.Number, payment.Decline{Code: "card_declined"})
}
