package memory

import (
	"context"
	"time"

	"kakutei/domain/idempotency"
)

// records implements idempotency.Repository.
type records struct{ t *tx }

func (r records) Reserve(
	_ context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	if r.t.readOnly {
		return idempotency.Record{}, errReadOnly
	}
	if stands, ok := r.t.recordOf(n.Scope); ok {
		return stands, nil
	}
	opened := n.Opened(r.t.now, lease)
	r.t.writeRecord(n.Scope, &opened)
	return opened, nil
}

func (r records) Replace(_ context.Context, old, next idempotency.Record) error {
	if r.t.readOnly {
		return errReadOnly
	}
	stands, ok := r.t.recordOf(old.Scope)
	if !ok || stands.Token != old.Token || stands.Status != old.Status {
		return r.t.fail(idempotency.ErrLost)
	}
	next = cloned(next)
	r.t.writeRecord(old.Scope, &next)
	return nil
}

func (r records) Find(_ context.Context, s idempotency.Scope) (idempotency.Record, error) {
	stands, ok := r.t.recordOf(s)
	if !ok {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return stands, nil
}

func (r records) Sweep(_ context.Context, limit int) (int, error) {
	if r.t.readOnly {
		return 0, errReadOnly
	}
	expired := r.expired(limit)
	for _, scope := range expired {
		r.t.writeRecord(scope, nil)
	}
	return len(expired), nil
}

// expired looks at the transaction's own writes first: what it has changed is not in the tables yet.
func (r records) expired(limit int) []idempotency.Scope {
	var found []idempotency.Scope
	for scope, written := range r.t.records {
		if len(found) == limit {
			return found
		}
		if written != nil && written.ExpiredAt(r.t.now) {
			found = append(found, scope)
		}
	}
	r.t.store.mu.RLock()
	defer r.t.store.mu.RUnlock()
	for scope, committed := range r.t.store.committed.records {
		if len(found) == limit {
			return found
		}
		if _, changed := r.t.records[scope]; !changed && committed.ExpiredAt(r.t.now) {
			found = append(found, scope)
		}
	}
	return found
}
