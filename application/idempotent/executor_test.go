package idempotent_test

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
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

func TestARunWithoutACallTakesOneCommitAndOneWithACallTwo(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		_, err := d.Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		assert.Equal(t, 1, d.store.Commits())

		var o operation
		other := intent
		other.Scope.Key = "another"
		_, err = d.Execute(t.Context(), other, o.steps)
		require.NoError(t, err)
		assert.Equal(t, 1+2, d.store.Commits())
		assert.Equal(t, 1, o.calls)
	})
}

func TestNoStatementIsWaitedForThatNeedNotBe(t *testing.T) {
	clock := storetest.NewClock()
	deferring := memory.NewDeferring(memory.New(clock.Now))
	d := deskOver(deferring, clock, storetest.Times)
	trips := func(d desk, key idempotency.Key, prepare idempotent.Prepare) int {
		before := deferring.RoundTrips()
		in := intent
		in.Scope.Key = key
		_, err := d.Execute(t.Context(), in, prepare)
		require.NoError(t, err)
		return deferring.RoundTrips() - before
	}
	assert.Equal(t, 2, trips(d, "k", knowing("done")), "reserve; outcome and commit")
	assert.Equal(t, 1, trips(d, "k", never(t)), "read, since it was finished here")
	assert.Equal(t, 2, trips(d.beside(), "k", never(t)), "reserve, which reads the outcome; commit")
	var o operation
	assert.Equal(t, 4, trips(d, "another", o.steps), "reserve; commit; the time; outcome and commit")
}

func TestWhatIsStoredIsWhatIsSentThenAndAtEachReplay(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var o operation
		first, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.False(t, first.Replayed)
		assert.JSONEq(t, `{"calls":1}`, string(first.Document))
		assert.Equal(t, first.Outcome, d.record(t).Outcome)

		for range 3 {
			again, err := d.beside().Execute(t.Context(), intent, never(t))
			require.NoError(t, err)
			assert.True(t, again.Replayed)
			assert.Equal(t, first.Outcome, again.Outcome)
		}
		assert.Equal(t, 1, d.documents.written)
	})
}

func TestWhatAResultHasCreatedIsReplayedToo(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		create := func(context.Context, port.Tx) (idempotent.Next, error) {
			return idempotent.Result("done").Creating("0193"), nil
		}
		first, err := d.Execute(t.Context(), intent, create)
		require.NoError(t, err)
		assert.Equal(t, "0193", first.Created)
		again, err := d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.Equal(t, "0193", again.Created)
	})
}

func TestAFinishedRecordTellsItsTimesByTheStoresClock(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		begun := d.clock.Now()
		o := operation{call: func(context.Context) error {
			d.clock.Pass(3 * time.Second)
			return nil
		}}
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		r := d.record(t)
		assert.Equal(t, idempotency.Succeeded, r.Status)
		assert.Equal(t, begun, r.CreatedAt)
		assert.Equal(t, begun.Add(3*time.Second), r.CompletedAt)
		assert.Equal(t, begun.Add(3*time.Second+storetest.Times.Retention), r.ExpiresAt, "counted from completion")
		assert.Empty(t, r.Request, "not needed any more")
	})
}

func TestWhileTheCallRunsTheRecordHoldsWhatARecoveryNeeds(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var r idempotency.Record
		o := operation{call: func(ctx context.Context) (err error) {
			r, err = storetest.RecordIn(ctx, d.work, intent.Scope)
			return err
		}}
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, idempotency.InProgress, r.Status)
		assert.Equal(t, intent.Request, r.Request)
		assert.Equal(t, d.clock.Now().Add(storetest.Times.Lease), r.LeaseEnds)
		assert.Equal(t, 1, r.Executions)
	})
}

func TestAKeyOfAnotherRequestIsRefusedInEveryState(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		reused := func() {
			_, err := d.beside().Execute(t.Context(), otherIntent, never(t))
			require.ErrorIs(t, err, idempotency.ErrKeyReused)
		}
		o := operation{call: func(context.Context) error {
			reused()
			return errOutside
		}}
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
		reused() // its lease is over
		_, err = d.Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		reused()
	})
}

func TestADuplicateOfARunningRequestIsToldToWait(t *testing.T) {
	for _, c := range []struct{ after, wait time.Duration }{
		{0, time.Second},
		{3 * time.Second, 3 * time.Second},
		{10 * time.Second, 10 * time.Second},
		{25 * time.Second, 5 * time.Second},
		{29*time.Second + 999*time.Millisecond, time.Second},
	} {
		onBothStores(t, func(t *testing.T, d desk) {
			o := operation{call: func(ctx context.Context) error {
				d.clock.Pass(c.after)
				_, err := d.beside().Execute(ctx, intent, never(t))
				require.ErrorIs(t, err, idempotency.ErrInProgress)
				f, _ := fault.From(err)
				assert.Equal(t, c.wait, f.Wait(), "after %s", c.after)
				return nil
			}}
			_, err := d.Execute(t.Context(), intent, o.steps)
			require.NoError(t, err)
		})
	}
}

// C85: expired means absent; there is no sweep here.
func TestAnExpiredKeyIsNew(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		_, err := d.Execute(t.Context(), intent, knowing("first"))
		require.NoError(t, err)
		d.clock.Pass(storetest.Times.Retention - time.Microsecond)
		last, err := d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.True(t, last.Replayed)

		d.clock.Pass(time.Microsecond)
		anew, err := d.Execute(t.Context(), otherIntent, knowing("second"))
		require.NoError(t, err)
		assert.False(t, anew.Replayed)
		assert.Equal(t, `"second"`, string(anew.Document))
		r := d.record(t)
		assert.Equal(t, 1, r.Executions)
		assert.Equal(t, d.clock.Now(), r.CreatedAt)
	})
}

// C21: without a reservation nothing is executed.
func TestAStoreThatIsAwayExecutesNothing(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.store.LeaveAfter(0)
		_, err := d.Execute(t.Context(), intent, never(t))
		require.ErrorIs(t, err, port.ErrUnavailable)
		d.store.Return()
		d.assertNoRecord(t)
	})
}
