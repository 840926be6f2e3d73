package port

import (
	"context"
	"time"

	"kakutei/domain/idempotency"
)

// AuditKind is what an audit entry is about. The kinds are published.
type AuditKind string

// The kinds (CONTRACT.md, Operators).
const (
	AuditMismatch       AuditKind = "mismatch"        // a key was used for another request
	AuditDuplicate      AuditKind = "duplicate"       // done before, under another key or by another posting
	AuditTakeover       AuditKind = "takeover"        // a holder's lease was over
	AuditLeaseLost      AuditKind = "lease_lost"      // a holder was fenced off
	AuditReleased       AuditKind = "released"        // an operator freed a record
	AuditResolved       AuditKind = "resolved"        // an operator said what the provider had done
	AuditAmountConflict AuditKind = "amount_conflict" // the provider took other money than was asked
)

// AuditKinds are all kinds.
var AuditKinds = []AuditKind{
	AuditMismatch, AuditDuplicate, AuditTakeover, AuditLeaseLost, AuditReleased, AuditResolved, AuditAmountConflict,
}

// AuditEntry is one line of the audit log: written once, never changed.
type AuditEntry struct {
	// Number orders the log: whoever has read up to a number has missed none that is smaller. 0 before it is stored.
	Number int64
	// EventID tells the same entry, sent twice, from two entries.
	EventID string
	At      time.Time
	Scope   idempotency.Scope
	Kind    AuditKind
	Detail  string // for people
}

// AuditLog is the port to the audit log, bound to one transaction.
type AuditLog interface {
	// Append writes the entries that are not there yet, numbered in the order in which transactions commit.
	Append(ctx context.Context, entries []AuditEntry) error
	// After lists the entries with larger numbers, in their order, limit at most; with a kind, only those of that kind.
	After(ctx context.Context, number int64, kind AuditKind, limit int) ([]AuditEntry, error)
	// Last is the largest number that was ever given.
	Last(ctx context.Context) (int64, error)
	// Sweep deletes at most limit entries from before a time, and tells how many.
	Sweep(ctx context.Context, before time.Time, limit int) (int, error)
}
