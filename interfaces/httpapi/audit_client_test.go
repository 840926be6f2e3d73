package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/oversight"
)

const operator = "demo-operator"

// auditEntry is an entry of the audit log as operators read it.
type auditEntry struct {
	ID, At, Operation, Actor, IdempotencyKey, Kind, Detail string
}

type auditPage struct {
	Entries []auditEntry
	Next    *string
}

func auditing(query string) request { return get(pathAudit + query).token(operator) }

// audit is one page of the log.
func (e edge) audit(t *testing.T, query string) (page auditPage) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(e.send(t, auditing(query)).is(t, http.StatusOK).body), &page))
	return page
}

// marker is the company of the entries that audited makes for itself.
const marker = "marker"

// audited is the whole log once everything that was observed before is in it: entries are written in the order in which
// they were observed, so whoever sees the entry of a repeat of his own has seen them all.
func (e edge) audited(t *testing.T) (entries []auditEntry) {
	t.Helper()
	mark := invoice(freshKey()).with("companyId", marker)
	e.booking(t, mark)
	key := e.repeating(t, mark).member(t, "idempotencyKey")
	for last, deadline := "", time.Now().Add(20*time.Second); time.Now().Before(deadline); {
		page := e.audit(t, "?limit=500"+last)
		for _, entry := range page.Entries {
			if entry.IdempotencyKey == key {
				return entries
			}
			if entry.Actor != marker {
				entries = append(entries, entry)
			}
			last = "&after=" + url.QueryEscape(entry.ID)
		}
	}
	require.Fail(t, "the audit log is not written")
	return nil
}

// ofKind are the entries of one kind.
func ofKind(entries []auditEntry, kind string) (found []auditEntry) {
	for _, entry := range entries {
		if entry.Kind == kind {
			found = append(found, entry)
		}
	}
	return found
}

// forget empties the log.
func (e edge) forget(t *testing.T) {
	t.Helper()
	_, err := oversight.SweepAudit(t.Context(), e.work, idempotent.Pace{}, -time.Hour)
	require.NoError(t, err)
}
