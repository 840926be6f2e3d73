package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore"
)

// The attributes of our own.
const (
	attrOperation  = "kakutei.operation"
	attrOutcome    = "kakutei.outcome"
	attrRefusal    = "kakutei.refusal"
	attrExecutions = "kakutei.executions"
	attrFault      = "kakutei.fault"
	attrAttempt    = "kakutei.attempt"
	attrAnswer     = "kakutei.answer"
)

// end ends a span. Of an error only its code is told: a text may quote anything. Whatever a caller alone has brought about,
// a duplicate say, is no error of the service's.
func end(span trace.Span, err error) {
	if err != nil {
		f, isFault := fault.From(err)
		code := "other"
		if isFault {
			code = string(f.Code())
		}
		span.SetAttributes(attribute.String(attrFault, code))
		if !isFault || errors.Is(err, port.ErrUnavailable) || errors.Is(err, idempotency.ErrOutcomeUnknown) {
			span.SetStatus(codes.Error, "")
		}
	}
	span.End()
}

// Work is a unit of work with a span for each transaction, called like the step that it is.
func (t *Tracing) Work(w port.UnitOfWork) port.UnitOfWork {
	if t == nil {
		return w
	}
	return tracedWork{w, t}
}

type tracedWork struct {
	port.UnitOfWork
	*Tracing
}

// Do implements port.UnitOfWork.
func (w tracedWork) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	ctx, span := w.step(ctx, "write")
	err := w.UnitOfWork.Do(ctx, wait, fn)
	end(span, err)
	return err
}

// Read implements port.UnitOfWork.
func (w tracedWork) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	ctx, span := w.step(ctx, "read")
	err := w.UnitOfWork.Read(ctx, fn)
	end(span, err)
	return err
}

func (w tracedWork) step(ctx context.Context, name string) (context.Context, trace.Span) {
	step, operation := port.Done(ctx)
	if step == "" {
		return w.tracer.Start(ctx, name)
	}
	return w.tracer.Start(ctx, string(step), trace.WithAttributes(attribute.String(attrOperation, string(operation))))
}

// Exchanging implements gormstore.Watch: a span for what travels together, if somebody waits for it who is traced.
func (t *Tracing) Exchanging(ctx context.Context, e gormstore.Exchange) func(err error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return nil
	}
	name := "exchange"
	if e.Commits {
		name = "commit"
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", e.Database),
		attribute.Int("db.operation.batch.size", len(e.Statements)),
		attribute.String("db.query.text", e.Texts()),
	))
	return func(err error) { end(span, err) }
}

// Provider is what a payment provider offers the service.
type Provider interface {
	payment.Gateway
	payment.Statement
}

// Provider is a payment provider with a span for each call.
func (t *Tracing) Provider(p Provider) Provider {
	if t == nil {
		return p
	}
	return tracedProvider{p, t}
}

type tracedProvider struct {
	Provider
	*Tracing
}

// Charge implements payment.Gateway.
func (p tracedProvider) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	ctx, span := p.call(ctx, "gateway charge", attribute.Int(attrAttempt, a.Number))
	answer, err := p.Provider.Charge(ctx, a)
	switch answer.(type) {
	case payment.Charge:
		span.SetAttributes(attribute.String(attrAnswer, "approved"))
	case payment.Decline:
		span.SetAttributes(attribute.String(attrAnswer, "declined"))
	}
	end(span, err)
	return answer, err
}

// Lookup implements payment.Gateway.
func (p tracedProvider) Lookup(ctx context.Context, orderID string) ([]payment.Booking, error) {
	ctx, span := p.call(ctx, "gateway lookup")
	list, err := p.Provider.Lookup(ctx, orderID)
	end(span, err)
	return list, err
}

// Charges implements payment.Statement.
func (p tracedProvider) Charges(
	ctx context.Context, since time.Time, after string, limit int,
) (page []payment.Booking, next string, err error) {
	ctx, span := p.call(ctx, "gateway charges")
	page, next, err = p.Provider.Charges(ctx, since, after, limit)
	end(span, err)
	return page, next, err
}

func (p tracedProvider) call(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, trace.Span) {
	return p.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(about...))
}

// Resume is the recovery's way to a use case, with a span for each try: no request is there to have one.
func (t *Tracing) Resume(resume idempotent.Resume) idempotent.Resume {
	if t == nil {
		return resume
	}
	return func(ctx context.Context, left idempotency.Record) (idempotent.Answer, error) {
		ctx, span := t.tracer.Start(ctx, "recover", trace.WithAttributes(
			attribute.String(attrOperation, string(left.Operation))))
		answer, err := resume(ctx, left)
		end(span, err)
		return answer, err
	}
}

// Observe implements port.Observer: the span of the request, or of the recovery's try, learns what came of it.
func (t *Tracing) Observe(ctx context.Context, e port.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	switch e.What {
	case port.Completed, port.Replayed, port.InProgress, port.Mismatch, port.Unknown:
		span.SetAttributes(attribute.String(attrOperation, string(e.Scope.Operation)),
			attribute.String(attrOutcome, string(e.What)), attribute.Int(attrExecutions, e.Executions))
		if e.Refusal != "" {
			span.SetAttributes(attribute.String(attrRefusal, string(e.Refusal)))
		}
	case port.Reserved, port.Takeover, port.Called, port.LeaseLost, port.CommitUnknown, port.Duplicate, port.AmountConflict,
		port.Stopped, port.Abandoned:
		span.AddEvent(string(e.What), trace.WithAttributes(attribute.Int(attrExecutions, e.Executions)))
	}
}
