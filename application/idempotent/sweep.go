package idempotent

import (
	"context"

	"kakutei/application/port"
)

// SweepBatch is how many records one sweeping transaction deletes at most.
const SweepBatch = 1000

// Sweep deletes all records that are finished and past their retention, batch after batch, and tells how many. Records
// in progress stay, however old. Several sweeps at once share the work.
func Sweep(ctx context.Context, w port.UnitOfWork) (total int, err error) {
	for {
		var n int
		err := w.Do(ctx, port.Briefly, func(tx port.Tx) (err error) {
			n, err = tx.Records().Sweep(ctx, SweepBatch)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < SweepBatch {
			return total, nil
		}
	}
}
