package gormstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm/clause"

	"kakutei/application/port"
	"kakutei/domain/order"
)

// left is an order as a reservation has left it, for the completion that follows. That would lock the order and read it,
// and nearly always it is as it was left: the round trip and the lock are for nothing. So the completion presumes it, and
// its update names the version that it changes, and what it has decided by (decisive); if anything of that is otherwise by
// then, everything starts anew, with a lock. The same happens when it ends without that update, or with an error: then it
// asks first whether it has presumed rightly.
//
// Its time is then the reservation's, carried on with this process's clock for as long as that is old.
type left struct {
	order orderRow
	store time.Time // the store's time
	here  time.Time // when that was heard: the store's clock has gone on since before it
}

// leftFor is how long an order is presumed to be as it was: who calls the provider for longer has time for a round trip,
// and two clocks go alike for so long.
const leftFor = time.Second

// leave hands the order that this transaction has changed to the one that follows.
func (s *session) leave() {
	if next := port.SuccessionIn(s.ctx); next != nil && s.store.presumes && s.changed.ID != "" && !s.heard.IsZero() {
		next.Leave(left{order: s.changed, store: s.link.now(), here: s.heard})
	}
}

// presume takes the order as it was left, if nothing has been asked yet.
func (s *session) presume(id order.ID, customer string) (row orderRow, presumed bool) {
	last := port.SuccessionIn(s.ctx)
	if last == nil || s.alone || s.reads || s.link != nil || len(s.writes) > 0 {
		return orderRow{}, false
	}
	l, _ := last.Take().(left)
	age := time.Since(l.here)
	if l.order.ID != string(id) || l.order.CustomerID != customer || age > leftFor {
		return orderRow{}, false
	}
	s.presumed, s.clock = true, l.store.Add(age).Truncate(time.Microsecond)
	return l.order, true
}

// verify makes sure of the order that was presumed, when no update does. The error is what the transaction has come to.
func (s *session) verify(ctx context.Context, err error) error {
	if err != nil {
		s.writes = nil
	}
	presumed := s.locked
	found, readErr := orders{s}.read(
		ctx, "locked order", order.ID(presumed.ID), presumed.CustomerID, clause.Locking{Strength: "UPDATE"},
	)
	switch {
	case readErr != nil:
		return readErr
	case !slices.EqualFunc(found.values(), presumed.values(), sameValue):
		return s.fail(errAlone)
	default:
		return err
	}
}
