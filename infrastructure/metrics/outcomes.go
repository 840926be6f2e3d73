package metrics

import (
	"context"

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// operations are those that a label may name; whatever else comes is other.
var operations = map[idempotency.Operation]bool{
	checkout.OpPlaceOrder: true, checkout.OpConfirmPayment: true, checkout.OpCancelOrder: true,
	bookkeeping.OpPostJournalEntry: true,
}

const other = "other"

func operationOf(o idempotency.Operation) string {
	if !operations[o] {
		return other
	}
	return string(o)
}

// The outcomes. The first seven end a request, each request has one of them or left no trace; the others come on the way.
const (
	executed       = "executed"
	recovered      = "recovered"
	refused        = "refused"
	replayed       = "replayed"
	inProgress     = "in_progress"
	mismatch       = "mismatch"
	unknown        = "unknown"
	takenOver      = "taken_over"
	leaseLost      = "lease_lost"
	commitUnknown  = "commit_unknown"
	duplicate      = "duplicate"
	amountConflict = "amount_conflict"
)

var outcomes = []string{
	executed, recovered, refused, replayed, inProgress, mismatch, unknown, takenOver, leaseLost, commitUnknown, duplicate,
	amountConflict,
}

// counted are the happenings that are counted as they are. A completion is looked at.
var counted = map[port.Happening]string{
	port.Replayed: replayed, port.InProgress: inProgress, port.Mismatch: mismatch, port.Unknown: unknown,
	port.Takeover: takenOver, port.LeaseLost: leaseLost, port.CommitUnknown: commitUnknown, port.Duplicate: duplicate,
	port.AmountConflict: amountConflict,
}

var _ port.Observer = (*Metrics)(nil)

// Observe implements port.Observer.
func (m *Metrics) Observe(_ context.Context, e port.Event) {
	operation, outcome := operationOf(e.Scope.Operation), counted[e.What]
	if e.What == port.Completed {
		switch {
		case e.Refusal != "":
			outcome = refused
			m.refusals.WithLabelValues(operation, string(e.Refusal)).Inc() // this program's own: not a caller's word
		case e.Unattended:
			outcome = recovered
		default:
			outcome = executed
		}
	}
	if outcome == "" {
		return
	}
	m.outcomes.WithLabelValues(operation, outcome).Inc()
	if e.What == port.Mismatch && e.Scope.Operation == bookkeeping.OpPostJournalEntry {
		m.conflicts.Inc()
	}
}
