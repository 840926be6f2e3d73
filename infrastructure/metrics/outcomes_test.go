package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/infrastructure/storetest"
)

func TestEachOutcomeOfAConfirmationIsCountedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s shop)
		want    map[string]float64
	}{
		"executed": {func(s shop) {
			require.NoError(t, s.confirm(s.place(), "k"))
		}, map[string]float64{"executed": 1}},
		"replayed, by the instance that has executed it": {func(s shop) {
			id := s.place()
			require.NoError(t, s.confirm(id, "k"))
			require.NoError(t, s.confirm(id, "k"))
		}, map[string]float64{"executed": 1, "replayed": 1}},
		"replayed, by another one": {func(s shop) {
			id := s.place()
			require.NoError(t, s.beside().confirm(id, "k"))
			require.NoError(t, s.confirm(id, "k"))
		}, map[string]float64{"replayed": 1}},
		"in progress": {func(s shop) {
			id := s.place()
			held, ended := s.held(id, "k")
			require.ErrorIs(t, s.confirm(id, "k"), idempotency.ErrInProgress)
			held.Release()
			require.NoError(t, <-ended)
		}, map[string]float64{"executed": 1, "in_progress": 1}},
		"mismatch": {func(s shop) {
			id := s.place()
			require.NoError(t, s.confirm(id, "k"))
			_, err := s.ConfirmPayment(t.Context(), fewer(id, "k"))
			require.ErrorIs(t, err, idempotency.ErrKeyReused)
		}, map[string]float64{"executed": 1, "mismatch": 1}},
		"refused": {func(s shop) {
			s.Provider.Next(storetest.Declining("card_declined"))
			id := s.place()
			require.NoError(t, s.confirm(id, "k"))
			_, err := s.ConfirmPayment(t.Context(), fewer(id, "k2"))
			require.NoError(t, err)
		}, map[string]float64{"refused": 2}},
		"unknown, then taken over by the client's retry": {func(s shop) {
			s.Provider.Next(storetest.Unreachable)
			id := s.place()
			require.ErrorIs(t, s.confirm(id, "k"), idempotency.ErrOutcomeUnknown)
			require.NoError(t, s.confirm(id, "k"))
		}, map[string]float64{"unknown": 1, "taken_over": 1, "executed": 1}},
		"unknown, then recovered without the client": {func(s shop) {
			s.Provider.Next(storetest.Unreachable)
			id := s.place()
			require.ErrorIs(t, s.confirm(id, "k"), idempotency.ErrOutcomeUnknown)
			_, err := s.Resume(t.Context(), s.record(id, "k"))
			require.NoError(t, err)
		}, map[string]float64{"unknown": 1, "taken_over": 1, "recovered": 1}},
		"a lost lease, answered from the winner's record": {func(s shop) {
			id := s.place()
			held, ended := s.held(id, "k")
			s.clock.Pass(storetest.Times.Lease + time.Second)
			require.NoError(t, s.beside().confirm(id, "k"))
			held.Release()
			require.NoError(t, <-ended)
		}, map[string]float64{"lease_lost": 1, "replayed": 1}},
		"a commit without an answer": {func(s shop) {
			id := s.place()
			s.Store.LoseCommit(2, storetest.Applied)
			require.NoError(t, s.confirm(id, "k"))
		}, map[string]float64{"commit_unknown": 1, "replayed": 1}},
		"another key for a paid order": {func(s shop) {
			id := s.place()
			require.NoError(t, s.confirm(id, "k"))
			require.NoError(t, s.confirm(id, "k2"))
		}, map[string]float64{"executed": 2, "duplicate": 1}},
		"other money than was asked": {func(s shop) {
			s.Provider.Next(storetest.Taking(money.Of(1, money.JPY)))
			require.ErrorIs(t, s.confirm(s.place(), "k"), idempotency.ErrOutcomeUnknown)
		}, map[string]float64{"amount_conflict": 1, "unknown": 1}},
		"nothing, when nothing was done": {func(s shop) {
			require.Error(t, s.confirm("01930000-0000-7000-8000-000000000000", "k"))
		}, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			c.happens(s)
			assert.Equal(t, c.want, s.outcomes(checkout.OpConfirmPayment))
		})
	}
}

func TestARefusalIsCountedByItsCode(t *testing.T) {
	s := open(t)
	s.Provider.Next(storetest.Declining("card_declined"))
	id := s.place()
	require.NoError(t, s.confirm(id, "k"))
	require.NoError(t, s.confirm(id, "k"), "its replay is none")
	_, err := s.ConfirmPayment(t.Context(), fewer(id, "k2"))
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{
		`code="payment_declined",operation="ConfirmPayment"`: 1, `code="amount_mismatch",operation="ConfirmPayment"`: 1,
	}, counted(t, s.metrics, "kakutei_refusals_total"))
}

