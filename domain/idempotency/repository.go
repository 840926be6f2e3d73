package idempotency

import (
	"context"
	"time"
)

// Repository is the port to stored records, bound to one transaction. It decides nothing: Judge does.
type Repository interface {
	// Reserve stores the reservation's record unless its scope has one, and returns the record that stands now: the
	// reservation's token tells that it is the reservation's. A store may presume that the scope has none, if the transaction
	// starts anew where one stands; the record's times are then a little before those that are stored. Error: ErrInProgress
	// when another transaction holds the scope for longer than this one waits.
	Reserve(ctx context.Context, n Reservation, lease time.Duration) (Record, error)

	// Replace stores next in the place of old, if old's scope, token and status still stand: the one way to change a
	// record. Error, at the latest from the commit: ErrLost when they do not.
	Replace(ctx context.Context, old, next Record) error

	// Find reads a record, an expired one too. Error: ErrNotFound.
	Find(ctx context.Context, s Scope) (Record, error)

	// Lock reads a record, an expired one too, and keeps others from changing it until the transaction ends. Who also
	// locks an aggregate locks that first. Errors: ErrNotFound; ErrInProgress when another transaction holds the record
	// for longer than this one waits.
	Lock(ctx context.Context, s Scope) (Record, error)

	// Unresolved lists records in progress whose lease is over, oldest first, limit at most. due leaves out those that
	// the recovery leaves alone for now, and begins with the one that has been due the longest: so that no number of
	// hopeless records keeps the others from their turn. Candidates only: Replace decides.
	Unresolved(ctx context.Context, due bool, limit int) ([]Record, error)

	// Sweep deletes at most limit records that are finished and past their retention, and tells how many. It leaves out
	// those that another transaction holds.
	Sweep(ctx context.Context, limit int) (int, error)
}
