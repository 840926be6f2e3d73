package memory

import (
	"fmt"
	"maps"
	"slices"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// tables is what is committed: the rows, and an index for each uniqueness that SQL states as a constraint.
type tables struct {
	orders   map[order.ID]order.State
	payments map[string]order.ID // by payment id
	charges  map[string]order.ID // by the provider's charge id
	records  map[idempotency.Scope]idempotency.Record
	entries  map[journal.ID]journal.Entry
	postings map[journal.PostingKey]journal.ID

	audit      []port.AuditEntry // in the order of their numbers
	events     map[string]int64  // numbers of audit entries by event id
	lastNumber int64             // of an audit entry, whether or not it is still there
}

func emptyTables() tables {
	return tables{
		orders:   map[order.ID]order.State{},
		payments: map[string]order.ID{},
		charges:  map[string]order.ID{},
		records:  map[idempotency.Scope]idempotency.Record{},
		entries:  map[journal.ID]journal.Entry{},
		postings: map[journal.PostingKey]journal.ID{},
		events:   map[string]int64{},
	}
}

// commit makes the transaction's writes visible, all at once.
func (s *Store) commit(t *tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, written := range t.orders {
		s.committed.orders[id] = written
		if written.PaymentID != "" {
			s.committed.payments[written.PaymentID] = id
			s.committed.charges[written.ChargeID] = id
		}
	}
	for scope, written := range t.records {
		if written == nil {
			delete(s.committed.records, scope)
			continue
		}
		s.committed.records[scope] = *written
	}
	for id, written := range t.entries {
		s.committed.entries[id] = written
		s.committed.postings[written.PostingKey] = id
	}
	s.committed.takeAudit(t)
}

func (c *tables) takeAudit(t *tx) {
	for _, e := range t.audited {
		c.audit = append(c.audit, e)
		c.events[e.EventID] = e.Number
		c.lastNumber = e.Number
	}
	if len(t.swept) == 0 {
		return
	}
	c.audit = slices.DeleteFunc(c.audit, func(e port.AuditEntry) bool { return t.swept[e.Number] })
	maps.DeleteFunc(c.events, func(_ string, number int64) bool { return t.swept[number] })
}

// checkPaid states what SQL states in a CHECK: an order is PAID exactly when it has a payment, a charge and their time.
func checkPaid(s order.State) error {
	paid := s.Status == order.Paid
	if (s.PaymentID != "") != paid || (s.ChargeID != "") != paid || s.PaidAt.IsZero() == paid {
		return fmt.Errorf("memory: order %s is %s, which its payment does not fit", s.ID, s.Status)
	}
	return nil
}

// cloned is the record with a document of its own. An order needs no such function: it copies its lines itself.
func cloned(r idempotency.Record) idempotency.Record {
	r.Outcome.Document = slices.Clone(r.Outcome.Document)
	return r
}
