// Package port is what every use case needs from outside, and nothing else.
package port

import (
	"context"
	"errors"
	"time"

	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// UnitOfWork runs functions in transactions: the one way to the store.
type UnitOfWork interface {
	// Do runs fn in a transaction and commits what it wrote, or nothing when it fails or panics. When the store asks for
	// it (serialization failure, deadlock, busy), fn runs again from the start, three times in all, and once more if it has
	// shared the store's transaction with others: so it has no effect outside tx but variables that it sets anew each time.
	//
	// Errors: fn's own, nothing is written; ErrUnavailable, nothing is written; ErrCommitUnknown, nobody knows.
	Do(ctx context.Context, wait Wait, fn func(tx Tx) error) error

	// Read runs fn in a transaction that writes nothing and waits for no row. Errors: fn's own; ErrUnavailable.
	Read(ctx context.Context, fn func(tx Tx) error) error
}

// Wait says how long a transaction waits for what another one holds, and behind whom.
type Wait int

const (
	// Briefly is for reservations, 100 ms at most: a queue for one busy order must not eat the pool.
	Briefly Wait = iota
	// Fully is for whatever settles a doubt, or has no cheap repetition: the store's lock timeout.
	Fully
	// Finishing is for completions: as long as Fully, and before all who wait to begin. The call has been made, and they hold
	// a lease.
	Finishing
)

// Tx is one transaction. A write may be sent as late as the next read or the commit: its error comes from there at the
// latest, so a function returns a write's error and never decides by it.
type Tx interface {
	// Now is the store's time, brought along by the transaction's first statement or carried on from one before, UTC in whole
	// microseconds. Use cases have no other clock.
	Now() time.Time
	Orders() order.Repository
	Records() idempotency.Repository
	Journal() journal.Repository
	Audit() AuditLog
}

var (
	// ErrUnavailable says that the store, or room for one more at work, is missing, and that nothing was done.
	ErrUnavailable = fault.New("unavailable", fault.SameKey, "the service cannot do this right now; nothing was done")
	// ErrCommitUnknown says that a commit was sent and no answer came. It may have been applied, or be in a moment.
	ErrCommitUnknown = errors.New("commit sent, no answer")
)
