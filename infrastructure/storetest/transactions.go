package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// errStep is a step's own failure.
var errStep = errors.New("storetest: the step failed")

var transactions = []check{
	{"what a transaction wrote is there for everyone once it is committed", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		do(t, s.Work, writing(t, o, n))
		assertThere(t, s.Beside, o, n)
	}},
	{"a function's error is the caller's and undoes all that it wrote", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		err := s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := writing(t, o, n)(tx); err != nil {
				return err
			}
			return errStep
		})
		require.ErrorIs(t, err, errStep)
		assertNotThere(t, s.Beside, o, n)
	}},
	{"a panic goes on its way and undoes all that was written", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		require.PanicsWithValue(t, "bug", func() {
			_ = s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				if err := writing(t, o, n)(tx); err != nil {
					return err
				}
				panic("bug")
			})
		})
		assertNotThere(t, s.Beside, o, n)
		do(t, s.Beside, writing(t, o, n)) // nothing is held any more
	}},
	{"nobody sees what is not committed yet", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		commit := hold(t, s.Work, func(tx port.Tx) error {
			if err := writing(t, o, n)(tx); err != nil {
				return err
			}
			_, err := tx.Records().Find(t.Context(), n.Scope) // whatever was deferred is sent by now
			return err
		})
		assertNotThere(t, s.Beside, o, n)
		commit()
		assertThere(t, s.Beside, o, n)
	}},
	{"a transaction sees what it wrote itself", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		do(t, s.Work, func(tx port.Tx) error {
			if err := writing(t, o, n)(tx); err != nil {
				return err
			}
			again, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute)
			require.NoError(t, err)
			assert.Equal(t, n.Token, again.Token)
			_, err = tx.Orders().Lock(t.Context(), o.State().ID, alice)
			return err
		})
	}},
	{"a context that is over begins nothing", func(t *testing.T, s Opened) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		never := func(port.Tx) error {
			assert.Fail(t, "the function ran")
			return nil
		}
		require.ErrorIs(t, s.Work.Do(ctx, port.Fully, never), port.ErrUnavailable)
		require.ErrorIs(t, s.Work.Read(ctx, never), port.ErrUnavailable)
	}},
	{"a context that ends before the commit undoes the transaction", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Work.Do(ctx, port.Fully, func(tx port.Tx) error {
			defer cancel()
			return writing(t, o, n)(tx)
		})
		require.ErrorIs(t, err, port.ErrUnavailable)
		assertNotThere(t, s.Beside, o, n)
	}},
	{"the time is the store's: one per transaction, UTC, whole microseconds", func(t *testing.T, s Opened) {
		var last time.Time
		for range 3 {
			do(t, s.Work, func(tx port.Tx) error {
				now := tx.Now()
				assert.Equal(t, time.UTC, now.Location())
				assert.Equal(t, now, now.Truncate(time.Microsecond))
				assert.WithinDuration(t, time.Now(), now, time.Minute)
				assert.False(t, now.Before(last))
				n := reservation(idempotency.Key(order.NewID()))
				if err := writing(t, tea(t), n)(tx); err != nil {
					return err
				}
				_, err := tx.Records().Find(t.Context(), n.Scope)
				assert.Equal(t, now, tx.Now(), "after three more statements")
				last = now
				return err
			})
		}
	}},
	{"the time is there without any other statement, in reading transactions too", func(t *testing.T, s Opened) {
		require.NoError(t, s.Work.Read(t.Context(), func(tx port.Tx) error {
			assert.WithinDuration(t, time.Now(), tx.Now(), time.Minute)
			assert.Equal(t, time.UTC, tx.Now().Location())
			return nil
		}))
	}},
	{"a conflict that stays is tried three times, then unavailable, and leaves nothing", func(t *testing.T, s Opened) {
		o, n, runs := tea(t), reservation("k"), 0
		do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), o) })
		stale := locked(t, s.Work, o)
		cancelled(t, s.Beside, o)
		err := s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			runs++
			if _, err := tx.Records().Reserve(t.Context(), n, time.Minute); err != nil {
				return err
			}
			return tx.Orders().Save(t.Context(), stale)
		})
		require.ErrorIs(t, err, port.ErrUnavailable)
		assert.Equal(t, 3, runs)
		assert.Equal(t, order.Cancelled, orderIn(t, s.Beside, o.State().ID).Status)
		_, err = RecordIn(t.Context(), s.Beside, n.Scope)
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	}},
	{"a conflict that fresh reads resolve is settled by a second run", func(t *testing.T, s Opened) {
		o, runs := tea(t), 0
		do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), o) })
		stale := locked(t, s.Work, o)
		begun(t, s.Beside, o, "k")
		do(t, s.Work, func(tx port.Tx) error {
			runs++
			o := stale
			if runs > 1 {
				var err error
				if o, err = tx.Orders().Lock(t.Context(), stale.State().ID, alice); err != nil {
					return err
				}
			}
			if err := beginning("k")(o, tx.Now()); err != nil {
				return err
			}
			return tx.Orders().Save(t.Context(), o)
		})
		assert.Equal(t, 2, runs)
		assert.Equal(t, 1, orderIn(t, s.Beside, o.State().ID).Attempt.Number)
	}},
	{"a reading transaction cannot write", func(t *testing.T, s Opened) {
		o, n := tea(t), reservation("k")
		require.Error(t, s.Work.Read(t.Context(), func(tx port.Tx) error { return tx.Orders().Add(t.Context(), o) }))
		require.Error(t, s.Work.Read(t.Context(), func(tx port.Tx) error {
			_, err := tx.Records().Reserve(t.Context(), n, time.Minute)
			return err
		}))
		assertNotThere(t, s.Beside, o, n)
	}},
	{"a reading transaction's error is the caller's", func(t *testing.T, s Opened) {
		require.ErrorIs(t, s.Work.Read(t.Context(), func(port.Tx) error { return errStep }), errStep)
	}},
}

// writing adds an order and reserves a key.
func writing(t *testing.T, o *order.Order, n idempotency.Reservation) func(tx port.Tx) error {
	return func(tx port.Tx) error {
		if err := tx.Orders().Add(t.Context(), o); err != nil {
			return err
		}
		_, err := tx.Records().Reserve(t.Context(), n, time.Minute)
		return err
	}
}

func assertThere(t *testing.T, w port.UnitOfWork, o *order.Order, n idempotency.Reservation) {
	t.Helper()
	assert.Equal(t, o.State().ID, orderIn(t, w, o.State().ID).ID)
	stands, err := RecordIn(t.Context(), w, n.Scope)
	require.NoError(t, err)
	assert.Equal(t, n.Token, stands.Token)
}

func assertNotThere(t *testing.T, w port.UnitOfWork, o *order.Order, n idempotency.Reservation) {
	t.Helper()
	require.ErrorIs(t, w.Read(t.Context(), func(tx port.Tx) error {
		_, err := tx.Orders().Find(t.Context(), o.State().ID, alice)
		return err
	}), order.ErrNotFound)
	_, err := RecordIn(t.Context(), w, n.Scope)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}
