package idempotent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

const interval = 10 * time.Second

// recoveryOf resumes the intent by the operation's own steps.
func (d desk) recoveryOf(o *operation) *idempotent.Recovery {
	return idempotent.NewRecovery(d.store, interval, map[idempotency.Operation]idempotent.Resume{
		intent.Scope.Operation: func(ctx context.Context, left idempotency.Record) (idempotent.Answer, error) {
			in := idempotent.Intent{Scope: left.Scope, Request: left.Request, Unattended: true}
			return d.Execute(ctx, in, o.steps)
		},
	})
}

// leave has a request end without an outcome.
func (d desk) leave(t *testing.T, in idempotent.Intent, err error) {
	t.Helper()
	o := operation{call: func(context.Context) error { return err }}
	_, err = d.Execute(t.Context(), in, o.steps)
	assertUnknown(t, err)
}

func TestTheRecoveryFinishesWhatWasLeftFromTheStoredRequest(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.leave(t, intent, errOutside)
		d.clock.Pass(storetest.Times.Lease)
		var o operation
		tried, err := d.recoveryOf(&o).Round(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, tried, 1)
		require.NoError(t, tried[0].Err)
		assert.Equal(t, idempotency.Succeeded, d.record(t).Status)
		answer, err := d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.True(t, answer.Replayed)
	})
}

func TestTheRecoveryLeavesALivingHolderAlone(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var late operation
		_, err := d.meanwhile(t, &late, func(there desk) {
			d.clock.Pass(-time.Microsecond)
			tried, err := there.recoveryOf(&operation{}).Round(t.Context(), 10)
			require.NoError(t, err)
			assert.Empty(t, tried)
		})
		require.NoError(t, err)
		assert.Equal(t, 1, late.calls)
	})
}

func TestTheRecoveryBacksOffDoublingUpToTenMinutes(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.leave(t, intent, errOutside)
		d.clock.Pass(storetest.Times.Lease)
		o := operation{call: func(context.Context) error { return errOutside }}
		recovery := d.recoveryOf(&o)
		for _, pause := range []time.Duration{
			interval, 2 * interval, 4 * interval, 8 * interval, 16 * interval, 32 * interval, 10 * time.Minute,
			10 * time.Minute,
		} {
			tried, err := recovery.Round(t.Context(), 10)
			require.NoError(t, err)
			require.Len(t, tried, 1, "before %s", pause)
			d.clock.Pass(pause - time.Microsecond)
			tried, err = recovery.Round(t.Context(), 10)
			require.NoError(t, err)
			require.Empty(t, tried, "it is not due before %s", pause)
			d.clock.Pass(time.Microsecond)
		}
		assert.Equal(t, 8, o.calls)
	})
}

func TestAClientsRetryDoesNotWaitForTheRecoverysBackoff(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.leave(t, intent, errOutside)
		d.clock.Pass(storetest.Times.Lease)
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.recoveryOf(&o).Round(t.Context(), 10)
		require.NoError(t, err)
		var retry operation
		_, err = d.Execute(t.Context(), intent, retry.steps)
		require.NoError(t, err)
		assert.Equal(t, 1, retry.calls)
	})
}

func TestOfTwoRecoveriesOneTriesARecord(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.leave(t, intent, errOutside)
		d.clock.Pass(storetest.Times.Lease)
		there := d.beside()
		var o operation
		o.call = func(ctx context.Context) error { // while the first one is at it
			tried, err := there.recoveryOf(&operation{}).Round(ctx, 10)
			assert.Empty(t, tried)
			return err
		}
		tried, err := d.recoveryOf(&o).Round(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, tried, 1)
		assert.Equal(t, 1, o.calls)
	})
}

func TestAPoisonedRecordStopsNoOther(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		poisoned := intent
		poisoned.Scope.Key = "poisoned"
		d.leave(t, poisoned, errOutside)
		d.clock.Pass(time.Second)
		d.leave(t, intent, errOutside)
		d.clock.Pass(storetest.Times.Lease)
		recovery := idempotent.NewRecovery(d.store, interval, map[idempotency.Operation]idempotent.Resume{
			intent.Scope.Operation: func(ctx context.Context, left idempotency.Record) (idempotent.Answer, error) {
				if left.Key == poisoned.Scope.Key {
					panic("a bug")
				}
				o := operation{}
				return d.Execute(ctx, idempotent.Intent{Scope: left.Scope, Request: left.Request}, o.steps)
			},
		})
		tried, err := recovery.Round(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, tried, 2)
		require.ErrorContains(t, tried[0].Err, "panic: a bug")
		require.NoError(t, tried[1].Err)
		assert.Equal(t, idempotency.Succeeded, d.record(t).Status)
	})
}

func TestARecordThatOnlyAPersonCanSettleIsLeftToHim(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.leave(t, intent, idempotent.ErrDispute)
		require.True(t, d.record(t).Disputed)
		d.clock.Pass(storetest.Times.Lease)
		var o operation
		tried, err := d.recoveryOf(&o).Round(t.Context(), 10)
		require.NoError(t, err)
		assert.Empty(t, tried)

		var retry operation // a client's retry asks again
		_, err = d.Execute(t.Context(), intent, retry.steps)
		require.NoError(t, err)
		assert.Equal(t, 1, retry.calls)
	})
}

func TestTheRecoverysTakeoversOfOneRecordAreOnePieceOfNews(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.leave(t, intent, errOutside)
		o := operation{call: func(context.Context) error { return errOutside }}
		for range 3 {
			d.clock.Pass(time.Hour)
			_, err := d.recoveryOf(&o).Round(t.Context(), 10)
			require.NoError(t, err)
		}
		told := d.seen.Of(port.Takeover)
		require.Len(t, told, 3)
		assert.NotEmpty(t, told[0].Once)
		assert.Equal(t, told[0].Once, told[2].Once)
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		assert.Empty(t, d.seen.Of(port.Takeover)[3].Once, "a client's is another one")
	})
}
