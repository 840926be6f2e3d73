package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"kakutei/application/idempotent"
)

// recovering finishes what was left in progress, from time to time.
type recovering struct {
	recovery *idempotent.Recovery
	interval time.Duration // 0: off
	log      *slog.Logger
	told     func(tried []idempotent.Tried, err error)
}

// recoveryRound is how many records one round tries at most.
const recoveryRound = 100

// run recovers until ctx ends. The first round comes at once: what a crash has left may be due.
func (r recovering) run(ctx context.Context) {
	if r.interval == 0 {
		return
	}
	for {
		r.round(ctx)
		select {
		case <-time.After(around(r.interval)):
		case <-ctx.Done():
			return
		}
	}
}

// round logs what could be settled, and what could not when that is news: a dead order is tried for ever. It never
// panics: the recovery lives as long as the service.
func (r recovering) round(ctx context.Context) {
	defer func() {
		if cause := recover(); cause != nil {
			r.told(nil, fmt.Errorf("panic: %v", cause))
			r.log.ErrorContext(ctx, "looking for unresolved records failed", "error", fmt.Sprintf("panic: %v", cause))
		}
	}()
	tried, err := r.recovery.Round(ctx, recoveryRound)
	r.told(tried, err)
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "looking for unresolved records failed", "error", err)
	}
	for _, t := range tried {
		attributes := []any{
			"operation", string(t.Record.Operation), "keyHash", t.Record.Key.Digest(), "tries", t.Record.Recoveries,
			"age", time.Since(t.Record.CreatedAt).Round(time.Second).String(),
		}
		switch {
		case t.Err == nil:
			r.log.InfoContext(ctx, "recovered", attributes...)
		case t.Record.Recoveries <= 1:
			r.log.WarnContext(ctx, "not recovered yet", append(attributes, "error", t.Record.Key.HiddenIn(t.Err.Error()))...)
		default:
			r.log.DebugContext(ctx, "not recovered yet", append(attributes, "error", t.Record.Key.HiddenIn(t.Err.Error()))...)
		}
	}
}
