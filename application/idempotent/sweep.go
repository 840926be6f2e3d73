package idempotent

import (
	"context"
	"time"

	"kakutei/application/port"
)

// SweepBatch is how many rows one sweeping transaction deletes at most, unless the store is better off with fewer.
const SweepBatch = 1000

// resting is how many times as long a sweep rests after a batch as the batch has taken. So it takes a sixteenth of what
// it shares with payments: on a store with one writer that is the writer's time.
const resting = 15

// Pace is how a sweep gives way to the payments beside it. The zero Pace does not.
type Pace struct {
	// Batch is how many rows one transaction deletes at most; zero: SweepBatch.
	Batch int
	// Now measures what a batch takes, and decides nothing about rows: that is the store's time. Nil: a sweep does not rest.
	Now func() time.Time
}

// Sweep deletes all records that are finished and past their retention, batch after batch, and tells how many. Records
// in progress stay, however old. Several sweeps at once share the work.
func Sweep(ctx context.Context, w port.UnitOfWork, p Pace) (total int, err error) {
	return p.Sweep(ctx, w, func(ctx context.Context, tx port.Tx, limit int) (int, error) {
		return tx.Records().Sweep(ctx, limit)
	})
}

// Sweep has rows deleted batch after batch until there are fewer than a batch, and tells how many. The end of ctx ends a
// rest at once. Errors: those of the store and of some; ctx's.
func (p Pace) Sweep(
	ctx context.Context, w port.UnitOfWork, some func(ctx context.Context, tx port.Tx, limit int) (int, error),
) (total int, err error) {
	limit := p.Batch
	if limit == 0 {
		limit = SweepBatch
	}
	for {
		var n int
		var begun time.Time // when it had its turn: while it waits for that, nobody waits for it
		err := w.Do(ctx, port.Briefly, func(tx port.Tx) (err error) {
			begun = p.now()
			n, err = some(ctx, tx, limit)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < limit {
			return total, nil
		}
		if err := rest(ctx, resting*p.now().Sub(begun)); err != nil {
			return total, err
		}
	}
}

func (p Pace) now() time.Time {
	if p.Now == nil {
		return time.Time{}
	}
	return p.Now()
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
