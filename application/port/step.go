package port

import (
	"context"

	"kakutei/domain/idempotency"
)

// Step says what a transaction or a call is for.
type Step string

// The steps of an operation.
const (
	Looking    Step = "look"     // for the outcome of a request that was finished here
	Reserving  Step = "reserve"  // the reservation, with what prepare does
	Calling    Step = "call"     // the outside, with no transaction open
	Completing Step = "complete" // the aggregate's change and the outcome
	Abandoning Step = "abandon"  // the record, whose outcome is unknown
	Posting    Step = "post"     // a journal entry
)

// work is a step of an operation.
type work struct {
	step      Step
	operation idempotency.Operation
}

type workKey struct{}

// Doing says in the context what is done under it. It is for those who wrap a port, to measure or to trace, and nobody
// decides anything by it.
func Doing(ctx context.Context, s Step, o idempotency.Operation) context.Context {
	return context.WithValue(ctx, workKey{}, work{s, o})
}

// Done is what is done under the context; both are empty when nobody has said so.
func Done(ctx context.Context) (Step, idempotency.Operation) {
	w, _ := ctx.Value(workKey{}).(work)
	return w.step, w.operation
}
