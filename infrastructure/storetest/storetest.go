// Package storetest is the contract that every store keeps, as tests that anyone can run against a store of their own:
// what the ports of the domain and the application promise, and what the use cases make of it. The doubles of a
// provider, an observer and a failing store that it needs are here for other tests too.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// Opened is a store under test, empty and migrated, and what is to be known of it.
type Opened struct {
	// Work is the store.
	Work port.UnitOfWork
	// Beside is another unit of work on the same database, as a second instance of the service has it. A store that
	// lives in one process gives Work again.
	Beside port.UnitOfWork
	// LockTimeout is the store's: how long port.Fully waits. A second at least, so that what ends earlier can be told.
	LockTimeout time.Duration
	// OneAtATime declares that writing transactions run one after the other. A wait for a row is then a wait for the
	// store, so it ends as port.ErrUnavailable where other stores know what is busy.
	OneAtATime bool
}

// check is one fact of the contract; its name is the sentence that states it.
type check struct {
	name string
	run  func(t *testing.T, s Opened)
}

// patience is the lock timeout where many come at once and none of them may wait in vain, however slow the machine is.
const patience = time.Minute

// Run checks the whole contract. Each check opens a store of its own, with a lock timeout of at least so much; the opener
// has it closed by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, atLeast time.Duration) Opened) {
	t.Helper()
	for _, part := range []struct {
		name    string
		checks  []check
		atLeast time.Duration
	}{
		{"transactions", transactions, 0},
		{"waits", waits, 0},
		{"orders", orders, 0},
		{"records", records, 0},
		{"races", races, patience},
		{"sweeping", sweeping, 0},
		{"unresolved", unresolved, 0},
		{"entries", entries, 0},
		{"audit log", auditLog, 0},
		{"confirming", confirming, 0},
		{"crowds", crowds, patience},
		{"doubt", doubt, 0},
		{"recovering", recovering, 0},
		{"booking", booking, patience},
		{"comparing", comparing, 0},
		{"reconciling", reconciling, 0},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.checks {
				t.Run(c.name, func(t *testing.T) { c.run(t, open(t, part.atLeast)) })
			}
		})
	}
}

// busy is what a wait for a row ends as: the fault that names it, or that of a store that holds all rows together.
func (s Opened) busy(named error) error {
	if s.OneAtATime {
		return port.ErrUnavailable
	}
	return named
}

// told checks what a client is told: the outermost fault of an error counts, not what lies behind it.
func told(t *testing.T, err, want error, about ...any) {
	t.Helper()
	says, ok := fault.From(err)
	require.True(t, ok, "%v is no fault", err)
	expected, _ := fault.From(want)
	require.Equal(t, expected.Code(), says.Code(), about...)
}

// either is one of the two units of work, turn by turn.
func (s Opened) either(i int) port.UnitOfWork {
	if i%2 == 0 {
		return s.Work
	}
	return s.Beside
}

// do runs a transaction that must succeed.
func do(t *testing.T, w port.UnitOfWork, fn func(tx port.Tx) error) {
	t.Helper()
	require.NoError(t, w.Do(t.Context(), port.Fully, fn))
}

// orderIn is the stored order as anyone else reads it.
func orderIn(t *testing.T, w port.UnitOfWork, id order.ID) order.State {
	t.Helper()
	var found order.State
	require.NoError(t, w.Read(t.Context(), func(tx port.Tx) error {
		o, err := tx.Orders().Find(t.Context(), id, alice)
		if err != nil {
			return err
		}
		found = o.State()
		return nil
	}))
	return found
}

// RecordIn is the stored record of a scope as anyone else reads it. Error: idempotency.ErrNotFound.
func RecordIn(ctx context.Context, w port.UnitOfWork, s idempotency.Scope) (found idempotency.Record, err error) {
	err = w.Read(ctx, func(tx port.Tx) (err error) {
		found, err = tx.Records().Find(ctx, s)
		return err
	})
	return found, err
}

// Age makes a record look older than it is, its holder's token untouched: the lease and the retention end earlier by d.
func Age(ctx context.Context, w port.UnitOfWork, s idempotency.Scope, d time.Duration) error {
	return w.Do(ctx, port.Fully, func(tx port.Tx) error {
		young, err := tx.Records().Find(ctx, s)
		if err != nil {
			return err
		}
		old := young
		old.LeaseEnds = young.LeaseEnds.Add(-d)
		if !young.ExpiresAt.IsZero() {
			old.ExpiresAt = young.ExpiresAt.Add(-d)
		}
		return tx.Records().Replace(ctx, young, old)
	})
}

// Vanish removes a record under its holder's feet, as an outside hand would.
func Vanish(ctx context.Context, w port.UnitOfWork, s idempotency.Scope) error {
	return w.Do(ctx, port.Fully, func(tx port.Tx) error {
		r, err := tx.Records().Find(ctx, s)
		if err != nil {
			return err
		}
		expired := r.Completed(idempotency.Outcome{Document: []byte("{}")}, tx.Now().Add(-time.Hour), time.Minute)
		if err := tx.Records().Replace(ctx, r, expired); err != nil {
			return err
		}
		_, err = tx.Records().Sweep(ctx, 1)
		return err
	})
}

// atOnce starts n functions together and returns when all have ended.
func atOnce(n int, fn func(i int)) {
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	running.Wait()
}

// hold runs fn in a transaction and keeps that open. The release commits it.
func hold(t *testing.T, w port.UnitOfWork, fn func(tx port.Tx) error) (release func()) {
	t.Helper()
	holding, released, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- w.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			close(holding)
			<-released
			return nil
		})
	}()
	release = sync.OnceFunc(func() {
		close(released)
		require.NoError(t, <-ended)
	})
	select {
	case <-holding:
	case err := <-ended:
		require.NoError(t, err)
		require.Fail(t, "the transaction ended before it was held")
	}
	t.Cleanup(func() { // a check that has failed must not leave it open
		select {
		case <-released:
		default:
			close(released)
			t.Logf("the transaction that was still held ended: %v", <-ended)
		}
	})
	return release
}
