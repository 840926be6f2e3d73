package idempotent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

// told is what an observer has heard, in order.
type told struct{ events []port.Event }

func (o *told) Observe(_ context.Context, e port.Event) { o.events = append(o.events, e) }

func (o *told) heard() (all []port.Happening) {
	for _, e := range o.events {
		all = append(all, e.What)
	}
	return all
}

func (o *told) last() port.Event { return o.events[len(o.events)-1] }

// listened is a desk whose observer keeps the order of what it hears.
func (d desk) listened() (desk, *told) {
	o := &told{}
	d.Executor = idempotent.New(d.store, d.documents, port.Observers{o, d.seen}, storetest.Times)
	return d, o
}

func TestAnObserverHearsEachStepOnceItHasEnded(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		_, err := d.Execute(t.Context(), intent, (&operation{}).steps)
		require.NoError(t, err)
		assert.Equal(t, []port.Happening{port.Reserved, port.Called, port.Completed}, o.heard())
		for _, e := range o.events {
			assert.Equal(t, intent.Scope, e.Scope)
			assert.Equal(t, 1, e.Executions)
			assert.NoError(t, e.Err)
		}
	})
}

func TestAnObserverHearsThatARunWithoutACallHasItsOutcome(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		silent := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, silent.steps)
		assertUnknown(t, err)
		_, err = d.Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		assert.Equal(t, []port.Happening{
			port.Reserved, port.Called, port.Abandoned, port.Takeover, port.Completed,
		}, o.heard())

		other := intent
		other.Scope.Key = "another"
		refused := operation{prepare: func(context.Context, port.Tx) error { return errRefused }}
		_, err = d.Execute(t.Context(), other, refused.steps)
		require.NoError(t, err)
		assert.Equal(t, port.Completed, o.events[5].What)
		assert.Equal(t, errRefused.Code(), o.events[5].Refusal)
	})
}

func TestAnObserverHearsHowAKeyWasAnsweredWithoutExecuting(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		running := operation{call: func(ctx context.Context) error {
			_, err := d.Execute(ctx, intent, never(t))
			require.Error(t, err)
			_, err = d.Execute(ctx, otherIntent, never(t))
			require.Error(t, err)
			return nil
		}}
		_, err := d.Execute(t.Context(), intent, running.steps)
		require.NoError(t, err)
		_, err = d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.Equal(t, []port.Happening{
			port.Reserved, port.InProgress, port.Mismatch, port.Called, port.Completed, port.Replayed,
		}, o.heard())
	})
}

func TestAnObserverHearsTheCodeOfARefusalThenAndAtItsReplay(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		refused := operation{finish: func(context.Context, port.Tx) (any, error) { return errRefused, nil }}
		for range 2 {
			_, err := d.Execute(t.Context(), intent, refused.steps)
			require.NoError(t, err)
		}
		assert.Equal(t, []port.Happening{port.Reserved, port.Called, port.Completed, port.Replayed}, o.heard())
		assert.Equal(t, []fault.Code{"", "", "refused", "refused"}, []fault.Code{
			o.events[0].Refusal, o.events[1].Refusal, o.events[2].Refusal, o.events[3].Refusal,
		})
	})
}

func TestAnObserverHearsATakeoverWithItsExecution(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		silent := operation{call: func(context.Context) error { return errOutside }}
		for range 2 {
			_, err := d.Execute(t.Context(), intent, silent.steps)
			assertUnknown(t, err)
		}
		assert.Equal(t, []port.Happening{
			port.Reserved, port.Called, port.Abandoned, port.Takeover, port.Called, port.Abandoned,
		}, o.heard())
		require.ErrorIs(t, o.events[1].Err, errOutside)
		assert.Equal(t, 2, o.events[3].Executions)
	})
}

func TestAnObserverHearsOfALostLeaseAndOfADoubt(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, _ = d.listened()
		var late operation
		_, err := d.meanwhile(t, &late, func(there desk) {
			_, err := there.Execute(t.Context(), intent, knowing("the winner's"))
			require.NoError(t, err)
		})
		require.NoError(t, err)
		assert.Equal(t, 1, d.seen.Count(port.LeaseLost))

		other := intent
		other.Scope.Key = "another"
		d.store.LoseCommit(1, storetest.Applied)
		_, err = d.Execute(t.Context(), other, knowing("done"))
		require.NoError(t, err)
		assert.Equal(t, 1, d.seen.Count(port.CommitUnknown))
	})
}

func TestAnObserverHearsWhatAStepNotesOnlyOnceItIsCommitted(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		noting := func(context.Context, port.Tx) (idempotent.Next, error) {
			return idempotent.Result("done").Noting(port.Duplicate), nil
		}
		d.store.LoseCommit(1, storetest.Undone)
		_, err := d.Execute(t.Context(), intent, noting)
		require.NoError(t, err)
		assert.Equal(t, 1, d.seen.Count(port.Duplicate))
		_, err = d.Execute(t.Context(), intent, noting)
		require.NoError(t, err)
		assert.Equal(t, 1, d.seen.Count(port.Duplicate), "a replay does nothing again")
	})
}

func TestAnObserverHearsWhyAStepLeftNoOutcome(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		_, err := d.Execute(t.Context(), intent, failing(anOrder(t), errAccident))
		require.ErrorIs(t, err, errAccident)
		assert.Equal(t, []port.Happening{port.Stopped}, o.heard())
		require.ErrorIs(t, o.events[0].Err, errAccident)
	})
}

// What is told of a record is what stands: whoever looks it up at that moment finds the same.
func TestAnObserverHearsHowTheRecordStands(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		silent := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, silent.steps)
		assertUnknown(t, err)
		assert.Equal(t, d.record(t), o.last().Record, "its lease is over")
		assert.Equal(t, port.Abandoned, o.last().What)
		assert.True(t, o.last().Record.LeaseEnds.Before(o.events[0].Record.LeaseEnds))

		_, err = d.Execute(t.Context(), intent, (&operation{}).steps)
		require.NoError(t, err)
		assert.Equal(t, d.record(t), o.last().Record, "it has the outcome")
		assert.Equal(t, idempotency.Succeeded, o.last().Record.Status)

		_, err = d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.Equal(t, port.Replayed, o.last().What)
		assert.Equal(t, d.record(t), o.last().Record)
	})
}

func TestAnObserverIsToldNoRecordThatWasRolledBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d, o := d.listened()
		_, err := d.Execute(t.Context(), intent, failing(anOrder(t), errAccident))
		require.ErrorIs(t, err, errAccident)
		assert.Zero(t, o.last().Record)
	})
}
