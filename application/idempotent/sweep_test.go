package idempotent_test

import (
	"fmt"
	"testing"
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
		swept, err := idempotent.Sweep(t.Context(), d.store)
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
		swept, err := idempotent.Sweep(t.Context(), d.store)
		require.ErrorIs(t, err, port.ErrUnavailable)
		assert.Equal(t, idempotent.SweepBatch, swept)
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
