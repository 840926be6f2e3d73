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
	prepare     Prepare
	reservation idempotency.Reservation
	wait        port.Wait
	doubt       bool               // an earlier round's commit or lease is in doubt
	called      bool               // the outside may have been told already, by this run
	stored      idempotency.Record // the record as it was last read
	held        idempotency.Record // the record as it is to be while this run works
}

// once goes from the reservation to the outcome. It is not settled if a commit gave no answer or the lease was lost: what
// stands on record then decides. Whatever the call's error is like, it is the outside's.
func (r *run) once(ctx context.Context) (answer Answer, settled bool, err error) {
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
	finish, err := r.call(ctx, call)
	if err != nil {
		return Answer{}, true, err
	}
	answer, err = r.complete(ctx, finish)
	holding = err != nil && !unsettled(err)
	return answer, !unsettled(err), err
}

// reserved is what the reservation's transaction has come to. It is made anew by each run of the transaction.
type reserved struct {
	reservation idempotency.Reservation
	takeover    bool // of a record that another holder has left in progress
	fence       bool // the record must be made this run's before the call
	next        Next
	answer      Answer
	replayed    bool
}

// reserve is the first commit: the reservation with what prepare marks, or with the outcome if there is nothing to
// call. Without a reservation nothing is executed.
func (r *run) reserve(ctx context.Context) (Answer, Call, error) {
	var now reserved
	err := r.work.Do(ctx, r.wait, func(tx port.Tx) (err error) {
		now = reserved{reservation: r.reservation}
		if r.stored, err = tx.Records().Reserve(ctx, now.reservation, r.config.Lease); err != nil {
			return err
		}
		if err := r.judge(tx, &now); err != nil || now.replayed {
			return err
		}
		return r.execute(ctx, tx, &now)
	})
	if err == nil || errors.Is(err, port.ErrCommitUnknown) {
		r.reservation, r.stored = now.reservation, r.held
	}
	if late := (*lateRefusal)(nil); errors.As(err, &late) && !unsettled(err) {
		r.count(ctx)
		err = r.unknown(late.cause)
	}
	r.tellReserved(ctx, now, err)
	return now.answer, now.next.call, err
}

// judge is what the stored record means for this run: it ends it, or says how the record is to be held.
func (r *run) judge(tx port.Tx, now *reserved) error {
	r.held = r.stored
	switch r.stored.Judge(now.reservation, tx.Now()) {
	case idempotency.Reused:
		return idempotency.ErrKeyReused
	case idempotency.Busy:
		return idempotency.ErrInProgress.After(r.stored.RetryIn(tx.Now(), r.config.Lease))
	case idempotency.Done:
		now.replayed = true
		now.answer = Answer{Outcome: r.stored.Outcome, Replayed: r.stored.Token != now.reservation.Token}
	case idempotency.Vacant:
		now.takeover = r.stored.Status == idempotency.InProgress
		if r.doubt { // the old token may still stand in a commit under way
			now.reservation.Token = idempotency.NewToken()
		}
		r.held, now.fence = r.stored.TakenBy(now.reservation, tx.Now(), r.config.Lease), true
	case idempotency.Mine:
		if r.doubt { // a commit of its own that is still under way may end this execution: the fence finds out
			r.held, now.fence = r.stored.Renewed(tx.Now(), r.config.Lease), true
		}
	}
	return nil
}

// execute has the use case prepare. The record is touched last, as by a completion: so the two cannot wait for each
// other.
func (r *run) execute(ctx context.Context, tx port.Tx, now *reserved) (err error) {
	if now.next, err = r.next(ctx, tx); err != nil {
		return r.whose(ctx, tx, err)
	}
	switch {
	case now.next.call == nil:
		now.answer, err = r.settle(ctx, tx, now.next.result, now.next.created)
		return err
	case now.fence:
		return tx.Records().Replace(ctx, r.stored, r.held)
	default:
		return nil
	}
}

// tellReserved tells what the reservation's transaction has done, or why it has not.
func (r *run) tellReserved(ctx context.Context, now reserved, err error) {
	var happened []port.Happening
	switch {
	case err != nil:
		happened = []port.Happening{port.Stopped}
	case now.replayed:
		happened = []port.Happening{port.Replayed}
	default:
		if now.takeover {
			happened = append(happened, port.Takeover)
		}
		if now.next.note != "" {
			happened = append(happened, now.next.note)
		}
		switch {
		case now.next.call == nil:
			happened = append(happened, port.Completed)
		case !now.takeover:
			happened = append(happened, port.Reserved)
		}
	}
	for _, what := range happened {
		r.tell(ctx, what, now.answer.Refusal, err)
	}
}

// next lets the use case prepare. Its refusal is the outcome as long as nothing can have happened outside; after that it
// would be a lie, and so would be the advice to mend the request.
func (r *run) next(ctx context.Context, tx port.Tx) (Next, error) {
	next, err := r.prepare(ctx, tx)
	if err == nil {
		return next, nil
	}
	refusal, isRefusal := fault.Refusal(err)
	if !r.called && r.held.Executions == 1 {
		if isRefusal {
			return Result(refusal), nil
		}
		return Next{}, err
	}
	if f, ok := fault.From(err); isRefusal || ok && f.Advice() == fault.AfterFix {
		return Next{}, &lateRefusal{cause: err}
	}
	return Next{}, err
}

// lateRefusal is a refusal that came when the outside may have been told already. It rolls back, takeover and all.
type lateRefusal struct{ cause error }

func (l *lateRefusal) Error() string { return "after a call: " + l.cause.Error() }

func (l *lateRefusal) Unwrap() error { return l.cause }

// count keeps what a late refusal has rolled back of the takeover: that there was one more execution. So the advised
// wait grows, and nobody waits for a holder who has given up. If it fails, the next retry counts.
func (r *run) count(ctx context.Context) {
	r.reservation.Token = idempotency.NewToken() // what was lost once is not stored again
	_ = r.work.Do(ctx, r.wait, func(tx port.Tx) error {
		stands, err := tx.Records().Find(ctx, r.reservation.Scope)
		if err != nil || stands.Judge(r.reservation, tx.Now()) != idempotency.Vacant {
			return err
		}
		counted := stands.TakenBy(r.reservation, tx.Now(), r.config.Lease).Abandoned(tx.Now())
		return tx.Records().Replace(ctx, stands, counted)
	})
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
	completed := r.held.Completed(outcome, tx.Now(), r.config.Retention)
	return Answer{Outcome: outcome}, tx.Records().Replace(ctx, r.stored, completed)
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
	case err == nil, what == port.Called: // whatever the call's error is like, it is no transaction's
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
	r.observer.Observe(ctx, port.Event{
		What: what, Scope: r.reservation.Scope, Executions: r.held.Executions, Refusal: refusal, Err: err,
	})
}
