package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"kakutei/application/port"
)

// auditLog implements port.AuditLog. One transaction writes at a time: numbers are given in the order of commits.
type auditLog struct{ t *tx }

func (r auditLog) Append(_ context.Context, sent []port.AuditEntry) error {
	if r.t.readOnly {
		return errReadOnly
	}
	for _, e := range sent {
		if !slices.Contains(port.AuditKinds, e.Kind) {
			return r.t.fail(fmt.Errorf("memory: audit entry %s: there is no kind %q", e.EventID, e.Kind))
		}
		if r.t.isAudited(e.EventID) {
			continue
		}
		e.Number = r.t.lastNumber() + 1
		r.t.audited = append(r.t.audited, e)
	}
	return nil
}

func (r auditLog) After(
	_ context.Context, number int64, kind port.AuditKind, limit int,
) (found []port.AuditEntry, _ error) {
	for e := range r.t.auditEntries() {
		if len(found) == limit {
			break
		}
		if e.Number > number && (kind == "" || e.Kind == kind) {
			found = append(found, e)
		}
	}
	return found, nil
}

func (r auditLog) Last(context.Context) (int64, error) { return r.t.lastNumber(), nil }

func (r auditLog) Sweep(_ context.Context, before time.Time, limit int) (int, error) {
	if r.t.readOnly {
		return 0, errReadOnly
	}
	var old []int64
	for e := range r.t.auditEntries() {
		if len(old) == limit {
			break
		}
		if e.At.Before(before) {
			old = append(old, e.Number)
		}
	}
	for _, number := range old {
		r.t.forgetAudit(number)
	}
	return len(old), nil
}

// auditEntries are those that the transaction sees, in the order of their numbers.
func (t *tx) auditEntries() iter.Seq[port.AuditEntry] {
	return func(yield func(port.AuditEntry) bool) {
		t.store.mu.RLock()
		defer t.store.mu.RUnlock()
		for _, entries := range [][]port.AuditEntry{t.store.committed.audit, t.audited} {
			for _, e := range entries {
				if !t.swept[e.Number] && !yield(e) {
					return
				}
			}
		}
	}
}

func (t *tx) isAudited(eventID string) bool {
	isIt := func(e port.AuditEntry) bool { return e.EventID == eventID && !t.swept[e.Number] }
	if slices.ContainsFunc(t.audited, isIt) {
		return true
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	number, committed := t.store.committed.events[eventID]
	return committed && !t.swept[number]
}

func (t *tx) lastNumber() int64 {
	if written := len(t.audited); written > 0 {
		return t.audited[written-1].Number
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	return t.store.committed.lastNumber
}

func (t *tx) forgetAudit(number int64) {
	if t.swept == nil {
		t.swept = map[int64]bool{}
	}
	t.swept[number] = true
}
