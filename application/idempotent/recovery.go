package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// Resume has a stored request executed: by the use case's own door, as a client's retry would.
type Resume func(ctx context.Context, left idempotency.Record) (Answer, error)

// Recovery is a client without a connection: it finishes what its holders have left in progress.
type Recovery struct {
	work     port.UnitOfWork
	resume   map[idempotency.Operation]Resume
	interval time.Duration
}

// NewRecovery makes a recovery. Only operations with a call to the outside can be left in progress. interval is the
// first backoff after a try.
func NewRecovery(w port.UnitOfWork, interval time.Duration, resume map[idempotency.Operation]Resume) *Recovery {
	return &Recovery{work: w, resume: resume, interval: interval}
}

// Tried is what became of one record in a round.
type Tried struct {
	Record idempotency.Record // as the recovery tried it; Recoveries counts this try
	Err    error              // nil: it has its outcome now
}

// Round tries what is due, limit records at most, oldest first, and tells what became of each. Several instances may do
// so at once: each record is tried by one. One that cannot be settled, or whose use case panics, stops no other.
func (r *Recovery) Round(ctx context.Context, limit int) (tried []Tried, err error) {
	var due []idempotency.Record
	err = r.work.Read(ctx, func(tx port.Tx) (err error) {
		due, err = tx.Records().Unresolved(ctx, true, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, left := range due {
		if ctx.Err() != nil {
			return tried, ctx.Err()
		}
		switch won, err := r.win(ctx, left); {
		case errors.Is(err, idempotency.ErrLost), errors.Is(err, idempotency.ErrInProgress): // somebody else was faster
		case err != nil:
			tried = append(tried, Tried{left, err})
		default:
			tried = append(tried, Tried{won, r.try(ctx, won)})
		}
	}
	return tried, nil
}

// win postpones the next try before this one begins: should the process die of it, the others have their turn.
func (r *Recovery) win(ctx context.Context, left idempotency.Record) (won idempotency.Record, err error) {
	err = r.work.Do(ctx, port.Briefly, func(tx port.Tx) error {
		won = left.Postponed(idempotency.NewToken(), tx.Now(), r.interval)
		return tx.Records().Replace(ctx, left, won)
	})
	return won, err
}

func (r *Recovery) try(ctx context.Context, won idempotency.Record) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	resume, known := r.resume[won.Operation]
	if !known {
		return fmt.Errorf("nobody resumes %s", won.Operation)
	}
	_, err = resume(ctx, won)
	return err
}
