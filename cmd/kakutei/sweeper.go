package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/application/port"
)

// sweeper deletes finished, expired records and old audit entries from time to time. Expired records count as absent
// anyway, so nothing depends on it but the store's size: an error is logged, and the next round tries again. Records may
// be left to kakutei sweep; the audit log has nobody else, and its retention is a promise of its own.
type sweeper struct {
	work     port.UnitOfWork
	pace     idempotent.Pace
	interval time.Duration // of the records; 0: off
	auditFor time.Duration // how long an audit entry is kept
	log      *slog.Logger
	told     func(records, auditEntries int, err error)
}

// run sweeps until ctx ends.
func (s sweeper) run(ctx context.Context) {
	for {
		select {
		case <-time.After(around(s.pause())):
			s.round(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// auditAlone is how often the audit log is swept when the records are not, or sooner if it is kept for less.
const auditAlone = time.Hour

func (s sweeper) pause() time.Duration {
	if s.interval == 0 {
		return min(auditAlone, s.auditFor)
	}
	return s.interval
}

// around is the interval, give or take a tenth: instances that were started together shall not work together.
func around(interval time.Duration) time.Duration {
	tenth := interval / 10
	return interval - tenth + rand.N(2*tenth+1) //nolint:gosec // jitter is no secret
}

// round never panics: the sweeper lives as long as the service.
func (s sweeper) round(ctx context.Context) {
	records, entries, err := s.sweep(ctx)
	n := records + entries
	s.told(records, entries, err)
	switch {
	case err != nil && ctx.Err() != nil: // stopped half-way; the next start goes on
	case err != nil:
		s.log.WarnContext(ctx, "sweeping expired records failed", "deleted", n, "error", err)
	case n > 0:
		s.log.InfoContext(ctx, "swept expired records", "deleted", n)
	}
}

func (s sweeper) sweep(ctx context.Context) (records, entries int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if s.interval > 0 {
		records, err = idempotent.Sweep(ctx, s.work, s.pace)
	}
	var auditErr error
	entries, auditErr = oversight.SweepAudit(ctx, s.work, s.pace, s.auditFor)
	return records, entries, errors.Join(err, auditErr)
}
