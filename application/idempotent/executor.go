// Package idempotent runs use cases under a record: their effect happens at most once, and every retry gets the same
// answer. It knows no use case.
package idempotent

import (
	"context"
	"errors"
	"math"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// Config is the executor's times.
type Config struct {
	Lease       time.Duration // what a holder has before others may take over
	Retention   time.Duration // of a finished record, from its completion
	CallTimeout time.Duration // of the call to the outside; shorter than the lease
	LockTimeout time.Duration // the store's longest wait for a row or a connection
	// Now is this process's clock, which does not jump. It decides nothing on record: only how long a holder in this process
	// counts as alive to its duplicates here.
	Now func() time.Time
}

// Deadline is how long one Execute may work, whatever becomes of the client's connection. Ending a lease comes on top,
// with one lock timeout of its own.
func (c Config) Deadline() time.Duration {
	if c.LockTimeout > (math.MaxInt64-c.CallTimeout)/4 {
		return math.MaxInt64
	}
	return c.CallTimeout + 4*c.LockTimeout
}

// Executor is the one idempotent path of all operations under a client's key.
type Executor struct {
	work      port.UnitOfWork
	documents port.Documents
	observer  port.Observer
	config    Config
	finished  *finished
	gate      *gate
	doubts    doubts
}

// remembered is how many finished records an instance knows of: 72 bytes or so for each.
const remembered = 1 << 16

// New makes an executor over a store.
func New(w port.UnitOfWork, d port.Documents, o port.Observer, c Config) *Executor {
	return &Executor{work: w, documents: d, observer: o, config: c, finished: newFinished(remembered), gate: newGate()}
}

// attempts is how often a run may start over in all: whatever is still in doubt then stays unknown.
const attempts = 3

// Execute runs a use case at most once for the intent and returns its answer. A recorded refusal is an answer too;
// errors are faults that left no outcome. The work does not end with the client's connection.
//
// A commit that gave no answer and a lease that was lost are settled alike: by starting over from the reservation. What
// stands on record then tells which it was.
func (e *Executor) Execute(ctx context.Context, in Intent, prepare Prepare) (answer Answer, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Deadline())
	defer cancel()
	r := &run{
		Executor: e, unattended: in.Unattended, wait: port.Briefly, ahead: in.Ahead, prepare: prepare, again: in.Again,
		reservation: idempotency.Reservation{Scope: in.Scope, Request: in.Request, Token: idempotency.NewToken()},
		pass:        pass{request: in.Request},
	}
	if answer, answered, err := r.replay(ctx); answered || err != nil {
		return answer, err
	}
	defer e.gate.leave(in.Scope, &r.pass) // after a panic too
	if answer, answered, err := r.enter(ctx); answered || err != nil {
		return answer, err
	}
	for range attempts {
		var settled bool
		if answer, settled, err = r.once(ctx); settled {
			break
		}
		if r.called || errors.Is(err, port.ErrCommitUnknown) {
			r.doubt = true
			r.wait = port.Fully // behind the session that may still hold the row: a read would not see what it commits
			if r.called {
				r.wait = port.Finishing
			}
		}
	}
	switch {
	case errors.Is(err, idempotency.ErrLost) && !r.called && !r.doubt: // others were faster, and this run has done nothing
		err = idempotency.ErrInProgress.Because(err)
		r.tell(ctx, port.InProgress, "", nil)
	case unsettled(err), r.doubt && errors.Is(err, port.ErrUnavailable):
		err = r.unknownFor(e.doubts.again(in.Scope), err)
	default:
		e.doubts.over(in.Scope)
	}
	if errors.Is(err, idempotency.ErrOutcomeUnknown) {
		r.tell(ctx, port.Unknown, "", err)
	}
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}

// unsettled tells the two errors of a transaction after which only the record knows what happened.
func unsettled(err error) bool {
	return errors.Is(err, port.ErrCommitUnknown) || errors.Is(err, idempotency.ErrLost)
}
