package gormstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm/clause"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// A transaction may presume what an order is, and not lock and read it: nearly always it is as it was seen last, and the
// round trip is for nothing. Its update names the version that it changes, and what it has decided by (decisive); if
// anything of that is otherwise by then, everything starts anew, and presumes nothing. The same happens when it ends without
// that update: then it asks first, or starts anew at once, whether it has presumed rightly.
//
// Its time is then the store's as it was heard last, carried on with this process's clock for as long as that is not old.
type presumed int

const (
	nothing presumed = iota
	asLeft           // by the reservation before (left)
	asSeen           // by whoever had it last (familiar), and that the reservation's key is free
)

// left is an order as a reservation has left it, for the completion that follows.
type left struct {
	order orderRow
	store time.Time // the store's time
	here  time.Time // when that was heard: the store's clock has gone on since before it
}

// leftFor is how long a time is carried on, and an order presumed to be as its reservation has left it: who calls the
// provider for longer has time for a round trip, and two clocks go alike for so long.
const leftFor = time.Second

// leave hands the order that this transaction has changed to the one that follows.
func (s *session) leave() {
	if next := port.SuccessionIn(s.ctx); next != nil && s.store.familiar != nil && s.changed.ID != "" && !s.heard.IsZero() {
		next.Leave(left{order: s.changed, store: s.link.now(), here: s.heard})
	}
}

// learn remembers what this transaction has seen, for those who come later.
func (s *session) learn() {
	if s.store.familiar == nil || s.heard.IsZero() {
		return
	}
	s.store.clock.hear(s.link.now(), s.heard)
	s.store.familiar.see(s.seen)
	s.store.familiar.see(s.changed)
}

// fresh tells that nothing has been asked yet, and that it may be presumed.
func (s *session) fresh() bool {
	return !s.careful && !s.reads && s.link == nil && len(s.writes) == 0
}

// presume takes the order as it was left.
func (s *session) presume(id order.ID, customer string) (row orderRow, ok bool) {
	last := port.SuccessionIn(s.ctx)
	if last == nil || !s.fresh() {
		return orderRow{}, false
	}
	l, _ := last.Take().(left)
	now, isNew := carriedOn(l.store, l.here)
	if l.order.ID != string(id) || l.order.CustomerID != customer || !isNew {
		return orderRow{}, false
	}
	s.presumed, s.clock = asLeft, now
	return l.order, true
}

// recognize takes the announced order as it was seen last, and has the reservation presume that its key is free: then it
// has nothing to ask.
func (s *session) recognize(scope idempotency.Scope) bool {
	if s.ahead.id == "" || s.store.familiar == nil || s.wait != port.Briefly || !s.fresh() {
		return false
	}
	now, isNew := s.store.clock.now()
	if !isNew {
		return false
	}
	row, ok := s.store.familiar.take(s.ahead.id, s.ahead.customer)
	if !ok {
		return false
	}
	s.presumed, s.clock, s.ahead.row, s.locked, s.reserves = asSeen, now, row, row, scope
	return true
}

// isSure tells that what is sent last makes sure of what was presumed, or what was sent already has. A reservation that is
// sent last goes alone: if it is not granted, nothing else must be done.
func (s *session) isSure() bool {
	return s.checked && (s.presumed == asLeft || s.granted || len(s.writes) == 1)
}

// isRefused tells that the reservation was sent, and not granted.
func (s *session) isRefused() bool { return s.presumed == asSeen && s.checked && !s.granted }

// verify makes sure of what was presumed, when no update does. The error is what the transaction has come to.
func (s *session) verify(ctx context.Context, err error) error {
	if s.presumed == asSeen && err == nil {
		return s.fail(errPresumed)
	}
	if err != nil {
		s.writes, s.checked = nil, false
	}
	found, readErr := orders{s}.read(
		ctx, "locked order", order.ID(s.locked.ID), s.locked.CustomerID, clause.Locking{Strength: "UPDATE"},
	)
	if readErr == nil && s.presumed == asSeen && !s.granted {
		if _, stands := (records{s}).Find(ctx, s.reserves); !errors.Is(stands, idempotency.ErrNotFound) {
			readErr = s.fail(errPresumed)
		}
	}
	switch {
	case readErr != nil:
		return readErr
	case !found.is(s.locked):
		return s.fail(errPresumed)
	default:
		return err
	}
}

// reserveFor has the update of a presumed order travel with the reservation as one statement: it changes the order if the record
// was inserted, and fails if that and the order's change are not both done. If a record stands already, neither is, and that
// is no error of the database's.
func (s *session) reserveFor(update write) error {
	if len(s.writes) != 1 { // something has been asked in between: who has presumed so starts anew, with nothing committed
		s.checked = false
		return s.later(update)
	}
	w := write{statement: s.sql.granting(s.writes[0].statement, update.statement), miss: errPresumed, own: true}
	w.holds = append(s.writes[0].holds, update.holds...)
	w.busy = s.writes[0].busy
	w.each = func(answer row) error {
		var one *int
		err := answer.Scan(&one)
		s.granted = one != nil
		return err
	}
	s.writes = nil
	return s.later(w)
}

// granting is the text of that statement. What it answers is a row for each order that was changed, or one with NULL. What
// fails it stands first, and by itself: as a condition of the join it would not be looked at where no order was changed.
const granting = `WITH granted AS (
%s
RETURNING token
), changed AS (
	%s AND EXISTS (SELECT FROM granted WHERE token = $5) RETURNING %s
), met AS MATERIALIZED (
	SELECT 1/((SELECT count(*) FROM granted) = (SELECT count(*) FROM changed))::int AS one
)
SELECT changed.* FROM met LEFT JOIN changed ON met.one = 1`

// granting is the statement of a reservation and of what follows if it is granted.
func (b builder) granting(reservation, update statement) statement {
	s := statement{args: append(reservation.args, update.args...), err: errors.Join(reservation.err, update.err)}
	s.types = append(slices.Clone(reservation.types), update.types...)
	type texts struct{ one, many string }
	key := "granting " + update.sql
	known, ok := b.texts.Load(key)
	if !ok {
		behind := placeholder.ReplaceAllStringFunc(update.sql, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return fmt.Sprintf("$%d", len(reservation.args)+n)
		})
		set, where, _ := strings.Cut(behind, " WHERE ")
		known = texts{
			one:  fmt.Sprintf(granting, reservation.sql, behind, "1 AS one"),
			many: fmt.Sprintf(granting, reservation.text, set+" @each WHERE "+where, "nth, 1 AS one"),
		}
		b.texts.Store(key, known)
	}
	s.sql, s.text = known.(texts).one, known.(texts).many
	return s
}