func TestAPostingIsCountedAndAConflictOverItsKeyToo(t *testing.T) {
	s := open(t)
	post := func(total int64, lines ...journal.Line) error {
		day, err := journal.ParseDate("2025-01-29")
		require.NoError(t, err)
		content, err := journal.NewContent(journal.SourceDocument{
			Company: "c", Type: journal.SalesInvoice, ID: "inv-1", ServiceDate: day, Total: total,
		}, money.JPY, lines)
		require.NoError(t, err)
		_, err = s.ledger.PostJournalEntry(t.Context(), bookkeeping.PostJournalEntry{By: "alice", Content: content})
		return err
	}
	require.NoError(t, post(10))
	require.NoError(t, post(10))
	require.ErrorIs(t, post(10, journal.Line{Account: "a", Side: journal.Debit, Amount: 10},
		journal.Line{Account: "b", Side: journal.Credit, Amount: 10}), journal.ErrMismatch)
	assert.Equal(t, map[string]float64{"executed": 1, "duplicate": 1, "mismatch": 1}, s.outcomes(bookkeeping.OpPostJournalEntry))
	assert.InDelta(t, 1, scraped(t, s.metrics)["kakutei_posting_key_conflicts_total"], 0)

	for n := range 3 {
		s.Store.LoseCommit(n+1, storetest.Undone)
	}
	require.ErrorIs(t, post(11), idempotency.ErrOutcomeUnknown)
	assert.Equal(t, map[string]float64{"executed": 1, "duplicate": 1, "mismatch": 1, "commit_unknown": 3, "unknown": 1},
		s.outcomes(bookkeeping.OpPostJournalEntry))
}

func TestACounterIsThereBeforeItsFirstEvent(t *testing.T) {
	series := scraped(t, open(t).metrics)
	for _, name := range []string{
		`kakutei_outcomes_total{operation="ConfirmPayment",outcome="amount_conflict"}`,
		`kakutei_outcomes_total{operation="PostJournalEntry",outcome="mismatch"}`,
		`kakutei_posting_key_conflicts_total`, `kakutei_recovery_tries_total{result="unresolved"}`,
		`kakutei_reconciliation_runs_total{result="failed"}`, `kakutei_sweeps_total{result="failed"}`,
	} {
		value, isThere := series[name]
		assert.True(t, isThere, name)
		assert.Zero(t, value, name)
	}
}

func TestNoCallerMakesANewSeries(t *testing.T) {
	s := open(t)
	s.metrics.Observe(t.Context(), port.Event{What: port.Replayed, Scope: idempotency.Scope{Operation: "Steal"}})
	s.metrics.Request("BREW", "/api/orders", 405, time.Second, "method_not_allowed")
	s.metrics.Request("GET", "", 404, time.Second, "not_found")
	before := len(scraped(t, s.metrics))
	for _, word := range []string{"a", "b", "c"} {
		s.metrics.Observe(t.Context(), port.Event{What: port.Replayed, Scope: idempotency.Scope{Operation: idempotency.Operation(word)}})
		s.metrics.Request(word, "/api/orders", 405, time.Second, "method_not_allowed")
	}
	s.metrics.Observe(t.Context(), port.Event{What: "news"})
	assert.Len(t, scraped(t, s.metrics), before)
}

func TestTheStepsOfAnOperationAreMeasured(t *testing.T) {
	s := open(t)
	id := s.place()
	s.Provider.Next(storetest.Unreachable)
	require.Error(t, s.confirm(id, "k"))
	require.NoError(t, s.confirm(id, "k"))
	require.NoError(t, s.confirm(id, "k"))
	require.Error(t, s.confirm("01930000-0000-7000-8000-000000000000", "k2"))
	assert.Equal(t, map[string]float64{
		`operation="PlaceOrder",result="done",step="reserve"`:       1,
		`operation="ConfirmPayment",result="done",step="reserve"`:   2,
		`operation="ConfirmPayment",result="failed",step="reserve"`: 1,
		`operation="ConfirmPayment",result="done",step="abandon"`:   1,
		`operation="ConfirmPayment",result="done",step="complete"`:  1,
		`operation="ConfirmPayment",result="done",step="look"`:      1,
	}, counted(t, s.metrics, "kakutei_step_duration_seconds_count"))
	assert.Equal(t, map[string]float64{`call="charge",result="unknown"`: 1, `call="charge",result="approved"`: 1},
		counted(t, s.metrics, "kakutei_gateway_call_duration_seconds_count"))
}
