package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// L3: the way to the database is long, or narrow, or both so much that statements are given up on it. No client sees a 500,
// and nothing is done twice.
func TestASlowWayToTheDatabaseCostsTimeAlone(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		piece int
		lock  string // timeout
	}{
		"long":                    {2 * time.Millisecond, 0, forgiving},
		"narrow":                  {time.Millisecond, 64, forgiving},
		"too slow to wait for it": {8 * time.Millisecond, 256, "100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, proxy, r := proxied(t, "KAKUTEI_LOCK_TIMEOUT", c.lock, "KAKUTEI_RECOVERY_INTERVAL", "100ms")
			payments := r.fresh("before-", 8)
			load := r.underLoad(func() {
				proxy.Slow(c.pause, c.piece)
				mended := make(chan struct{})
				time.AfterFunc(loadFor, func() { proxy.Mend(); close(mended) })
				together(t, payments, r.inTheEnd)
				<-mended
			})
			payments = append(payments, load...)
			waited := 0
			for _, p := range payments {
				if p.first.status == http.StatusServiceUnavailable {
					waited++
				}
			}
			t.Logf("%d payments over a slow way, %d of which were told to come again", len(payments), waited)
			g.whole(r, payments...)
			r.stop()
		})
	}
}

// A primary that is demoted while it is used: its sessions find themselves read-only. Nothing is executed then; when it is
// writable again, all is as before, without a restart.
func TestAPrimaryThatIsReadOnlyForATimeIsServedFromAgain(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	r := serving(t, g.env)
	paid, unpaid := r.fresh("paid-", 1)[0], r.fresh("unpaid-", 1)[0]
	require.NoError(t, paid.insist(t.Context(), func() *running { return r }))
	g.demotes(true)
	for range 2 {
		a, header, err := r.askAs(t.Context(), "demo-alice", unpaid.path, unpaid.key, unpaid.body)
		require.NoError(t, err)
		assert.Equal(t, "503 unavailable", kind(a))
		waits(t, header, crashLease)
	}
	assert.Equal(t, http.StatusOK, r.get(unpaid.order).status, "what only reads is served")
	r.turns(http.StatusServiceUnavailable)
	assert.Equal(t, 0, g.charges(unpaid.order))
	g.demotes(false)
	r.turns(http.StatusOK)
	require.NoError(t, unpaid.insist(t.Context(), func() *running { return r }))
	g.whole(r, paid, unpaid)
	r.stop()
}

// demotes has the database's sessions, also those to come, only read, or write again. Who is connected is sent away, as a
// primary does when it is demoted.
func (g ground) demotes(yes bool) {
	g.t.Helper()
	setting := map[bool]string{true: "on", false: "off"}[yes]
	o := g.outside(`SET TRANSACTION READ WRITE`)
	o.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ` + setting + `',
		current_database()); END $$`)
	o.gives("COMMIT")
	g.number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
}

// turns waits until the service's readiness is answered so.
func (r *running) turns(status int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.get("/readyz").status == status }, soon, 50*time.Millisecond,
		"readiness becomes %d", status)
}
