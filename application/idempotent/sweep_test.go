package idempotent_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

func TestASweepGoesOnBatchByBatchUntilNothingIsLeft(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		const expired = 2*idempotent.SweepBatch + 1
		require.NoError(t, d.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			for i := range expired {
				if err := finish(t, tx, idempotency.Key(fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return nil
		}))
		d.clock.Pass(time.Hour)
		swept, err := idempotent.Sweep(t.Context(), d.store, idempotent.Pace{})
		require.NoError(t, err)
		assert.Equal(t, expired, swept)
		assert.Equal(t, 3, d.store.Commits())
	})
}

func TestASweepThatFailsTellsWhatItHasDone(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		require.NoError(t, d.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			for i := range idempotent.SweepBatch + 1 {
				if err := finish(t, tx, idempotency.Key(fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return nil
		}))
		d.clock.Pass(time.Hour)
		d.store.LeaveAfter(1)
		swept, err := idempotent.Sweep(t.Context(), d.store, idempotent.Pace{})
		require.ErrorIs(t, err, port.ErrUnavailable)
		assert.Equal(t, idempotent.SweepBatch, swept)
	})
}

// batches is a store of which each transaction takes its time: first for its turn, then for its work, until nothing is
// left. It runs in a bubble, where time passes by itself.
type batches struct {
	port.UnitOfWork
	turn, work time.Duration
	begun      time.Time
	left       int
	at         []time.Duration // when each transaction's work began, and the rows that it was to delete
	limits     []int
}

func (b *batches) Do(_ context.Context, _ port.Wait, fn func(port.Tx) error) error {
	time.Sleep(b.turn)
	b.at = append(b.at, time.Since(b.begun))
	err := fn(nil)
	time.Sleep(b.work)
	return err
}

func (b *batches) some(_ context.Context, _ port.Tx, limit int) (int, error) {
	b.limits = append(b.limits, limit)
	n := min(limit, b.left)
	b.left -= n
	return n, nil
}

func TestASweepGivesWayBetweenItsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const turn, work = 30 * time.Millisecond, 2 * time.Millisecond
		b := &batches{turn: turn, work: work, left: 25, begun: time.Now()}
		swept, err := idempotent.Pace{Batch: 10, Now: time.Now}.Sweep(t.Context(), b, b.some)
		require.NoError(t, err)
		assert.Equal(t, 25, swept)
		assert.Equal(t, []int{10, 10, 10}, b.limits)
		// From the end of one's work to the beginning of the next one's, its turn, which it does not hold, included.
		const each = 16*work + turn
		assert.Equal(t, []time.Duration{turn, turn + each, turn + 2*each}, b.at)
		assert.Equal(t, turn+2*each+work, time.Since(b.begun), "nothing is left: there is nothing to rest for")
	})
}

func TestAShortBatchIsTheLastOneAndIsNotRestedFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batches{work: time.Second, left: 9, begun: time.Now()}
		_, err := idempotent.Pace{Batch: 10, Now: time.Now}.Sweep(t.Context(), b, b.some)
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(b.begun))
	})
}

func TestTheEndOfASweepsContextEndsItsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batches{work: time.Second, left: 100, begun: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		swept, err := idempotent.Pace{Batch: 10, Now: time.Now}.Sweep(ctx, b, b.some)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 10, swept)
		assert.Equal(t, 2*time.Second, time.Since(b.begun))
	})
}

// finish stores a finished record that is kept for an hour.
func finish(t *testing.T, tx port.Tx, key idempotency.Key) error {
	t.Helper()
	scope := idempotency.Scope{Operation: "PlaceOrder", Actor: "alice", Key: key}
	n := idempotency.Reservation{Scope: scope, Token: idempotency.NewToken()}
	held, err := tx.Records().Reserve(t.Context(), n, storetest.Times.Lease)
	if err != nil {
		return err
	}
	done := held.Completed(idempotency.Outcome{Document: []byte("{}")}, tx.Now(), time.Hour)
	return tx.Records().Replace(t.Context(), held, done)
}
