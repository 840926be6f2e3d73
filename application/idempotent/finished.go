package idempotent

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// finished remembers which records this instance has seen finished, by a commit that was acknowledged, the latest of them,
// each with the token of the execution that finished it: once a record has expired its key may be another intent's, and of
// that one's commit nobody here knows anything. It says only where to look first: such a record is read before anything is
// reserved, and what is not found finished by that execution is the reservation's to judge. So forgetting costs a little
// time, and remembering what is gone no more.
type finished struct {
	seed   maphash.Seed
	most   int
	mu     sync.Mutex
	known  map[uint64]uint64 // hashes of scopes and tokens
	oldest []uint64          // a ring, in the order of coming, once there are the most
	next   int
}

func newFinished(most int) *finished {
	return &finished{seed: maphash.MakeSeed(), most: most, known: map[uint64]uint64{}}
}

func (f *finished) add(s idempotency.Scope, by idempotency.Token) {
	h := maphash.Comparable(f.seed, s)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.known[h]
	f.known[h] = maphash.Comparable(f.seed, by)
	if ok {
		return
	}
	if len(f.oldest) < f.most {
		f.oldest = append(f.oldest, h)
		return
	}
	delete(f.known, f.oldest[f.next])
	f.oldest[f.next] = h
	f.next = (f.next + 1) % len(f.oldest)
}

func (f *finished) has(s idempotency.Scope) bool {
	h := maphash.Comparable(f.seed, s)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.known[h]
	return ok
}

// hasBy tells whether it was that execution that was seen to finish the record.
func (f *finished) hasBy(s idempotency.Scope, by idempotency.Token) bool {
	h := maphash.Comparable(f.seed, s)
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[h]
	return ok && known == maphash.Comparable(f.seed, by)
}

// replay answers a repeat of what was finished here from the record, without reserving anything. answered is false if
// the reservation has to find out.
func (r *run) replay(ctx context.Context) (answer Answer, answered bool, err error) {
	if !r.finished.has(r.reservation.Scope) {
		return Answer{}, false, nil
	}
	verdict := idempotency.Vacant
	ctx = r.doing(ctx, port.Looking)
	err = r.work.Read(ctx, func(tx port.Tx) (err error) {
		r.stored, err = tx.Records().Find(ctx, r.reservation.Scope)
		if err == nil {
			verdict = r.stored.Judge(r.reservation, tx.Now())
		}
		return err
	})
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return Answer{}, false, nil
	case err != nil || verdict != idempotency.Done || !r.finished.hasBy(r.stored.Scope, r.stored.Token):
		return Answer{}, false, err
	}
	r.held = r.stored
	r.tell(ctx, port.Replayed, r.stored.Outcome.Refusal, nil)
	return Answer{Outcome: r.stored.Outcome, Replayed: true}, true, nil
}
