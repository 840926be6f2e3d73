package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// lockTimeout is short: much of the contract is about waits that run out.
const lockTimeout = 500 * time.Millisecond

func TestTheStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, atLeast time.Duration) storetest.Opened {
		wait := max(atLeast, lockTimeout)
		return opened(memory.New(time.Now, memory.LockTimeout(wait)), wait)
	})
}

func TestTheStoreThatDefersItsWritesKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, atLeast time.Duration) storetest.Opened {
		wait := max(atLeast, lockTimeout)
		return opened(memory.NewDeferring(memory.New(time.Now, memory.LockTimeout(wait))), wait)
	})
}

func opened(w port.UnitOfWork, wait time.Duration) storetest.Opened {
	return storetest.Opened{Work: w, Beside: w, LockTimeout: wait, OneAtATime: true}
}

func TestATransactionInsideATransactionIsUnavailableInsteadOfWaitingForEver(t *testing.T) {
	s := memory.New(time.Now, memory.LockTimeout(time.Millisecond))
	err := s.Do(t.Context(), port.Fully, func(port.Tx) error {
		return s.Do(t.Context(), port.Fully, func(port.Tx) error { return nil })
	})
	require.ErrorIs(t, err, port.ErrUnavailable)
	require.NoError(t, s.Do(t.Context(), port.Fully, func(port.Tx) error { return nil }))
}

func TestAReaderInsideATransactionReadsWhatIsCommitted(t *testing.T) {
	s := memory.New(time.Now, memory.LockTimeout(time.Millisecond))
	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		if _, err := tx.Records().Reserve(t.Context(), reservation, time.Minute); err != nil {
			return err
		}
		_, err := storetest.RecordIn(t.Context(), s, reservation.Scope)
		require.ErrorIs(t, err, idempotency.ErrNotFound)
		return nil
	}))
}

func TestAWriteThatWasRefusedCannotBePassedOver(t *testing.T) {
	s := memory.New(time.Now)
	err := s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		stands, err := tx.Records().Reserve(t.Context(), reservation, time.Minute)
		require.NoError(t, err)
		stands.Token = idempotency.NewToken()
		require.ErrorIs(t, tx.Records().Replace(t.Context(), stands, stands), idempotency.ErrLost)
		return nil
	})
	require.ErrorIs(t, err, idempotency.ErrLost)
	_, err = storetest.RecordIn(t.Context(), s, reservation.Scope)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}

func TestTheTimeIsTheClocksInUTCAndWholeMicroseconds(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*60*60)
	now := time.Date(2026, 11, 30, 10, 2, 3, 123_456_789, tokyo)
	s := memory.New(func() time.Time { return now })
	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		before := tx.Now()
		assert.Equal(t, time.Date(2026, 11, 30, 1, 2, 3, 123_456_000, time.UTC), before)
		now = now.Add(time.Second)
		assert.Equal(t, before, tx.Now(), "one time per transaction")
		return nil
	}))
}

func TestAStoreIsReadyUntilItIsClosed(t *testing.T) {
	s := memory.New(time.Now)
	require.NoError(t, s.Ready(t.Context()))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, s.Ready(over))

	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing twice does no harm")
	require.Error(t, s.Ready(t.Context()))
	nothing := func(port.Tx) error { return nil }
	require.ErrorIs(t, s.Do(t.Context(), port.Fully, nothing), port.ErrUnavailable)
	require.ErrorIs(t, s.Read(t.Context(), nothing), port.ErrUnavailable)
}

func TestClosingEndsTheWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(time.Now, memory.LockTimeout(time.Hour))
		started := time.Now()
		err := s.Do(t.Context(), port.Fully, func(port.Tx) error {
			ended := make(chan error, 1)
			go func() { ended <- s.Do(t.Context(), port.Fully, func(port.Tx) error { return nil }) }()
			synctest.Wait() // until it waits
			require.NoError(t, s.Close())
			require.ErrorIs(t, <-ended, port.ErrUnavailable)
			return nil
		})
		require.ErrorIs(t, err, port.ErrUnavailable, "it was not committed by then")
		assert.Equal(t, started, time.Now(), "no wait ran out")
	})
}

func TestAWaitEndsWithItsContextAndAtTheLockTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(time.Now, memory.LockTimeout(time.Second))
		require.NoError(t, s.Do(t.Context(), port.Fully, func(port.Tx) error {
			for _, c := range []struct{ patience, waited time.Duration }{
				{time.Millisecond, time.Millisecond}, {time.Minute, time.Second},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				started := time.Now()
				err := s.Do(ctx, port.Briefly, func(port.Tx) error { return nil })
				require.ErrorIs(t, err, port.ErrUnavailable)
				assert.Equal(t, c.waited, time.Since(started))
				cancel()
			}
			return nil
		}))
	})
}

func TestASweepTakesWhatItsOwnTransactionWroteUpToItsLimit(t *testing.T) {
	s := memory.New(time.Now)
	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		for _, key := range []idempotency.Key{"a", "b", "c"} {
			n := reservation
			n.Key = key
			held, err := tx.Records().Reserve(t.Context(), n, time.Minute)
			require.NoError(t, err)
			done := held.Completed(idempotency.Outcome{}, tx.Now().Add(-time.Hour), time.Minute)
			require.NoError(t, tx.Records().Replace(t.Context(), held, done))
		}
		for _, want := range []int{2, 1, 0} {
			swept, err := tx.Records().Sweep(t.Context(), 2)
			require.NoError(t, err)
			assert.Equal(t, want, swept)
		}
		return nil
	}))
}

var reservation = idempotency.Reservation{
	Scope:   idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "k"},
	Request: idempotency.Request("").With("amount", "1000"),
	Token:   idempotency.NewToken(),
}
