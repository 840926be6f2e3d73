// Package idempotent runs use cases under a record: their effect happens at most once, and every retry gets the same
// answer. It knows no use case.
package idempotent

import (
	"context"
	"errors"
	"math"
	"time"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

// Config is the executor's times.
type Config struct {
	Lease       time.Duration // what a holder has before others may take over
	Retention   time.Duration // of a finished record, from its completion
	CallTimeout time.Duration // of the call to the outside; shorter than the lease
	LockTimeout time.Duration // the store's longest wait for a row or a connection
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
}

// New makes an executor over a store.
func New(w port.UnitOfWork, d port.Documents, o port.Observer, c Config) *Executor {
	return &Executor{work: w, documents: d, observer: o, config: c}
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
		Executor: e, wait: port.Briefly, prepare: prepare,
		reservation: idempotency.Reservation{Scope: in.Scope, Request: in.Request, Token: idempotency.NewToken()},
	}
	for range attempts {
		if answer, err = r.once(ctx); !unsettled(err) {
			break
		}
		r.doubt = true
		r.wait = port.Fully // behind the session that may still hold the row: a plain read would not see what it commits
	}
	if unsettled(err) || r.doubt && errors.Is(err, port.ErrUnavailable) {
		err = r.unknown(err)
	}
	return answer, err
}

// unsettled tells the two errors after which only the record knows what happened.
func unsettled(err error) bool {
	return errors.Is(err, port.ErrCommitUnknown) || errors.Is(err, idempotency.ErrLost)
}

// run is one request's way through the executor, under one token until that is lost.
type run struct {
	*Executor
	prepare     Prepare
	reservation idempotency.Reservation
	wait        port.Wait
	doubt       bool               // an earlier round's commit or lease is in doubt
	called      bool               // the outside may have been told already, by this run
	held        idempotency.Record // the record as this run last saw it
}

func (r *run) once(ctx context.Context) (Answer, error) {
	answer, call, err := r.reserve(ctx)
	if err != nil || call == nil {
		return answer, err
	}
	holding := true // after a panic too: nobody would work on the record until its lease is over
	defer func() {
		if holding {
			r.abandon(ctx)
		}
	}()
	finish, err := r.call(ctx, call)
	if err != nil {
		return Answer{}, err
	}
	answer, err = r.complete(ctx, finish)
	holding = err != nil && !unsettled(err)
	return answer, err
}

// reserve is the first commit: the reservation with what prepare marks, or with the outcome if there is nothing to
// call. Without a reservation nothing is executed.
func (r *run) reserve(ctx context.Context) (answer Answer, call Call, err error) {
	var reservation idempotency.Reservation
	var what port.Happening
	err = r.work.Do(ctx, r.wait, func(tx port.Tx) error {
		answer, call, reservation, what = Answer{}, nil, r.reservation, port.Reserved
		held, err := tx.Records().Reserve(ctx, reservation, r.config.Lease)
		if err != nil {
			return err
		}
		r.held = held
		switch held.Judge(reservation, tx.Now()) {
		case idempotency.Reused:
			return idempotency.ErrKeyReused
		case idempotency.Busy:
			return idempotency.ErrInProgress.After(held.RetryIn(tx.Now(), r.config.Lease))
		case idempotency.Done:
			what = port.Replayed
			answer = Answer{Outcome: held.Outcome, Replayed: held.Token != reservation.Token}
			return nil
		case idempotency.Vacant:
			if held.Status == idempotency.InProgress {
				what = port.Takeover
			}
			if r.doubt { // the old token may still stand in a commit under way
				reservation.Token = idempotency.NewToken()
			}
			err = r.take(ctx, tx, held.TakenBy(reservation, tx.Now(), r.config.Lease))
		case idempotency.Mine:
			if r.doubt { // what is under way may still end this execution: wait for it before touching anything else
				err = r.take(ctx, tx, held.Renewed(tx.Now(), r.config.Lease))
			}
		}
		if err != nil {
			return err
		}
		next, err := r.next(ctx, tx)
		if err != nil {
			return err
		}
		if next.note != "" {
			what = next.note
		}
		if call = next.call; call != nil {
			return nil
		}
		answer, err = r.settle(ctx, tx, next.result, next.created)
		return err
	})
	if err == nil || errors.Is(err, port.ErrCommitUnknown) {
		r.reservation = reservation
	}
	r.tell(ctx, what, answer.Refusal, err)
	return answer, call, err
}

// take makes the record that stands the run's own, before prepare locks the aggregate: whoever executes has fenced off
// everybody else.
func (r *run) take(ctx context.Context, tx port.Tx, next idempotency.Record) error {
	stands := r.held
	r.held = next
	return tx.Records().Replace(ctx, stands, next)
}

