package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// stubborn is a store that does something of the test's own before each transaction.
type stubborn struct {
	port.UnitOfWork
	before func(ctx context.Context, n int) error
	n      int
}

func (s *stubborn) Do(ctx context.Context, wait port.Wait, fn func(port.Tx) error) error {
	s.n++
	if err := s.before(ctx, s.n); err != nil {
		return err
	}
	return s.UnitOfWork.Do(ctx, wait, fn)
}

func TestObservingWaitsForNothingAndTheQueueIsBounded(t *testing.T) {
	const room = 10_000
	writing, goOn := make(chan struct{}), make(chan struct{})
	work := memory.New(time.Now)
	store := &stubborn{UnitOfWork: work, before: func(_ context.Context, n int) error {
		if n == 1 {
			close(writing)
			<-goOn
		}
		return nil
	}}
	o := hired(store).open(t)
	o.observe(t, happening(port.Takeover, 0))
	<-writing // and it hangs

	observed := make(chan struct{})
	go func() {
		defer close(observed)
		o.observe(t, takeovers(room + 6)[1:]...)
	}()
	select {
	case <-observed:
	case <-time.After(20 * time.Second):
		require.Fail(t, "somebody waits for the audit log")
	}
	close(goOn)
	o.log.await(t, `"msg":"audit entries were lost: too many were waiting","entries":6`)
	o.close()
	assertKeys(t, written(t, work), room)
}

func TestAStoreThatIsAwayIsTriedAgainUntilItIsBack(t *testing.T) {
	onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
		store := storetest.NewUnreliable(work)
		store.LeaveAfter(0)
		o := hired(store).open(t)
		o.observe(t, takeovers(3)...)
		o.log.await(t, `"msg":"the audit log cannot be written"`)
		assert.Empty(t, written(t, work))
		store.Return()
		require.Eventually(t, func() bool { return store.Commits() > 0 }, 20*time.Second, time.Millisecond)
		o.close()
		assertKeys(t, written(t, work), 3)
	})
}

// An entry that may be there is sent again; its event id tells that it is.
func TestACommitWithoutAnAnswerWritesNoEntryTwiceAndLosesNone(t *testing.T) {
	for _, fate := range []storetest.Fate{storetest.Applied, storetest.Undone} {
		t.Run(string(fate), func(t *testing.T) {
			onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
				store := storetest.NewUnreliable(work)
				store.LoseCommit(1, fate)
				store.LoseCommit(2, fate)
				o := hired(store)
				o.observe(t, takeovers(501)...)
				o.open(t)
				require.Eventually(t, func() bool { return store.Commits() == 4 }, 20*time.Second, time.Millisecond)
				o.close()
				assertKeys(t, written(t, work), 501)
			})
		})
	}
}

func TestAPanicOfTheStoreEndsNeitherTheServiceNorTheWriting(t *testing.T) {
	work := memory.New(time.Now)
	o := hired(&stubborn{UnitOfWork: work, before: func(_ context.Context, n int) error {
		if n == 1 {
			panic("a bug in the store")
		}
		return nil
	}}).open(t)
	o.observe(t, takeovers(2)...)
	o.log.await(t, "a bug in the store")
	o.close()
	assertKeys(t, written(t, work), 2)
}

func TestWhatWasObservedBeforeTheEndIsWritten(t *testing.T) {
	onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
		o := hired(work)
		o.WithPatience(time.Minute)
		o.observe(t, takeovers(1001)...)
		o.Run(over(t)) // it is asked to end before it has begun
		assertKeys(t, written(t, work), 1001)
	})
}

func TestATransactionThatTheEndInterruptsIsSentAgain(t *testing.T) {
	work := memory.New(time.Now)
	store := &stubborn{UnitOfWork: work}
	o := hired(store)
	store.before = func(ctx context.Context, n int) error {
		if n == 1 {
			o.cancel()
			<-ctx.Done()
		}
		return nil
	}
	o.observe(t, takeovers(2)...)
	o.open(t)
	<-o.ended
	assertKeys(t, written(t, work), 2)
}

func TestAStoreThatComesBackInTheEndIsWaitedFor(t *testing.T) {
	work := memory.New(time.Now)
	store := &stubborn{UnitOfWork: work}
	o := hired(store)
	store.before = func(_ context.Context, n int) error {
		if n == 1 {
			o.cancel()
		}
		if n < 4 {
			return port.ErrUnavailable.Because(errors.New("gone for a moment"))
		}
		return nil
	}
	o.observe(t, takeovers(2)...)
	o.open(t)
	<-o.ended
	assertKeys(t, written(t, work), 2)
}

// The service is not held up for long, and the log tells how much is lost.
func TestAStoreThatStaysAwayInTheEndIsWaitedForForTwoSeconds(t *testing.T) {
	work := memory.New(time.Now)
	require.NoError(t, work.Close())
	o := hired(work)
	o.observe(t, takeovers(10_003)...)
	o.open(t)
	o.log.await(t, `"msg":"the audit log cannot be written"`)
	begun := time.Now()
	o.close()
	assert.Less(t, time.Since(begun), 4*time.Second)
	said, _ := o.log.read()
	assert.Contains(t, said, `"msg":"audit entries were lost: the store could not be written","entries":10003`)
}
