package idempotent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

// C46, C10: "no answer" is not "nothing happened". What stands on record decides, under the token that asked.
func TestACommitWithoutAnAnswerIsSettledByStartingOver(t *testing.T) {
	for _, c := range []struct {
		commit int
		fate   storetest.Fate
		calls  int
	}{
		{1, storetest.Applied, 1},
		{1, storetest.Undone, 1},
		{1, storetest.Late, 1},
		{2, storetest.Applied, 1},
		{2, storetest.Undone, 2},
		{2, storetest.Late, 1},
	} {
		for name, finish := range map[string]func(context.Context, port.Tx) (any, error){
			"a result":  nil,
			"a refusal": func(context.Context, port.Tx) (any, error) { return errRefused, nil },
		} {
			t.Run(fmt.Sprintf("commit %d %s, %s", c.commit, c.fate, name), func(t *testing.T) {
				onBothStores(t, func(t *testing.T, d desk) {
					d.store.LoseCommit(c.commit, c.fate)
					late := make(chan error, 1)
					if c.fate == storetest.Late {
						d.seen.When(port.CommitUnknown, func() { go func() { late <- d.store.ApplyLate() }() })
					}
					o := operation{finish: finish}
					answer, err := d.Execute(t.Context(), intent, o.steps)
					require.NoError(t, err)
					if c.fate == storetest.Late {
						require.NoError(t, <-late)
					}
					assert.False(t, answer.Replayed, "it is the request's own execution")
					assert.Equal(t, c.calls, o.calls)
					assert.Equal(t, d.record(t).Outcome, answer.Outcome)
					assert.Equal(t, 1, d.record(t).Executions)

					again, err := d.beside().Execute(t.Context(), intent, never(t))
					require.NoError(t, err)
					assert.True(t, again.Replayed)
					assert.Equal(t, answer.Outcome, again.Outcome)
				})
			})
		}
	}
}

func TestTheOneCommitOfARunWithoutACallIsSettledLikewise(t *testing.T) {
	for _, fate := range []storetest.Fate{storetest.Applied, storetest.Undone} {
		onBothStores(t, func(t *testing.T, d desk) {
			d.store.LoseCommit(1, fate)
			answer, err := d.Execute(t.Context(), intent, knowing("done"))
			require.NoError(t, err)
			assert.False(t, answer.Replayed)
			assert.Equal(t, d.record(t).Outcome, answer.Outcome)
			assert.Equal(t, 1, d.seen.Count(port.CommitUnknown))
		})
	}
}

func TestADoubtThatStaysIsAnUnknownOutcome(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		for nth := 1; nth <= 3; nth++ {
			d.store.LoseCommit(nth, storetest.Undone)
		}
		_, err := d.Execute(t.Context(), intent, knowing("done"))
		require.ErrorIs(t, err, port.ErrCommitUnknown)
		assertUnknown(t, err)
		assert.Equal(t, 3, d.store.Commits(), "the first try and two more")
	})
}

// What the store does not keep cannot be counted in the record: the advised wait grows all the same, until it is the
// lease, and begins anew once the store has answered.
func TestTheAdvisedWaitGrowsWhenItIsTheStoresCommitsThatGiveNoAnswer(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		unanswered := func() time.Duration {
			for nth := 1; nth <= 3; nth++ {
				d.store.LoseCommit(nth, storetest.Undone)
			}
			var o operation
			_, err := d.Execute(t.Context(), intent, o.steps)
			assertUnknown(t, err)
			assert.Zero(t, o.calls)
			f, _ := fault.From(err)
			return f.Wait()
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			assert.Equal(t, want*time.Second, unanswered())
		}
		answer, err := d.Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		d.clock.Pass(storetest.Times.Retention)
		assert.Equal(t, time.Second, unanswered())
	})
}

func TestInDoubtTheLeaseIsLeftToRunOut(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.store.LoseCommit(2, storetest.Undone)
		d.store.LeaveAfter(2)
		var o operation
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		d.store.Return()

		_, err = d.beside().Execute(t.Context(), intent, never(t))
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		d.clock.Pass(storetest.Times.Lease)
		_, err = d.beside().Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
	})
}

