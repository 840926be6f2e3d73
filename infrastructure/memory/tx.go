package memory

import (
	"errors"
	"maps"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

var errReadOnly = errors.New("memory: a reading transaction can neither write nor hold anything")

// tx is one transaction: what it has written, laid over what is committed.
type tx struct {
	store    *Store
	now      time.Time
	readOnly bool
	orders   map[order.ID]order.State
	records  map[idempotency.Scope]*idempotency.Record // nil for one that is deleted
	entries  map[journal.ID]journal.Entry
	audited  []port.AuditEntry // in the order of their numbers
	swept    map[int64]bool    // numbers of audit entries that are deleted
	failed   error             // of the first refused write: nothing can be committed any more
}

// Now implements port.Tx.
func (t *tx) Now() time.Time { return t.now }

// Orders implements port.Tx.
func (t *tx) Orders() order.Repository { return orders{t} }

// Records implements port.Tx.
func (t *tx) Records() idempotency.Repository { return records{t} }

// Journal implements port.Tx.
func (t *tx) Journal() journal.Repository { return entries{t} }

// Audit implements port.Tx.
func (t *tx) Audit() port.AuditLog { return auditLog{t} }

var _ port.Tx = (*tx)(nil)

// fail remembers why the transaction cannot be committed, even if its function should not care.
func (t *tx) fail(err error) error {
	if t.failed == nil {
		t.failed = err
	}
	return err
}

func (t *tx) orderOf(id order.ID) (order.State, bool) {
	if written, ok := t.orders[id]; ok {
		return written, true
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	committed, ok := t.store.committed.orders[id]
	return committed, ok
}

// allOrders are the committed ones under those that this transaction has written.
func (t *tx) allOrders() map[order.ID]order.State {
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	all := maps.Clone(t.store.committed.orders)
	maps.Copy(all, t.orders)
	return all
}

func (t *tx) writeOrder(s order.State) {
	if t.orders == nil {
		t.orders = map[order.ID]order.State{}
	}
	t.orders[s.ID] = s
}

func (t *tx) recordOf(scope idempotency.Scope) (idempotency.Record, bool) {
	if written, ok := t.records[scope]; ok {
		if written == nil {
			return idempotency.Record{}, false
		}
		return cloned(*written), true
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	committed, ok := t.store.committed.records[scope]
	return cloned(committed), ok
}

func (t *tx) writeRecord(scope idempotency.Scope, r *idempotency.Record) {
	if t.records == nil {
		t.records = map[idempotency.Scope]*idempotency.Record{}
	}
	t.records[scope] = r
}
