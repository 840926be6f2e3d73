package main

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// away has the store's clock be away from every process's by so much, and its zone far from both: a schema that comes before
// PostgreSQL's own has a now() of its own. Whoever takes the time from a process instead is found out.
func (g ground) away(by time.Duration) {
	g.t.Helper()
	shift := fmt.Sprintf(`interval '%d seconds'`, int(by.Seconds()))
	g.exec(`CREATE SCHEMA wrong`)
	for _, clock := range []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp"} {
		g.exec(`CREATE FUNCTION wrong.` + clock + `() RETURNS timestamptz LANGUAGE sql STABLE AS
			$$ SELECT pg_catalog.` + clock + `() + ` + shift + ` $$`)
	}
	for _, setting := range []string{`search_path = public, wrong, pg_catalog`, `timezone = ''Pacific/Chatham''`} {
		g.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ` + setting + `', current_database()); END $$`)
	}
	require.Equal(g.t, int(by.Seconds()), g.number(`SELECT CAST(extract(epoch FROM now() - pg_catalog.now()) AS int)`))
}

// skews are how far the store's clock is away from those of the instances.
var skews = map[string]time.Duration{"ten minutes ahead": 10 * time.Minute, "ten minutes behind": -10 * time.Minute, "two days ahead": 48 * time.Hour}

// C87: no instance's clock decides. Leases, retention, sweeping and the time of a payment are the store's, however far the
// clocks of the processes are away from it.
func TestNoInstancesClockDecides(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, provider := pausing(t, "KAKUTEI_LEASE", crashLease.String(), "KAKUTEI_GATEWAY_TIMEOUT", "1900ms",
				"KAKUTEI_SWEEP_INTERVAL", "10ms")
			g.away(skew)
			one, two := g.with("TZ", "Asia/Tokyo").start().running, g.with("TZ", "America/Los_Angeles").start().running

			held := paymentOf(one.placed("place-held"), "pay-held")
			answer := one.begun(held, provider)
			a, header, err := two.askAs(t.Context(), "demo-alice", held.path, held.key, held.body)
			require.NoError(t, err)
			assert.Equal(t, "409 idempotency_in_progress", kind(a), "its holder is alive by the store's clock")
			waits(t, header, crashLease)
			require.NoError(t, <-answer) // the provider does not answer in time: the lease is ended
			assert.Equal(t, "503 outcome_unknown", kind(held.first))
			provider.goOn()
			require.NoError(t, held.insist(t.Context(), func() *running { return two }), "taken over by the other one")

			paid := two.fresh("paid-", 1)[0]
			require.NoError(t, paid.insist(t.Context(), func() *running { return one }))
			b, err := two.ask(t.Context(), paid.path, paid.key, paid.body)
			require.NoError(t, err)
			assert.Equal(t, answered{http.StatusOK, true, paid.final[0]}, b, "the sweepers have deleted nothing that lives")
			assert.Zero(t, g.number(`SELECT count(*) FROM orders
				WHERE abs(extract(epoch FROM paid_at - now())) > 60 OR abs(extract(epoch FROM placed_at - now())) > 60`),
				"every time is the store's")
			g.whole(one, held, paid)
		})
	}
}

// C87: a holder that died is taken over when its lease is over by the store's clock, neither at once nor after the skew.
func TestACrashedHoldersLeaseEndsByTheStoresClock(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, pgtest.Empty(t))
			g.away(skew)
			p, died := g.dies(afterCharge)
			r := g.start()
			first, err := r.ask(t.Context(), p.path, p.key, p.body)
			require.NoError(t, err)
			if time.Since(died) < crashLease/2 { // on a machine that is that slow the lease is over
				assert.Equal(t, "409 idempotency_in_progress", kind(first))
			}
			r.becomes(p.order, "PAID")
			t.Logf("whole %s after the death", time.Since(died).Round(time.Millisecond))
			g.whole(r.running, p)
		})
	}
}

// C88: a lease's end that a hand has written is no reason for nonsense: whoever is told to wait is told seconds, from one to
// the lease.
func TestTheAdviceToWaitIsNeverNonsense(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_RECOVERY_INTERVAL", "0")
	r := serving(t, g.env)
	p := r.fresh("down-", 1)[0]
	p.body = paidBy("pm_down")
	unknown, header, err := r.askAs(t.Context(), "demo-alice", p.path, p.key, p.body)
	require.NoError(t, err)
	assert.Equal(t, "503 outcome_unknown", kind(unknown))
	waits(t, header, crashLease)
	for _, c := range []struct{ end, told string }{
		{`now() + interval '10 hours'`, "409 idempotency_in_progress"},
		{`now() + interval '10 years'`, "409 idempotency_in_progress"},
		{`now() - interval '1 second'`, "503 outcome_unknown"},
		{`now() - interval '10 years'`, "503 outcome_unknown"},
	} {
		g.exec(`UPDATE idempotency_records SET lease_expires_at = ` + c.end + ` WHERE status = 'IN_PROGRESS'`)
		status, header := r.lookUp(p.key)
		assert.Equal(t, http.StatusOK, status, c.end)
		waits(t, header, crashLease)
		a, header, err := r.askAs(t.Context(), "demo-alice", p.path, p.key, p.body)
		require.NoError(t, err)
		assert.Equal(t, c.told, kind(a), c.end)
		waits(t, header, crashLease)
	}
	r.stop()
}

// lookUp asks what became of a payment.
func (r *running) lookUp(key string) (status int, header http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet,
		r.base+"/api/idempotency-keys/"+url.PathEscape(key)+"?operation=ConfirmPayment", nil)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer demo-alice")
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	return res.StatusCode, res.Header
}
