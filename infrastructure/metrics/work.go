package metrics

import (
	"context"
	"time"

	"kakutei/application/port"
	"kakutei/domain/payment"
)

// What a step or a round has come to.
const (
	done   = "done"
	failed = "failed"
)

func resultOf(err error) string {
	if err != nil {
		return failed
	}
	return done
}

// Work is a unit of work whose transactions are measured, as far as they are steps of an operation.
func (m *Metrics) Work(w port.UnitOfWork) port.UnitOfWork { return measuredWork{w, m} }

type measuredWork struct {
	port.UnitOfWork
	metrics *Metrics
}

// Do implements port.UnitOfWork.
func (w measuredWork) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	started := time.Now()
	err := w.UnitOfWork.Do(ctx, wait, fn)
	w.took(ctx, started, err)
	return err
}

// Read implements port.UnitOfWork.
func (w measuredWork) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	started := time.Now()
	err := w.UnitOfWork.Read(ctx, fn)
	w.took(ctx, started, err)
	return err
}

func (w measuredWork) took(ctx context.Context, started time.Time, err error) {
	step, operation := port.Done(ctx)
	if step == "" {
		return
	}
	w.metrics.steps.WithLabelValues(operationOf(operation), string(step), resultOf(err)).Observe(time.Since(started).Seconds())
}

// Provider is what a payment provider offers the service.
type Provider interface {
	payment.Gateway
	payment.Statement
}

// Provider is a payment provider whose calls are measured.
func (m *Metrics) Provider(p Provider) Provider { return measuredProvider{p, m} }

type measuredProvider struct {
	Provider
	metrics *Metrics
}

// Charge implements payment.Gateway.
func (p measuredProvider) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	started := time.Now()
	answer, err := p.Provider.Charge(ctx, a)
	result := unknown
	if err == nil {
		result = "approved"
		if _, declined := answer.(payment.Decline); declined {
			result = "declined"
		}
	}
	p.took("charge", result, started)
	return answer, err
}

// Lookup implements payment.Gateway.
func (p measuredProvider) Lookup(ctx context.Context, orderID string) ([]payment.Booking, error) {
	started := time.Now()
	list, err := p.Provider.Lookup(ctx, orderID)
	p.took("lookup", listed(err), started)
	return list, err
}

// Charges implements payment.Statement.
func (p measuredProvider) Charges(
	ctx context.Context, since time.Time, after string, limit int,
) (page []payment.Booking, next string, err error) {
	started := time.Now()
	page, next, err = p.Provider.Charges(ctx, since, after, limit)
	p.took("charges", listed(err), started)
	return page, next, err
}

func listed(err error) string {
	if err != nil {
		return unknown
	}
	return "listed"
}

func (p measuredProvider) took(call, result string, started time.Time) {
	p.metrics.calls.WithLabelValues(call, result).Observe(time.Since(started).Seconds())
}
