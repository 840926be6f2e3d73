package memory

import (
	"cmp"
	"context"
	"slices"
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

func (r records) Lock(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	if r.t.readOnly {
		return idempotency.Record{}, errReadOnly
	}
	return r.Find(ctx, s)
}

func (r records) Unresolved(_ context.Context, due bool, limit int) ([]idempotency.Record, error) {
	var found []idempotency.Record
	r.each(func(_ idempotency.Scope, stands idempotency.Record) bool {
		waits := due && (stands.Disputed || r.t.now.Before(stands.RecoverFrom))
		if stands.Unresolved(r.t.now) && !waits {
			found = append(found, cloned(stands))
		}
		return true
	})
	slices.SortFunc(found, func(a, b idempotency.Record) int {
		waiting := 0
		if due {
			waiting = a.DueSince().Compare(b.DueSince())
		}
		return cmp.Or(
			waiting, a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.Key, b.Key),
		)
	})
	return found[:min(limit, len(found))], nil
}

func (r records) Sweep(_ context.Context, limit int) (int, error) {
	if r.t.readOnly {
		return 0, errReadOnly
	}
	var expired []idempotency.Scope
	r.each(func(scope idempotency.Scope, stands idempotency.Record) bool {
		if stands.ExpiredAt(r.t.now) {
			expired = append(expired, scope)
		}
		return len(expired) < limit
	})
	for _, scope := range expired {
		r.t.writeRecord(scope, nil)
	}
	return len(expired), nil
}

// each looks at all records until it is told false. It looks at the transaction's own writes first: what it has changed
// is not in the tables yet.
func (r records) each(look func(idempotency.Scope, idempotency.Record) bool) {
	for scope, written := range r.t.records {
		if written != nil && !look(scope, *written) {
			return
		}
	}
	r.t.store.mu.RLock()
	defer r.t.store.mu.RUnlock()
	for scope, committed := range r.t.store.committed.records {
		if _, changed := r.t.records[scope]; !changed && !look(scope, committed) {
			return
		}
	}
}
