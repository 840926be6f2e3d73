// Package memory is the store for trying the service out and for tests: maps behind the unit of work, forgotten when
// the process ends. Values go in and out, never pointers into the store, and what SQL would refuse is refused here too.
package memory

import (
	"context"
	"errors"
	"sync"
	"time"

	"kakutei/application/port"
)

// DefaultLockTimeout is how long a transaction waits for its turn at most, where LockTimeout says nothing else.
const DefaultLockTimeout = time.Second

// runs is how often a transaction is tried in all when it meets a conflict.
const runs = 3

var (
	errBusy   = errors.New("memory: another transaction did not end in time")
	errClosed = errors.New("memory: the store is closed")
	// errConflict asks for the transaction to be run again.
	errConflict = errors.New("memory: the order's stored version is another one")
)

// Store runs one writing transaction at a time. What it writes lies beside the tables until it commits: so a failure or
// a panic needs no undoing, readers see nothing uncommitted, and nobody waits for a reader.
//
// Since all rows are held together, a wait for one of them ends as port.ErrUnavailable. It may be long for either
// port.Wait, because transactions are short. A transaction inside a transaction waits for itself and ends likewise.
type Store struct {
	clock       func() time.Time
	lockTimeout time.Duration
	turn        chan struct{} // full while a writing transaction runs
	closed      chan struct{}
	close       func()

	mu        sync.RWMutex // of committed, for the length of one look or of one commit
	committed tables
}

// Option is what a Store may be told beside its clock.
type Option func(*Store)

// LockTimeout is how long a transaction waits for its turn at most.
func LockTimeout(d time.Duration) Option {
	return func(s *Store) { s.lockTimeout = d }
}

// New is an empty store whose time is the clock's.
func New(clock func() time.Time, options ...Option) *Store {
	closed := make(chan struct{})
	s := &Store{
		clock: clock, lockTimeout: DefaultLockTimeout, turn: make(chan struct{}, 1),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }), committed: emptyTables(),
	}
	for _, set := range options {
		set(s)
	}
	return s
}

// Do implements port.UnitOfWork. A context that ends before the commit ends the transaction.
func (s *Store) Do(ctx context.Context, _ port.Wait, fn func(tx port.Tx) error) error {
	if err := s.awaitTurn(ctx); err != nil {
		return port.ErrUnavailable.Because(err)
	}
	defer func() { <-s.turn }()
	var err error
	for range runs {
		if err = s.try(ctx, fn); !errors.Is(err, errConflict) {
			return err
		}
	}
	return port.ErrUnavailable.Because(err)
}

func (s *Store) try(ctx context.Context, fn func(tx port.Tx) error) error {
	t := s.begin()
	if err := fn(t); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	if err := s.usable(ctx); err != nil {
		return port.ErrUnavailable.Because(err)
	}
	s.commit(t)
	return nil
}

// Read implements port.UnitOfWork. It waits for nobody; each look sees what is committed by then.
func (s *Store) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	if err := s.usable(ctx); err != nil {
		return port.ErrUnavailable.Because(err)
	}
	t := s.begin()
	t.readOnly = true
	return fn(t)
}

// Ready tells whether a transaction could begin.
func (s *Store) Ready(ctx context.Context) error { return s.usable(ctx) }

// Close ends the store: from now on it is unavailable. Its content is gone with the last reference to it.
func (s *Store) Close() error {
	s.close()
	return nil
}

func (s *Store) begin() *tx {
	return &tx{store: s, now: s.clock().UTC().Truncate(time.Microsecond)}
}

func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return errClosed
	default:
		return ctx.Err()
	}
}

func (s *Store) awaitTurn(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	timeout := time.NewTimer(s.lockTimeout)
	defer timeout.Stop()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errClosed
	case <-timeout.C:
		return errBusy
	}
}
