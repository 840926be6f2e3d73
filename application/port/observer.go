package port

import (
	"context"

	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

// Happening names what an observer is told.
type Happening string

// What happens to records and to the orders behind them.
const (
	Reserved       Happening = "reserved"        // a new record, its call comes next
	Takeover       Happening = "takeover"        // a record whose holder's lease was over
	Replayed       Happening = "replayed"        // answered from the record
	InProgress     Happening = "in_progress"     // answered that the key's request is running
	Mismatch       Happening = "mismatch"        // answered that the key belongs to another request
	Called         Happening = "called"          // the outside answered, or not
	Completed      Happening = "completed"       // the outcome is on record
	LeaseLost      Happening = "lease_lost"      // a holder was fenced off
	CommitUnknown  Happening = "commit_unknown"  // a commit gave no answer
	Duplicate      Happening = "duplicate"       // done before under another key; answered with the original
	AmountConflict Happening = "amount_conflict" // the provider took other money than was asked
	Stopped        Happening = "stopped"         // a step failed, no outcome
	Abandoned      Happening = "abandoned"       // the holder has ended its lease, the outcome is unknown
)

// Event is one thing that happened, told after the transaction that it happened in has ended.
type Event struct {
	What       Happening
	Scope      idempotency.Scope
	Executions int // 0 when no record was read
	// Record is how this has left the record, or found it; zero when nobody can tell, as with Stopped.
	Record  idempotency.Record
	Refusal fault.Code // with Completed and Replayed: the recorded refusal; empty for a success
	Err     error      // nil, or why the step left no outcome
	Detail  string     // for people
	// Unattended says that no client was waiting: the recovery or an operator had the request executed.
	Unattended bool
	// Once names what happened if it is one event however often it is told; empty: each telling is another one.
	Once string
}

// Observer is told what happened. It can neither fail nor stop the work; a slow one keeps its own queue.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Observers tells each in turn.
type Observers []Observer

// Observe tells each in turn.
func (all Observers) Observe(ctx context.Context, e Event) {
	for _, o := range all {
		o.Observe(ctx, e)
	}
}