// next lets the use case prepare. Its refusal is the outcome as long as nothing can have happened outside; after that it
// would be a lie, and so would be the advice to mend the request.
func (r *run) next(ctx context.Context, tx port.Tx) (Next, error) {
	next, err := r.prepare(ctx, tx)
	f, isFault := fault.From(err)
	switch {
	case err == nil:
		return next, nil
	case isFault && (r.called || r.held.Executions > 1) && (f.Advice() == fault.NewKey || f.Advice() == fault.AfterFix):
		return Next{}, r.unknown(err)
	case isFault && f.Advice() == fault.NewKey:
		return Result(f), nil
	default:
		return Next{}, err
	}
}

// call is what happens between the commits. No answer is no failure: the next execution asks again.
func (r *run) call(ctx context.Context, call Call) (Finish, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.CallTimeout)
	defer cancel()
	r.called = true
	finish, err := call(ctx)
	r.tell(ctx, port.Called, "", err)
	if err != nil {
		return nil, r.unknown(err)
	}
	return finish, nil
}

// complete is the second commit: the aggregate's change and the outcome, or neither. The call has been made: whatever
// fails here, "nothing was done" would be a lie.
func (r *run) complete(ctx context.Context, finish Finish) (answer Answer, err error) {
	err = r.work.Do(ctx, port.Fully, func(tx port.Tx) error {
		answer = Answer{}
		result, err := finish(ctx, tx)
		if err != nil {
			return r.whose(ctx, tx, err)
		}
		answer, err = r.settle(ctx, tx, result, "")
		return err
	})
	r.tell(ctx, port.Completed, answer.Refusal, err)
	if err != nil && !unsettled(err) {
		err = r.unknown(err)
	}
	return answer, err
}

// whose tells a lost lease from another error of finish: a late holder usually fails at an aggregate that the winner has
// changed, before it comes to the record.
func (r *run) whose(ctx context.Context, tx port.Tx, cause error) error {
	stands, err := tx.Records().Find(ctx, r.held.Scope)
	lost := err == nil && stands.Token != r.held.Token || errors.Is(err, idempotency.ErrNotFound)
	if lost {
		return idempotency.ErrLost.Because(cause)
	}
	return cause
}

// settle puts the outcome on record, if this token still holds it. The record is the last thing that is touched.
func (r *run) settle(ctx context.Context, tx port.Tx, result any, created string) (Answer, error) {
	outcome := idempotency.Outcome{Created: created}
	var err error
	if refusal, ok := result.(*fault.Fault); ok {
		outcome.Refusal = refusal.Code()
		outcome.Document, err = r.documents.Problem(refusal)
	} else {
		outcome.Document, err = r.documents.Result(result)
	}
	if err != nil {
		return Answer{}, err
	}
	completed := r.held.Completed(outcome, tx.Now(), r.config.Retention)
	return Answer{Outcome: outcome}, tx.Records().Replace(ctx, r.held, completed)
}

// abandon ends the lease at once, so that the next retry executes. If it fails, the lease runs out.
func (r *run) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.LockTimeout)
	defer cancel()
	err := r.work.Do(ctx, port.Briefly, func(tx port.Tx) error {
		return tx.Records().Replace(ctx, r.held, r.held.Abandoned(tx.Now()))
	})
	if err != nil {
		r.tell(ctx, port.Stopped, "", err)
	}
}

// unknown is the answer that neither promises nor denies an effect. The advised wait doubles with each execution, until
// it is the lease.
func (r *run) unknown(cause error) error {
	wait := time.Second << min(max(r.held.Executions-1, 0), 20)
	return idempotency.ErrOutcomeUnknown.Because(cause).After(min(wait, r.config.Lease))
}

// tell is called when a transaction or the call has ended.
func (r *run) tell(ctx context.Context, what port.Happening, refusal fault.Code, err error) {
	switch {
	case err == nil:
	case errors.Is(err, idempotency.ErrLost):
		what = port.LeaseLost
	case errors.Is(err, port.ErrCommitUnknown):
		what = port.CommitUnknown
	case errors.Is(err, idempotency.ErrKeyReused):
		what = port.Mismatch
	case errors.Is(err, idempotency.ErrInProgress):
		what = port.InProgress
	case what != port.Called:
		what = port.Stopped
	}
	r.observer.Observe(ctx, port.Event{
		What: what, Scope: r.reservation.Scope, Executions: r.held.Executions, Refusal: refusal, Err: err,
	})
}
