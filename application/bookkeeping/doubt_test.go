package bookkeeping_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

func TestACommitWithoutAnAnswerIsSettledByPostingAgainUnderTheSameID(t *testing.T) {
	for _, fate := range []storetest.Fate{storetest.Applied, storetest.Undone} {
		onBothStores(t, func(t *testing.T, o office) {
			o.Store.LoseCommit(1, fate)
			posted := o.posted(t, invoice(t, "inv-1"))
			assert.False(t, posted.Repeated, "what it meets is its own")
			assert.Equal(t, 2, o.Store.Commits())
			assert.Zero(t, o.Seen.Count(port.Duplicate), fate)

			again := o.posted(t, invoice(t, "inv-1"))
			assert.True(t, again.Repeated)
			assert.Equal(t, posted.Entry, again.Entry, fate)
		})
	}
}

func TestTwoCommitsWithoutAnAnswerAreSettledToo(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		o.Store.LoseCommit(1, storetest.Undone)
		o.Store.LoseCommit(2, storetest.Applied)
		posted := o.posted(t, invoice(t, "inv-1"))
		assert.False(t, posted.Repeated)
		assert.Equal(t, posted.Entry, o.posted(t, invoice(t, "inv-1")).Entry)
	})
}

func TestACommitThatIsAppliedAfterItWasGivenUpIsWaitedFor(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		o.Store.LoseCommit(1, storetest.Late)
		late := &lateStore{Unreliable: o.Store, applied: make(chan error, 1)}
		o.Work = late
		posted := o.posted(t, invoice(t, "inv-1"))
		require.NoError(t, <-late.applied)
		assert.False(t, posted.Repeated)
		assert.Zero(t, o.Seen.Count(port.Duplicate))

		o.Work = o.Store
		assert.Equal(t, posted.Entry, o.posted(t, invoice(t, "inv-1")).Entry)
	})
}

// lateStore applies the late commit once the next transaction is on its way.
type lateStore struct {
	*storetest.Unreliable
	begun   int
	applied chan error
}

func (s *lateStore) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	s.begun++
	if s.begun == 2 {
		go func() { s.applied <- s.ApplyLate() }()
	}
	return s.Unreliable.Do(ctx, wait, fn)
}

func TestAPostingThatStaysInDoubtIsAnUnknownOutcomeAndTheRetrySettlesIt(t *testing.T) {
	for _, fate := range []storetest.Fate{storetest.Applied, storetest.Undone} {
		onBothStores(t, func(t *testing.T, o office) {
			for n := range 3 {
				o.Store.LoseCommit(n+1, fate)
			}
			_, err := o.PostJournalEntry(t.Context(), invoice(t, "inv-1"))
			require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
			require.ErrorIs(t, err, port.ErrCommitUnknown)
			assert.Equal(t, 1, o.Seen.Count(port.Unknown), "an observer hears of it once")
			assert.Zero(t, o.Seen.Count(port.Completed))
			assert.Equal(t, 3, o.Store.Commits(), "it is not sent for ever")

			o.Store.Settle()
			assert.Equal(t, fate == storetest.Applied, o.posted(t, invoice(t, "inv-1")).Repeated, fate)
		})
	}
}

func TestAStoreThatIsGoneWhileInDoubtIsAnUnknownOutcome(t *testing.T) {
	for _, fate := range []storetest.Fate{storetest.Applied, storetest.Undone} {
		onBothStores(t, func(t *testing.T, o office) {
			o.Store.LoseCommit(1, fate)
			o.Store.LeaveAfter(1)
			_, err := o.PostJournalEntry(t.Context(), invoice(t, "inv-1"))
			require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
			require.ErrorIs(t, err, port.ErrUnavailable, "the log may know why")

			o.Store.Return()
			assert.Equal(t, fate == storetest.Applied, o.posted(t, invoice(t, "inv-1")).Repeated, fate)
		})
	}
}

func TestAStoreThatIsAwayHasBookedNothing(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		o.Store.LeaveAfter(0)
		_, err := o.PostJournalEntry(t.Context(), invoice(t, "inv-1"))
		require.ErrorIs(t, err, port.ErrUnavailable)
		require.NotErrorIs(t, err, idempotency.ErrOutcomeUnknown)
		_, err = o.Entry(t.Context(), "0193a1b2-0000-7000-8000-000000000000", []string{company})
		require.ErrorIs(t, err, port.ErrUnavailable)

		o.Store.Return()
		assert.False(t, o.posted(t, invoice(t, "inv-1")).Repeated)
	})
}
