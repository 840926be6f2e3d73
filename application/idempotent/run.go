package idempotent

import (
	"context"
	"errors"
	"time"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

// run is one request's way through the executor, under one token until that is lost.
type run struct {
	*Executor
	unattended  bool
	ahead       func(tx port.Tx)
	prepare     Prepare
	again       Prepare // what prepares when the outside may have been told already
	reservation idempotency.Reservation
	wait        port.Wait
	doubt       bool               // an earlier round's commit or lease is in doubt
	called      bool               // the outside may have been told already, by this run
	disputed    bool               // what the outside said only a person can settle
	stored      idempotency.Record // the record as it was last read
	held        idempotency.Record // the record as it is to be while this run works
	settled     idempotency.Record // the record with the outcome, once it is committed
	begun       time.Time          // no later than the lease
	pass        pass
}

// once goes from the reservation to the outcome. It is not settled if a commit gave no answer or the lease was lost: what
// stands on record then decides. Whatever the call's error is like, it is the outside's.
func (r *run) once(ctx context.Context) (answer Answer, settled bool, err error) {
	r.begun = r.config.Now()
	leased, cancel := context.WithTimeout(ctx, r.config.Lease) // from before the lease begins: the call ends before it
	defer cancel()
	ctx = port.Successive(ctx)
	answer, call, err := r.reserve(ctx)
	if err != nil || call == nil {
		return answer, !unsettled(err), err
	}
	holding := true // after a panic too: nobody would work on the record until its lease is over
	defer func() {
		if holding {
			r.abandon(ctx)
		}
	}()
	finish, err := r.call(leased, call)
	if err != nil {
		return Answer{}, true, err
	}
	answer, err = r.complete(ctx, finish)
	holding = err != nil && !unsettled(err)
	return answer, !unsettled(err), err
}

// call is what happens between the commits. No answer is no failure: the next execution asks again.
func (r *run) call(ctx context.Context, call Call) (Finish, error) {
	ctx, cancel := context.WithTimeout(r.doing(ctx, port.Calling), r.config.CallTimeout)
	defer cancel()
	defer r.gate.ask(&r.pass)
	r.called = true
	finish, err := call(ctx)
	r.tell(ctx, port.Called, "", err)
	if err != nil {
		r.disputed = errors.Is(err, ErrDispute)
		return nil, r.unknown(err)
	}
	return finish, nil
}

// complete is the second commit: the aggregate's change and the outcome, or neither. The call has been made: whatever
// fails here, "nothing was done" would be a lie.
func (r *run) complete(ctx context.Context, finish Finish) (answer Answer, err error) {
	ctx = r.doing(ctx, port.Completing)
	err = r.work.Do(ctx, port.Finishing, func(tx port.Tx) error {
		answer = Answer{}
		result, err := finish(ctx, tx)
		if err != nil {
			return r.whose(ctx, tx, err)
		}
		answer, err = r.settle(ctx, tx, result, "")
		return err
	})
	if err == nil {
		r.over()
	}
	r.tell(ctx, port.Completed, answer.Refusal, err)
	if err != nil && !unsettled(err) {
		err = r.unknown(err)
	}
	return answer, err
}

// over says that the outcome is on record: who comes from now on is answered from there.
func (r *run) over() {
	r.finished.add(r.reservation.Scope, r.held.Token)
	r.gate.leave(r.reservation.Scope, &r.pass)
}

// whose tells a lost lease from another error: a late holder usually fails at an aggregate that the winner has changed,
// before it comes to the record.
func (r *run) whose(ctx context.Context, tx port.Tx, cause error) error {
	if !r.called && !r.doubt {
		return cause // this run has held nothing yet
	}
	now, err := tx.Records().Find(ctx, r.stored.Scope)
	changed := err == nil && (now.Token != r.stored.Token || now.Status != r.stored.Status)
	if changed || errors.Is(err, idempotency.ErrNotFound) {
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
	r.settled = r.held.Completed(outcome, tx.Now(), r.config.Retention)
	return Answer{Outcome: outcome}, tx.Records().Replace(ctx, r.stored, r.settled)
}

// abandon ends the lease at once, so that the next retry executes. If it fails, the lease runs out.
func (r *run) abandon(ctx context.Context) {
	ctx = r.doing(context.WithoutCancel(ctx), port.Abandoning)
	ctx, cancel := context.WithTimeout(ctx, r.config.LockTimeout)
	defer cancel()
	var left idempotency.Record
	err := r.work.Do(ctx, port.Briefly, func(tx port.Tx) error {
		left = r.held.Abandoned(tx.Now())
		if r.disputed {
			left = r.held.Dispute(tx.Now())
		}
		return tx.Records().Replace(ctx, r.held, left)
	})
	if err == nil {
		r.held = left
		r.gate.leave(r.reservation.Scope, &r.pass)
	}
	r.tell(ctx, port.Abandoned, "", err)
}

// unknown is the answer that neither promises nor denies an effect. The advised wait doubles with each execution, until
// it is the lease.
func (r *run) unknown(cause error) error { return r.unknownFor(r.held.Executions, cause) }

// unknownFor is the same after so many runs, if that is more than the record knows of.
func (r *run) unknownFor(times int, cause error) error {
	wait := time.Second << min(max(r.held.Executions, times, 1)-1, 20)
	return idempotency.ErrOutcomeUnknown.Because(cause).After(min(wait, r.config.Lease))
}

// doing says in the context which step of the operation is under way.
func (r *run) doing(ctx context.Context, s port.Step) context.Context {
	return port.Doing(ctx, s, r.reservation.Operation)
}

// tell is called when a transaction or the call has ended.
func (r *run) tell(ctx context.Context, what port.Happening, refusal fault.Code, err error) {
	switch {
	case err == nil, what == port.Called, what == port.Unknown: // whatever the error is like, it is no transaction's
	case errors.Is(err, idempotency.ErrLost) && !r.called:
		return // another one was faster to a vacant record: this run had no lease to lose
	case errors.Is(err, idempotency.ErrLost):
		what = port.LeaseLost
	case errors.Is(err, port.ErrCommitUnknown):
		what = port.CommitUnknown
	case errors.Is(err, idempotency.ErrKeyReused):
		what = port.Mismatch
	case errors.Is(err, idempotency.ErrInProgress):
		what = port.InProgress
	default:
		what = port.Stopped
	}
	e := port.Event{
		What: what, Scope: r.reservation.Scope, Executions: r.held.Executions, Refusal: refusal, Err: err,
		Record: r.left(what), Unattended: r.unattended,
	}
	if r.unattended && what == port.Takeover { // hundreds of tries of one dead order are one piece of news
		e.Once = r.held.CreatedAt.Format(time.RFC3339Nano)
	}
	r.observer.Observe(ctx, e)
}

// left is the record as what happened has left or found it.
func (r *run) left(what port.Happening) idempotency.Record {
	if what == port.Completed || what == port.Duplicate {
		return r.settled
	}
	if what == port.Stopped || what == port.CommitUnknown || what == port.LeaseLost || what == port.Unknown {
		return idempotency.Record{}
	}
	return r.held
}
