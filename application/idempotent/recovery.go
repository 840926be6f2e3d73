package idempotent

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// atOnce is how many records a round tries at the same time: a provider that hangs keeps the others waiting less.
const atOnce = 4

// Round tries what is due, limit records at most, and tells what became of each. Several instances may do so at once:
// each record is tried by one. One that cannot be settled, or whose use case panics, stops no other.
func (r *Recovery) Round(ctx context.Context, limit int) ([]Tried, error) {
	var due []idempotency.Record
	err := r.work.Read(ctx, func(tx port.Tx) (err error) {
		due, err = tx.Records().Unresolved(ctx, true, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	results := make([]*Tried, len(due))
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, left := range due {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			results[i] = r.tryOne(ctx, left)
		})
	}
	running.Wait()
	var tried []Tried
	for _, t := range results {
		if t != nil {
			tried = append(tried, *t)
		}
	}
	return tried, ctx.Err()
}

// tryOne tries a record, unless another instance or the client is faster.
func (r *Recovery) tryOne(ctx context.Context, left idempotency.Record) *Tried {
	won, err := r.win(ctx, left)
	switch {
	case errors.Is(err, idempotency.ErrLost), errors.Is(err, idempotency.ErrInProgress), errors.Is(err, idempotency.ErrNotFound):
		return nil
	case err != nil:
		return &Tried{left, err}
	}
	answer, err := r.try(ctx, won)
	if err == nil && answer.Replayed { // faster still
		return nil
	}
	return &Tried{won, err}
}

// win postpones the next try before this one begins: should the process die of it, the others have their turn.
func (r *Recovery) win(ctx context.Context, left idempotency.Record) (won idempotency.Record, err error) {
	err = r.work.Do(ctx, port.Briefly, func(tx port.Tx) error {
		stands, err := tx.Records().Lock(ctx, left.Scope)
		switch {
		case err != nil:
			return err
		case stands.Token != left.Token || !stands.Unresolved(tx.Now()): // its holder has renewed it, or somebody was faster
			return idempotency.ErrLost
		}
		won = stands.Postponed(idempotency.NewToken(), tx.Now(), r.interval)
		return tx.Records().Replace(ctx, stands, won)
	})
	return won, err
}

func (r *Recovery) try(ctx context.Context, won idempotency.Record) (answer Answer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	resume, known := r.resume[won.Operation]
	if !known {
		return Answer{}, fmt.Errorf("nobody resumes %s", won.Operation)
	}
	return resume(ctx, won)
}
