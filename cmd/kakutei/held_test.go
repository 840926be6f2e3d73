package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// Somebody outside holds the order's row before it is paid: a migration by hand, a forgotten session. Nobody queues for
// it: who asks for the order is told that it is busy, nothing is on record, and the others are served.
func TestAnOrderThatIsHeldFromOutsideIsBusyAndNothingElseIs(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	r := serving(t, g.env)
	hot := r.fresh("hot-", 1)[0]
	holder := g.outside(`SELECT id FROM orders FOR UPDATE`)
	crowd := slices.Repeat([]*insistence{paymentOf(hot.order, hot.key)}, 25)
	for i := range 25 {
		crowd = append(crowd, paymentOf(hot.order, fmt.Sprint("pay-", i)))
	}
	told := r.crowd(crowd, "_in_progress", crashLease) // the order's payment; or the key's request, which waits for the row
	payments := r.others(10)
	told()
	assert.Zero(t, g.number(`SELECT count(*) FROM idempotency_records WHERE idempotency_key NOT LIKE '%other%'
		AND operation = 'ConfirmPayment'`), "no key is used up")
	holder.gives("ROLLBACK")
	require.NoError(t, hot.insist(t.Context(), func() *running { return r }))
	g.whole(r, append(payments, hot)...)
	r.stop()
}

// heldWhileAsked are what a completion needs and somebody else may take while the provider is asked.
var heldWhileAsked = map[string]string{
	"the order's row":   `SELECT id FROM orders WHERE status = 'PAYMENT_PENDING' FOR UPDATE`,
	"the record's row":  `SELECT token FROM idempotency_records WHERE operation = 'ConfirmPayment' FOR UPDATE`,
	"the entries":       `LOCK TABLE journal_entries IN SHARE MODE`,
	"the orders' table": `LOCK TABLE orders IN SHARE MODE`,
}

// The completion waits for what is held no longer than it may. The money may have been taken, so the outcome is unknown;
// it is known when the holder has given it back, and asking meanwhile costs nobody his turn. (The end of the lease could
// not be written into a record that is held: it is waited for.)
func TestWhatIsHeldWhileTheProviderIsAskedLeavesTheOutcomeUnknown(t *testing.T) {
	for name, lock := range heldWhileAsked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, provider := pausing(t, "KAKUTEI_LOCK_TIMEOUT", "300ms", "KAKUTEI_LEASE", "3s",
				"KAKUTEI_GATEWAY_TIMEOUT", "2900ms")
			r := serving(t, g.env)
			p := r.fresh("hot-", 1)[0]
			other := r.fresh("other-", 1)[0]
			answer := r.begun(p, provider)
			holder := g.outside(lock)
			provider.goOn()
			require.NoError(t, <-answer)
			assert.Equal(t, http.StatusServiceUnavailable, p.first.status, p.first.body)
			assert.Contains(t, p.first.body, `"code":"outcome_unknown"`)
			for range 5 {
				r.boundedly(paymentOf(p.order, p.key))
			}
			if strings.HasSuffix(name, "row") {
				require.NoError(t, other.insist(t.Context(), func() *running { return r }), "others are served")
			} else {
				r.boundedly(other)
			}
			holder.gives("ROLLBACK")
			for _, payment := range []*insistence{p, other} {
				require.NoError(t, payment.insist(t.Context(), func() *running { return r }))
			}
			g.whole(r, p, other)
			r.stop()
		})
	}
}

// boundedly sends a payment and demands that its answer, whatever it is, comes within what the contract says: the gateway
// timeout and five lock timeouts, of 300 ms here. The provider is quick, so its time is all slack.
func (r *running) boundedly(p *insistence) {
	r.t.Helper()
	began := time.Now()
	_, err := p.try(r.t.Context(), r)
	require.NoError(r.t, err)
	assert.Less(r.t, time.Since(began), 5*300*time.Millisecond+5*time.Second)
	assert.NotZero(r.t, p.first.status, "it is answered")
}

// A whole table is locked from outside, by somebody's DDL: every answer comes in bounded time, and all is whole when the
// table is free again.
func TestATableThatIsLockedFromOutsideBoundsEveryAnswer(t *testing.T) {
	for _, table := range []string{"orders", "idempotency_records", "journal_entries", "audit_head", "goose_db_version"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_LOCK_TIMEOUT", "300ms", "KAKUTEI_DB_POOL", "4")
			r := serving(t, g.env)
			payments := r.fresh("of-many-", 12)
			holder := g.outside(`LOCK TABLE ` + table + ` IN ACCESS EXCLUSIVE MODE`)
			together(t, payments, r.boundedly)
			began := time.Now()
			ready := r.get("/readyz")
			assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, ready.status, ready.body)
			posting := r.posted("inv-1")
			assert.NotEqual(t, http.StatusInternalServerError, posting.status, posting.body)
			assert.Less(t, time.Since(began), 2*(5*300*time.Millisecond+5*time.Second))
			holder.gives("ROLLBACK")
			for _, p := range payments {
				require.NoError(t, p.insist(t.Context(), func() *running { return r }))
			}
			g.exec(`DELETE FROM journal_entries WHERE company_id = 'company-1'`) // what is not a payment's
			g.whole(r, payments...)
			r.stop()
		})
	}
}

// posted posts a document for company-1.
func (r *running) posted(document string) answered {
	r.t.Helper()
	a, _, err := r.askAs(r.t.Context(), "demo-alice@company-1", "/api/journal-entries/post", "", invoice(document))
	require.NoError(r.t, err)
	return a
}

// invoice is a document of company-1 over 110000.
func invoice(id string, lines ...string) string {
	text := `{"companyId":"company-1","sourceDocumentType":"sales_invoice","sourceDocumentId":"` + id +
		`","serviceDate":"2025-01-29","total":110000`
	if len(lines) > 0 {
		text += `,"lines":[` + strings.Join(lines, ",") + `]`
	}
	return text + `}`
}
