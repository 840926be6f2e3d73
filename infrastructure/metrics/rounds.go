package metrics

import (
	"time"

	"kakutei/application/idempotent"
	"kakutei/application/oversight"
)

const unresolved = "unresolved"

// How much of a comparison could be compared.
const (
	whole   = "whole"
	partial = "partial"
)

// Recovered is told of each round of the recovery.
func (m *Metrics) Recovered(tried []idempotent.Tried, err error) {
	m.recoveryRounds.WithLabelValues(resultOf(err)).Inc()
	for _, t := range tried {
		result := recovered
		if t.Err != nil {
			result = unresolved
		}
		m.recoveryTries.WithLabelValues(result).Inc()
	}
}

// Swept is told of each round of the sweeper.
func (m *Metrics) Swept(records, auditEntries int, err error) {
	m.sweeps.WithLabelValues(resultOf(err)).Inc()
	m.swept.WithLabelValues("records").Add(float64(records))
	m.swept.WithLabelValues("audit_entries").Add(float64(auditEntries))
}

// Compared is told of each comparison with the provider. What a failed one has found so far is not the whole: the last
// findings stay.
func (m *Metrics) Compared(tally oversight.Tally, at time.Time, err error) {
	if err != nil {
		m.comparisons.WithLabelValues(failed).Inc()
		return
	}
	result := whole
	if !tally.Whole() {
		result = partial
	}
	m.comparisons.WithLabelValues(result).Inc()
	for _, kind := range oversight.FindingKinds {
		m.findings.WithLabelValues(string(kind)).Set(float64(tally.Findings[kind]))
	}
	elsewhere := 0
	for _, n := range tally.Elsewhere {
		elsewhere += n
	}
	m.uncompared.WithLabelValues(unresolved).Set(float64(tally.Unresolved))
	m.uncompared.WithLabelValues("unreadable").Set(float64(tally.Unreadable))
	m.uncompared.WithLabelValues("elsewhere").Set(float64(elsewhere))
	m.compared.Set(float64(at.UnixMilli()) / 1000)
}
