package idempotent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

var (
	errOutside  = errors.New("the outside gave no answer")
	errRefused  = fault.New("refused", fault.NewKey, "no, for good")
	errWrong    = fault.New("wrong", fault.AfterFix, "mend it")
	errForNow   = fault.New("for_now", fault.SameKey, "not now")
	errAccident = errors.New("an accident")
)

func TestARefusalIsAnOutcome(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{prepare: func(context.Context, port.Tx) error {
			return errRefused.With("orderStatus", "PAID")
		}}
		first, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, errRefused.Code(), first.Refusal)
		assert.JSONEq(t, `{"code":"refused","detail":"no, for good","orderStatus":"PAID"}`, string(first.Document))
		assert.Equal(t, idempotency.Failed, d.record(t).Status)
		assert.Equal(t, 1, d.store.Commits())
		assert.Zero(t, o.calls)

		again, err := d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, first.Outcome, again.Outcome)
	})
}

func TestAFailureBeforeTheFirstCommitLeavesNothing(t *testing.T) {
	for _, cause := range []error{errWrong, errForNow, errAccident} {
		onBothStores(t, func(t *testing.T, d desk) {
			written := anOrder(t)
			_, err := d.Execute(t.Context(), intent, failing(written, cause))
			require.ErrorIs(t, err, cause)
			d.assertNoRecord(t)
			assert.False(t, d.has(t, written))

			_, err = d.Execute(t.Context(), otherIntent, knowing("done")) // the key was not used
			require.NoError(t, err)
		})
	}
}

func TestARefusalByTheOutsideIsRecordedWithWhatItChanged(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		written := anOrder(t)
		o := operation{finish: func(ctx context.Context, tx port.Tx) (any, error) {
			return errRefused, tx.Orders().Add(ctx, written)
		}}
		first, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, errRefused.Code(), first.Refusal)
		assert.Equal(t, idempotency.Failed, d.record(t).Status)
		assert.True(t, d.has(t, written))
		assert.Equal(t, 2, d.store.Commits())
	})
}

// Money may have been taken by then: neither "refused" nor "nothing was done" would be true.
func TestAfterTheCallEveryErrorIsAnUnknownOutcome(t *testing.T) {
	for _, cause := range []error{errRefused, errWrong, errForNow, errAccident, port.ErrUnavailable} {
		onBothStores(t, func(t *testing.T, d desk) {
			written := anOrder(t)
			o := operation{finish: func(ctx context.Context, tx port.Tx) (any, error) {
				if err := tx.Orders().Add(ctx, written); err != nil {
					return nil, err
				}
				return nil, cause
			}}
			_, err := d.Execute(t.Context(), intent, o.steps)
			require.ErrorIs(t, err, cause)
			assertUnknown(t, err)
			assert.Equal(t, idempotency.InProgress, d.record(t).Status)
			assert.False(t, d.has(t, written))

			o.finish = nil
			answer, err := d.Execute(t.Context(), intent, o.steps) // at once: the lease was ended
			require.NoError(t, err)
			assert.Empty(t, answer.Refusal)
			assert.False(t, answer.Replayed)
		})
	}
}

func TestACallWithoutAnAnswerIsAnUnknownOutcome(t *testing.T) {
	for _, cause := range []error{errOutside, errRefused, errWrong} {
		onBothStores(t, func(t *testing.T, d desk) {
			o := operation{call: func(context.Context) error { return cause }}
			_, err := d.Execute(t.Context(), intent, o.steps)
			assertUnknown(t, err)
			assert.Equal(t, idempotency.InProgress, d.record(t).Status)
		})
	}
}

// The provider keeps a store of its own, and its commits can lose their answers too: that is no doubt about the record.
func TestACallsErrorIsTheOutsidesWhateverItIsLike(t *testing.T) {
	for _, like := range []error{port.ErrCommitUnknown, idempotency.ErrLost} {
		onBothStores(t, func(t *testing.T, d desk) {
			o := operation{call: func(context.Context) error { return fmt.Errorf("the provider's: %w", like) }}
			_, err := d.Execute(t.Context(), intent, o.steps)
			assertUnknown(t, err)
			assert.Equal(t, 1, o.calls)
			assert.Equal(t, 1, d.seen.Count(port.Called))
			assert.Zero(t, d.seen.Count(port.CommitUnknown)+d.seen.Count(port.LeaseLost))
			o.call = nil
			_, err = d.Execute(t.Context(), intent, o.steps)
			require.NoError(t, err, "its lease was ended")
		})
	}
}

func TestALaterExecutionCanNeitherRefuseNorAskForAFix(t *testing.T) {
	for _, cause := range []error{errRefused, errWrong} {
		onBothStores(t, func(t *testing.T, d desk) {
			o := operation{call: func(context.Context) error { return errOutside }}
			_, err := d.Execute(t.Context(), intent, o.steps)
			assertUnknown(t, err)

			_, err = d.Execute(t.Context(), intent, failing(anOrder(t), cause))
			assertUnknown(t, err)
			assert.Equal(t, idempotency.InProgress, d.record(t).Status)

			o.call = nil
			_, err = d.Execute(t.Context(), intent, o.steps)
			require.NoError(t, err)
		})
	}
}

// The takeover is rolled back with everything else; that there was one more execution is not.
func TestALateRefusalCountsAsAnExecutionAndTheAdvisedWaitGrows(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		for executions := 2; executions <= 4; executions++ {
			_, err := d.Execute(t.Context(), intent, failing(anOrder(t), errRefused))
			f, _ := fault.From(err)
			require.NotNil(t, f)
			assert.Equal(t, time.Second<<(executions-1), f.Wait())
			assert.Equal(t, executions, d.record(t).Executions)
			assert.Equal(t, d.clock.Now(), d.record(t).LeaseEnds, "nobody waits for it")
		}
	})
}

func TestALaterExecutionMayBeToldToWait(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		_, err = d.Execute(t.Context(), intent, failing(anOrder(t), errForNow))
		require.ErrorIs(t, err, errForNow)
	})
}

func TestAnExpiredKeysExecutionIsAFirstOne(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		_, err := d.Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		d.clock.Pass(storetest.Times.Retention)
		answer, err := d.Execute(t.Context(), intent, failing(anOrder(t), errRefused))
		require.NoError(t, err)
		assert.Equal(t, errRefused.Code(), answer.Refusal)
	})
}

func TestADocumentThatCannotBeWrittenIsAnAccident(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		d.documents.broken = errAccident
		_, err := d.Execute(t.Context(), intent, knowing("done"))
		require.ErrorIs(t, err, errAccident)
		d.assertNoRecord(t)

		var o operation
		_, err = d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		d.documents.broken = nil
		answer, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, d.record(t).Outcome, answer.Outcome)
	})
}

// assertUnknown shows the one fault that neither promises nor denies an effect.
func assertUnknown(t *testing.T, err error) {
	t.Helper()
	f, ok := fault.From(err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, idempotency.ErrOutcomeUnknown.Code(), f.Code())
	assert.Equal(t, fault.SameKey, f.Advice())
	assert.Positive(t, f.Wait())
}
