package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"kakutei/application/oversight"
)

// comparing compares the provider's charges with orders and entries from time to time, and logs what it finds. It
// changes nothing.
type comparing struct {
	reconciliation oversight.Reconciliation
	interval       time.Duration // 0: off
	log            *slog.Logger
	told           func(tally oversight.Tally, at time.Time, err error)
}

// leastWindow is how far each round goes back, or two intervals if those are longer: a payment is compared more than
// once, so that one that was unresolved then is compared when it is not.
const leastWindow = 24 * time.Hour

// maxLogged is how many findings one round logs one by one.
const maxLogged = 20

// run compares until ctx ends.
func (c comparing) run(ctx context.Context) {
	if c.interval == 0 {
		return
	}
	for {
		select {
		case <-time.After(around(c.interval)):
			c.round(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// round never panics: it runs beside the service, not in it.
func (c comparing) round(ctx context.Context) {
	defer func() {
		if cause := recover(); cause != nil {
			c.told(oversight.Tally{}, time.Now(), fmt.Errorf("panic: %v", cause))
			c.log.ErrorContext(ctx, "comparing with the provider failed", "error", fmt.Sprintf("panic: %v", cause))
		}
	}()
	logged := 0
	tally, err := c.reconciliation.Run(ctx, max(leastWindow, 2*c.interval), func(f oversight.Finding) error {
		if f.Kind != oversight.Unresolved && logged < maxLogged {
			logged++
			c.log.ErrorContext(ctx, "finding", "kind", string(f.Kind), "order", f.OrderID, "charge", f.ChargeID, "detail", f.Detail)
		}
		return nil
	})
	c.told(tally, time.Now(), err)
	if err != nil {
		if ctx.Err() == nil {
			c.log.WarnContext(ctx, "comparing with the provider failed", "error", err)
		}
		return
	}
	counts := []any{"charges", tally.Charges, "payments", tally.PaidOrders, "unresolved", tally.Unresolved}
	for _, kind := range oversight.FindingKinds {
		counts = append(counts, string(kind), tally.Findings[kind])
	}
	if !tally.Whole() {
		counts = append(counts, "unreadable", tally.Unreadable, "elsewhere", tally.Elsewhere)
	}
	level := slog.LevelInfo
	if tally.Total() > 0 || !tally.Whole() {
		level = slog.LevelError
	}
	c.log.Log(ctx, level, "compared with the provider", counts...)
}
