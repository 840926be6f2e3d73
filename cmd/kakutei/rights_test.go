package main

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// servant is a role that owns nothing and may do what the service does. It is gone when the test ends.
func (g ground) servant() (name string) {
	g.t.Helper()
	require.NoError(g.t, g.rows.QueryRowContext(g.t.Context(),
		`SELECT 'servant_of_' || substr(current_database(), 1, 50)`).Scan(&name))
	g.exec(`CREATE ROLE ` + name + ` LOGIN PASSWORD 'servant'`)
	g.t.Cleanup(func() {
		for _, statement := range []string{`DROP OWNED BY ` + name, `DROP ROLE ` + name} {
			_, err := g.rows.Exec(statement) //nolint:noctx // the test's context is over by now
			assert.NoError(g.t, err)
		}
	})
	g.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ` + name)
	return name
}

// C21: the service loses a right on one of its tables, and gets it back. Nothing is executed unguarded: without its record
// no payment begins, and one that cannot be recorded is not taken for done.
func TestARightThatIsTakenAwayStopsWhatNeedsIt(t *testing.T) {
	for name, c := range map[string]struct {
		right   string
		told    string
		charges int
	}{
		"the records cannot be written": {`INSERT, SELECT ON idempotency_records`, "503 unavailable", 0},
		"the records cannot be read":    {`SELECT ON idempotency_records`, "503 unavailable", 0},
		"no record can be made":         {`INSERT ON idempotency_records`, "503 unavailable", 0},
		"the orders cannot be read":     {`SELECT ON orders`, "503 unavailable", 0},
		"the orders cannot be changed":  {`UPDATE ON orders`, "503 unavailable", 0},
		"no record can be completed":    {`UPDATE ON idempotency_records`, "503 outcome_unknown", 1},
		"no entry can be made":          {`INSERT ON journal_entries`, "503 outcome_unknown", 1},
		"no entry can be read":          {`SELECT ON journal_entries`, "503 outcome_unknown", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_RECOVERY_INTERVAL", "0")
			require.Zero(t, alone(t, g.env, "migrate").code)
			servant := g.servant()
			address, err := url.Parse(g.env["KAKUTEI_DATABASE_URL"])
			require.NoError(t, err)
			address.User = url.UserPassword(servant, "servant")
			r := serving(t, g.with("KAKUTEI_DATABASE_URL", address.String()).env)
			p := r.fresh("without-", 1)[0]
			g.exec(`REVOKE ` + c.right + ` FROM ` + servant)
			for range 2 {
				a, header, err := r.askAs(t.Context(), "demo-alice", p.path, p.key, p.body)
				require.NoError(t, err)
				if kind(a) != "409 idempotency_in_progress" { // its lease could not be ended
					assert.Equal(t, c.told, kind(a))
				}
				waits(t, header, crashLease)
			}
			assert.Equal(t, c.charges, g.charges(p.order))
			assert.Zero(t, g.number(`SELECT count(*) FROM orders WHERE status = 'PAID'`))
			g.exec(`GRANT ` + c.right + ` TO ` + servant)
			require.NoError(t, p.insist(t.Context(), func() *running { return r }))
			assert.Equal(t, http.StatusOK, r.get("/readyz").status)
			g.whole(r, p)
			r.stop()
		})
	}
}
