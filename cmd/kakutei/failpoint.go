package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/payment"
)

// failpoint is a moment of a payment at which the process kills itself, so that the crash tests know when it died. The
// zero value is none. It stands around the ports: the inner layers know nothing of it.
type failpoint string

// The failpoints, in the order in which a payment comes by.
const (
	afterReservation failpoint = "after-reservation" // on record, and the provider is not asked yet
	afterCharge      failpoint = "after-charge"      // the provider has answered, nothing is written
	beforeCommit     failpoint = "before-commit"     // the outcome is written, not committed
	afterCommit      failpoint = "after-commit"      // the outcome is committed, nobody is answered
	duringRecovery   failpoint = "during-recovery"   // the provider has answered the recovery
)

var failpoints = []string{
	"", string(afterReservation), string(afterCharge), string(beforeCommit), string(afterCommit), string(duringRecovery),
}

// failpointConfig says where the process dies.
type failpointConfig struct{ at failpoint }

func (c *failpointConfig) variables() []variable {
	return []variable{{
		name: "KAKUTEI_FAILPOINT", bare: true,
		set: into(&c.at, func(text string) (failpoint, error) {
			name, err := oneOf(failpoints...)(text)
			return failpoint(name), err
		}),
		means: "for tests of crashes, in demo mode only: where in a payment the process kills itself",
	}}
}

// check refuses a failpoint where somebody's money may be at work.
func (c *failpointConfig) check(auth string) error {
	if c.at != "" && auth != demo {
		return errors.New("KAKUTEI_FAILPOINT: only where KAKUTEI_AUTH is demo")
	}
	return nil
}

// reach ends the process if this is the place: at once, as a power cut would. Nothing deferred runs, nobody is answered.
func (f failpoint) reach(place failpoint, log *slog.Logger) {
	if f != place {
		return
	}
	log.Error("failpoint reached, the process kills itself", "failpoint", string(place))
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // that it was sent does not say that it has arrived
	}
	select {}
}

// gateway is the provider with the failpoints around a charge.
func (f failpoint) gateway(p paymentProvider, log *slog.Logger) paymentProvider {
	if f == "" {
		return p
	}
	return failingGateway{p, f, log}
}

type failingGateway struct {
	paymentProvider
	at  failpoint
	log *slog.Logger
}

// Charge implements payment.Gateway.
func (g failingGateway) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	g.at.reach(afterReservation, g.log)
	answer, err := g.paymentProvider.Charge(ctx, a)
	if err != nil {
		return nil, err
	}
	g.at.reach(afterCharge, g.log)
	if ctx.Value(recoveryMark{}) != nil {
		g.at.reach(duringRecovery, g.log)
	}
	return answer, nil
}

// resume is the recovery's way to a payment, told apart from the clients'.
func (f failpoint) resume(resume idempotent.Resume) idempotent.Resume {
	if f == "" {
		return resume
	}
	return func(ctx context.Context, left idempotency.Record) (idempotent.Answer, error) {
		return resume(context.WithValue(ctx, recoveryMark{}, true), left)
	}
}

// recoveryMark is in the context of what the recovery does.
type recoveryMark struct{}

// work is the unit of work with the failpoints around the commit that puts an outcome of the operation on record.
func (f failpoint) work(w port.UnitOfWork, operation idempotency.Operation, log *slog.Logger) port.UnitOfWork {
	if f == "" {
		return w
	}
	return failingWork{w, f, operation, log}
}

type failingWork struct {
	port.UnitOfWork
	at        failpoint
	operation idempotency.Operation
	log       *slog.Logger
}

// Do implements port.UnitOfWork.
func (w failingWork) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	var settles bool
	err := w.UnitOfWork.Do(ctx, wait, func(tx port.Tx) error {
		settles = false
		if err := fn(settlingTx{tx, w.operation, &settles}); err != nil {
			return err
		}
		if settles {
			w.at.reach(beforeCommit, w.log)
		}
		return nil
	})
	if err == nil && settles {
		w.at.reach(afterCommit, w.log)
	}
	return err
}

// settlingTx tells whether a transaction puts an outcome of the operation on record.
type settlingTx struct {
	port.Tx
	operation idempotency.Operation
	settles   *bool
}

// Records implements port.Tx.
func (t settlingTx) Records() idempotency.Repository {
	return settlingRecords{t.Tx.Records(), t}
}

type settlingRecords struct {
	idempotency.Repository
	tx settlingTx
}

// Replace implements idempotency.Repository.
func (r settlingRecords) Replace(ctx context.Context, old, next idempotency.Record) error {
	if next.Operation == r.tx.operation && next.Status != idempotency.InProgress {
		*r.tx.settles = true
	}
	return r.Repository.Replace(ctx, old, next)
}
