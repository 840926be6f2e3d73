package idempotent

import (
	"context"
	"errors"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// Intent is one request under its key: where its record is, and what it means.
type Intent struct {
	Scope   idempotency.Scope
	Request idempotency.Request
	// Again prepares in Prepare's place when an earlier run of the request may have made its call already; nil: Prepare
	// does. A refusal is no outcome then: what was marked before that call is not there any more.
	Again Prepare
	// Ahead announces what Prepare will read first, so that it can come with the reservation; nil if nothing is to be said.
	Ahead func(tx port.Tx)
	// Unattended says that no client is waiting: the recovery or an operator has the request executed.
	Unattended bool
}

// ErrDispute is in a Call's error when what came back can only be settled by a person: a client's retry asks again, the
// recovery does not.
var ErrDispute = errors.New("a person has to settle this")

// A use case hands over its first step, and each step hands over the next, so that nothing is carried beside them.
type (
	// Prepare runs in the reservation's transaction. Either it knows the result, and one commit is enough; or it marks
	// the aggregate and names the call to make, and there are two. A fault that advises a new key is a refusal and goes
	// on record; every other error rolls back and leaves no record of a new key.
	Prepare func(ctx context.Context, tx port.Tx) (Next, error)

	// Call has the outside effect, with no transaction open, and says how its answer is recorded. Its error means that
	// the effect is unknown.
	Call func(ctx context.Context) (Finish, error)

	// Finish changes the aggregate in the completing transaction. Its result is the view that the client shall read, or
	// a *fault.Fault: a refusal that goes on record together with what Finish wrote. Its error is no outcome: the call
	// has been made.
	Finish func(ctx context.Context, tx port.Tx) (result any, err error)
)

// Next is how Prepare ends: Result or Then.
type Next struct {
	result  any
	created string
	note    port.Happening
	call    Call
}

// Result says that nothing outside is to be done: this view is what the client shall read.
func Result(view any) Next { return Next{result: view} }

// Then says that the call comes after the commit.
func Then(call Call) Next { return Next{call: call} }

// Creating names what the result has created.
func (n Next) Creating(id string) Next {
	n.created = id
	return n
}

// Noting has the observer told of it, once it is committed.
func (n Next) Noting(what port.Happening) Next {
	n.note = what
	return n
}

// Answer is the outcome as it is on record.
type Answer struct {
	idempotency.Outcome
	// Replayed tells that the outcome stems from another execution than the request's own.
	Replayed bool
}