// C69: a store that is gone has not said that nothing was done.
func TestAStoreThatLeavesInDoubtIsNotUnavailable(t *testing.T) {
	for _, c := range []struct {
		commit int
		fate   storetest.Fate
	}{{1, storetest.Applied}, {1, storetest.Undone}, {2, storetest.Applied}, {2, storetest.Undone}} {
		onBothStores(t, func(t *testing.T, d desk) {
			d.store.LoseCommit(c.commit, c.fate)
			d.store.LeaveAfter(c.commit)
			var o operation
			_, err := d.Execute(t.Context(), intent, o.steps)
			assertUnknown(t, err)
		})
	}
}

func TestAStoreThatLeavesDuringTheCallLeavesAnUnknownOutcome(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.store.LeaveAfter(1)
		var o operation
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.ErrorIs(t, err, port.ErrUnavailable)
		assertUnknown(t, err)
		d.store.Return()
		assert.Equal(t, idempotency.InProgress, d.record(t).Status)
	})
}

func TestATakeoverWhoseCommitGotNoAnswerIsTheRequestsOwn(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)

		o.call = nil
		d.store.LoseCommit(1, storetest.Applied) // the takeover's
		answer, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, 2, d.record(t).Executions, "the takeover was its own")
		assert.Equal(t, 2, o.calls)
	})
}

func TestATakeoverInDoubtWhoseCommitGotNoAnswerIsTheRequestsOwnToo(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)

		o.call = nil
		d.store.LoseCommit(1, storetest.Undone)  // from here on it is in doubt
		d.store.LoseCommit(2, storetest.Applied) // the takeover's, under a token of its own
		answer, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, 2, d.record(t).Executions, "the takeover was its own")
		assert.Equal(t, 2, o.calls)
	})
}

// A commit of its own that is still under way may have ended the execution: before the outside is asked again, the
// record must still be the holder's.
func TestAHolderInDoubtRenewsItsRecordBeforeItCalls(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var leases []time.Time
		o := operation{
			prepare: func(context.Context, port.Tx) error { d.clock.Pass(time.Second); return nil },
			call: func(ctx context.Context) error {
				r, err := storetest.RecordIn(ctx, d.work, intent.Scope)
				leases = append(leases, r.LeaseEnds)
				return err
			},
		}
		begun := d.clock.Now()
		d.store.LoseCommit(2, storetest.Undone)
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		first := begun.Add(storetest.Times.Lease)
		assert.Equal(t, []time.Time{first, first.Add(time.Second)}, leases)
	})
}

// While in doubt a plain read would not see what an old session is about to commit: the reservation waits for it.
func TestInDoubtTheReservationWaitsTheFullTime(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		waits := &waiting{UnitOfWork: d.work}
		d.store = storetest.NewUnreliable(waits)
		d.Executor = idempotent.New(d.store, d.documents, d.seen, storetest.Times)
		d.store.LoseCommit(1, storetest.Applied)
		var o operation
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, []port.Wait{port.Briefly, port.Fully, port.Finishing}, waits.seen,
			"a reservation, the same in doubt, a completion")
	})
}

// Who looks what has become of a completion has made the call: he goes before all who begin, as the completion did.
func TestACompletionInDoubtGoesAheadAgain(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		waits := &waiting{UnitOfWork: d.work}
		d.store = storetest.NewUnreliable(waits)
		d.Executor = idempotent.New(d.store, d.documents, d.seen, storetest.Times)
		d.store.LoseCommit(2, storetest.Applied)
		var o operation
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, []port.Wait{port.Briefly, port.Finishing, port.Finishing}, waits.seen)
	})
}

// waiting notes how long each transaction would wait.
type waiting struct {
	port.UnitOfWork
	seen []port.Wait
}

func (w *waiting) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	w.seen = append(w.seen, wait)
	return w.UnitOfWork.Do(ctx, wait, fn)
}
