package idempotent

import (
	"context"
	"errors"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

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
	ctx = r.doing(ctx, port.Reserving)
	err := r.work.Do(ctx, r.wait, func(tx port.Tx) (err error) {
		now = reserved{reservation: r.reservation}
		if r.ahead != nil {
			r.ahead(tx)
		}
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
	switch {
	case err != nil:
	case now.next.call == nil:
		r.over()
	default:
		r.gate.hold(&r.pass, &held{r.held, r.begun})
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
	now.next, err = r.next(ctx, tx)
	if now.takeover {
		if lost := stillVacant(ctx, tx, now.reservation); err == nil || errors.Is(lost, idempotency.ErrLost) {
			err = lost // whatever prepare has found may be what the faster one has left
		}
	}
	if err != nil {
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

// stillVacant looks again at a record that is to be taken over, now that nobody else can change it. A holder in doubt
// keeps his token and renews his lease: who has read the record before that would take it from one who is alive, and an
// operator's word could overtake his call. Error: idempotency.ErrLost, then the run starts over.
func stillVacant(ctx context.Context, tx port.Tx, n idempotency.Reservation) error {
	stands, err := tx.Records().Lock(ctx, n.Scope)
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return idempotency.ErrLost.Because(err)
	case err == nil && stands.Judge(n, tx.Now()) != idempotency.Vacant:
		return idempotency.ErrLost
	default:
		return err
	}
}

// tellReserved tells what the reservation's transaction has done, or why it has not.
func (r *run) tellReserved(ctx context.Context, now reserved, err error) {
	happened := make([]port.Happening, 0, 3)
	switch {
	case err != nil:
		happened = append(happened, port.Stopped)
	case now.replayed:
		happened = append(happened, port.Replayed)
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
	untold := !r.called && r.held.Executions == 1
	prepare := r.prepare
	if !untold && r.again != nil {
		prepare = r.again
	}
	next, err := prepare(ctx, tx)
	if err == nil {
		return next, nil
	}
	refusal, isRefusal := fault.Refusal(err)
	if untold {
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
// wait grows, and nobody waits for a holder who has given up. What was marked before the call is not there any more: a
// hand has changed it, and only a person can settle that. If it fails, the next retry counts.
func (r *run) count(ctx context.Context) {
	r.reservation.Token = idempotency.NewToken() // what was lost once is not stored again
	ctx = r.doing(ctx, port.Abandoning)
	_ = r.work.Do(ctx, r.wait, func(tx port.Tx) error {
		stands, err := tx.Records().Lock(ctx, r.reservation.Scope)
		// One that has its outcome, and is expired, is nobody's case: who comes next starts from scratch.
		if err != nil || stands.Status != idempotency.InProgress ||
			stands.Judge(r.reservation, tx.Now()) != idempotency.Vacant {
			return err
		}
		counted := stands.TakenBy(r.reservation, tx.Now(), r.config.Lease).Dispute(tx.Now())
		return tx.Records().Replace(ctx, stands, counted)
	})
}
