package gormstore

import (
	"context"
	"errors"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// link is one transaction's way to the database. Statements travel together: the first exchange takes BEGIN and the
// transaction's settings along, the last one COMMIT, and writes wait for the next exchange.
type link interface {
	// exchange sends the writes and then the questions, and hands over their rows. It begins the transaction when that has
	// not been done.
	exchange(ctx context.Context, writes []write, questions ...question) error
	// commit sends the writes and COMMIT. Error: port.ErrCommitUnknown when nobody knows whether it was applied.
	commit(ctx context.Context, writes []write) error
	// now is the store's time at the first exchange.
	now() time.Time
	// end gives the connection back; what is not committed is undone.
	end()
}

// row is one row of an answer.
type row interface{ Scan(into ...any) error }

// session is one transaction as the repositories use it (port.Tx).
type session struct {
	ctx     context.Context //nolint:containedctx // the transaction's own, for Now, which takes none
	store   *Store
	sql     builder
	wait    port.Wait
	reads   bool // only
	alone   bool // it shares its way with no other transaction
	careful bool // it presumes nothing
	whole   bool // what it sends first is all, and COMMIT goes with it
	link    link // nil until something is asked
	writes  []write
	failed  error // the first error of the database: after it nothing may be committed
	ahead   announced
	locked  orderRow // the order that this transaction has locked last

	changed  orderRow  // the locked order as this transaction leaves it
	seen     orderRow  // an order that it has read, or placed
	heard    time.Time // when the store's time was
	presumed presumed
	checked  bool              // the update of the presumed order makes sure of it
	reserves idempotency.Scope // of the reservation that has presumed
	granted  bool              // that one, so what it has presumed is so
	clock    time.Time         // the store's time, if that was presumed, too
}

var _ port.Tx = (*session)(nil)

var errReads = errors.New("gormstore: a reading transaction writes nothing")

// Now brings the store's time, with an exchange of its own if it is the first thing that is asked.
func (s *session) Now() time.Time {
	if s.presumed != nothing {
		return s.clock
	}
	if (s.link == nil || s.link.now().IsZero()) && s.failed == nil {
		_ = s.fail(s.exchange(s.ctx, nil)) // told by the next statement
	}
	if s.link == nil {
		return time.Time{}
	}
	return s.link.now()
}

// Orders implements port.Tx.
func (s *session) Orders() order.Repository { return orders{s} }

// Records implements port.Tx.
func (s *session) Records() idempotency.Repository { return records{s} }

// Journal implements port.Tx.
func (s *session) Journal() journal.Repository { return entries{s} }

// Audit implements port.Tx.
func (s *session) Audit() port.AuditLog { return auditLog{s} }

// later keeps a write for the next exchange. Its error comes then.
func (s *session) later(w write) error {
	if s.reads {
		return s.fail(errReads)
	}
	if w.err != nil {
		return s.fail(w.err)
	}
	s.writes = append(s.writes, w)
	return nil
}

// ask sends what waits and then the question.
func (s *session) ask(ctx context.Context, q statement, each func(row) error) error {
	return s.askAll(ctx, question{statement: q, each: each})
}

// askAll asks several questions at once.
func (s *session) askAll(ctx context.Context, questions ...question) error {
	for _, q := range questions {
		if q.err != nil {
			return s.fail(q.err)
		}
	}
	if s.failed != nil {
		return s.failed
	}
	waiting := s.writes
	s.writes = nil
	if err := s.exchange(ctx, waiting, questions...); err != nil {
		return s.fail(err)
	}
	if s.isRefused() {
		return s.fail(errPresumed)
	}
	return nil
}

// exchange opens the way to the database, if that has not been done: by what is asked first it is known whether others
// can come along.
func (s *session) exchange(ctx context.Context, writes []write, questions ...question) (err error) {
	if s.link == nil {
		if s.link, err = s.store.open(s.ctx, s, writes, questions); err != nil { //nolint:contextcheck // the transaction's own
			return err
		}
	}
	err = s.link.exchange(ctx, writes, questions...)
	if err == nil && s.heard.IsZero() {
		s.heard = time.Now()
	}
	return err
}

func (s *session) commit(ctx context.Context) error {
	if s.failed != nil {
		return s.failed
	}
	if s.link == nil {
		if len(s.writes) == 0 {
			return nil
		}
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	err := s.link.commit(ctx, s.writes)
	if err == nil && s.heard.IsZero() {
		s.heard = time.Now()
	}
	return err
}

// begin opens the way for a transaction that has asked nothing. One that presumes has all that it sends travel at once.
func (s *session) begin(ctx context.Context) (err error) {
	if s.presumed == nothing {
		return s.exchange(ctx, nil)
	}
	s.whole = true
	s.link, err = s.store.open(s.ctx, s, s.writes, nil) //nolint:contextcheck // the transaction's own
	return err
}

func (s *session) end() {
	if s.link != nil {
		s.link.end()
	}
}

func (s *session) fail(err error) error {
	if s.failed == nil {
		s.failed = err
	}
	return err
}
