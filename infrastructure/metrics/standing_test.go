package metrics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/metrics"
	"kakutei/infrastructure/storetest"
)

func noAudit() (waiting, lost int) { return 0, 0 }

func TestAScrapeShowsHowLongTheOldestUnresolvedRecordIsThere(t *testing.T) {
	s := open(t)
	desk := oversight.Desk{Work: s.work}
	s.metrics.Watch(metrics.Standing{Backlog: desk.Backlog, Audit: noAudit})
	s.Provider.Next(storetest.Unreachable, storetest.Unreachable)
	require.Error(t, s.confirm(s.place(), "k"))
	s.clock.Pass(time.Hour)
	require.Error(t, s.confirm(s.place(), "k2"))
	s.clock.Pass(time.Minute)
	series := scraped(t, s.metrics)
	assert.InDelta(t, 1, series["kakutei_store_up"], 0)
	assert.InDelta(t, 2, series["kakutei_unresolved_records"], 0)
	assert.InDelta(t, 3660, series["kakutei_unresolved_oldest_age_seconds"], 0, "by the store's clock")
}

func TestAStoreThatDoesNotAnswerIsNotWaitedForAndItsNumbersAreLeftOut(t *testing.T) {
	m := metrics.New("v1", "abc")
	var asked int
	m.Watch(metrics.Standing{Audit: noAudit, Backlog: func(ctx context.Context) (int, time.Duration, error) {
		asked++
		if deadline, has := ctx.Deadline(); !has || time.Until(deadline) > 2*time.Second {
			assert.Fail(t, "the question has no limit of two seconds")
		}
		return 0, 0, errors.New("away")
	}})
	for range 20 {
		series := scraped(t, m)
		assert.Zero(t, series["kakutei_store_up"])
		assert.Contains(t, series, "kakutei_store_up")
		assert.NotContains(t, series, "kakutei_unresolved_records")
		assert.NotContains(t, series, "kakutei_unresolved_oldest_age_seconds")
	}
	assert.LessOrEqual(t, asked, 10, "twenty scrapes take a moment, and do not ask twenty times")
}

func TestAScrapeShowsConnectionsAndTheAuditLogsQueue(t *testing.T) {
	m := metrics.New("v1", "abc")
	nothingLeft := func(context.Context) (int, time.Duration, error) { return 0, 0, nil }
	m.Watch(metrics.Standing{
		Backlog: nothingLeft, Audit: func() (int, int) { return 7, 3 },
		Connections: func() gormstore.Connections {
			return gormstore.Connections{Max: 16, InUse: 4, Acquired: 100, Refused: 2, Waited: 1500 * time.Millisecond}
		},
	})
	series := scraped(t, m)
	for name, want := range map[string]float64{
		"kakutei_audit_entries_waiting": 7, "kakutei_audit_entries_lost_total": 3, "kakutei_store_connections_max": 16,
		"kakutei_store_connections_in_use": 4, "kakutei_store_acquires_total": 100, "kakutei_store_acquires_refused_total": 2,
		"kakutei_store_acquire_seconds_total": 1.5, `kakutei_build_info{commit="abc",version="v1"}`: 1,
	} {
		assert.InDelta(t, want, series[name], 0, name)
	}
}

func TestRoundsAreCounted(t *testing.T) {
	m := metrics.New("v1", "abc")
	m.Recovered([]idempotent.Tried{{}, {}, {Err: errors.New("not yet")}}, nil)
	m.Recovered(nil, errors.New("away"))
	m.Swept(1000, 20, nil)
	m.Swept(5, 0, errors.New("away"))
	series := scraped(t, m)
	for name, want := range map[string]float64{
		`kakutei_recovery_rounds_total{result="done"}`: 1, `kakutei_recovery_rounds_total{result="failed"}`: 1,
		`kakutei_recovery_tries_total{result="recovered"}`: 2, `kakutei_recovery_tries_total{result="unresolved"}`: 1,
		`kakutei_sweeps_total{result="done"}`: 1, `kakutei_sweeps_total{result="failed"}`: 1,
		`kakutei_swept_rows_total{kind="records"}`: 1005, `kakutei_swept_rows_total{kind="audit_entries"}`: 20,
	} {
		assert.InDelta(t, want, series[name], 0, name)
	}
}

func TestTheFindingsAreThoseOfTheLastWholeComparison(t *testing.T) {
	m := metrics.New("v1", "abc")
	assert.Empty(t, counted(t, m, "kakutei_reconciliation_findings"))
	assert.NotContains(t, scraped(t, m), `kakutei_reconciliation_findings{kind="charged_twice"}`, "nobody has looked yet")

	at := time.Unix(1_700_000_000, 0)
	m.Compared(oversight.Tally{
		Unresolved: 4, Unreadable: 2, Elsewhere: map[string]int{"simulator": 3},
		Findings: map[oversight.FindingKind]int{oversight.ChargedTwice: 2},
	}, at, nil)
	m.Compared(oversight.Tally{Findings: map[oversight.FindingKind]int{}}, at.Add(time.Hour), errors.New("away"))
	series := scraped(t, m)
	for name, want := range map[string]float64{
		`kakutei_reconciliation_findings{kind="charged_twice"}`: 2, `kakutei_reconciliation_findings{kind="paid_not_booked"}`: 0,
		`kakutei_reconciliation_uncompared{kind="unresolved"}`: 4, `kakutei_reconciliation_uncompared{kind="unreadable"}`: 2,
		`kakutei_reconciliation_uncompared{kind="elsewhere"}`: 3, `kakutei_reconciliation_runs_total{result="partial"}`: 1,
		`kakutei_reconciliation_runs_total{result="failed"}`: 1, `kakutei_reconciliation_last_run_timestamp_seconds`: 1_700_000_000,
	} {
		value, isThere := series[name]
		assert.True(t, isThere, name)
		assert.InDelta(t, want, value, 0, name)
	}
}
