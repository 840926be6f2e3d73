package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/gormstore/pgtest"
)

// pooler is a PgBouncer of one test's own, in front of one database.
type pooler struct {
	url string // of the database behind it, as the README says
	log string
}

// pooled starts a PgBouncer that pools by transactions over two connections to the database, as .ci/with-pgbouncer says.
// It is gone when the test ends. The schema is brought past it.
func (g ground) pooled(database string) pooler {
	g.t.Helper()
	require.Zero(g.t, alone(g.t, g.env, "migrate").code)
	said := kept(g.t, append(os.Environ(), "KAKUTEI_TEST_DATABASE_URL="+database), "../../.ci/with-pgbouncer",
		"KAKUTEI_TEST_POOLER", "KAKUTEI_TEST_POOLER_LOG")
	address, err := url.Parse(database)
	require.NoError(g.t, err)
	address.Host = said[0]
	query := address.Query()
	query.Set("default_query_exec_mode", "exec")
	address.RawQuery = query.Encode()
	return pooler{url: address.String(), log: said[1]}
}

// neverPooled are what a server and a pooler say of a client that takes a pooled session for its own: a prepared statement
// that is there already, or is not (42P05, 26000), and a protocol that is violated (08P01).
var neverPooled = regexp.MustCompile(
	`prepared statement "[^"]*" (already exists|does not exist)|protocol violation|bind message|unsupported startup parameter`)

// wholeBehind is whole, and that neither the server nor the pooler has met a client that takes a session for its own.
func (g ground) wholeBehind(p pooler, r *running, payments ...*insistence) {
	g.t.Helper()
	g.with("KAKUTEI_DATABASE_URL", p.url).whole(r, payments...)
	pooled, err := os.ReadFile(p.log)
	require.NoError(g.t, err)
	for _, line := range append(g.logged(), strings.Split(string(pooled), "\n")...) {
		assert.NotRegexp(g.t, neverPooled, line)
	}
}

// C16, C80: behind a pooler that hands its two sessions from client to client by the transaction, a storm passes as it does
// without one, and what a transaction sets for itself stays in it.
func TestAStormPassesThroughAPoolerOfTransactions(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	p := g.pooled(g.env["KAKUTEI_DATABASE_URL"])
	r := serving(t, g.with("KAKUTEI_DATABASE_URL", p.url).env)
	other := serving(t, g.with("KAKUTEI_DATABASE_URL", p.url).env)
	hot := r.fresh("hot-", 1)[0]
	var identical []*insistence
	for range 100 {
		identical = append(identical, paymentOf(hot.order, hot.key))
	}
	together(t, identical, r.eitherWay)
	payments := append(r.fresh("fresh-", 200), hot)
	together(t, payments, func(p *insistence) { []*running{r, other}[len(p.key)%2].inTheEnd(p) })
	r.posts(50, func(int) string { return invoice("inv-same") }, http.StatusCreated, http.StatusOK)
	g.exec(`DELETE FROM journal_entries WHERE company_id = 'company-1'`) // what is not a payment's
	g.wholeBehind(p, r, payments...)
	for range 10 {
		for _, setting := range []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"} {
			assert.Equal(t, "0", p.shows(t, setting), "%s of whoever comes next", setting)
		}
	}
	r.stop()
	other.stop()
}

// shows is a setting of the session that the pooler hands to somebody else.
func (p pooler) shows(t *testing.T, setting string) (value string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), p.url)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	require.NoError(t, c.QueryRow(t.Context(), `SHOW `+setting).Scan(&value))
	return value
}

// C46: the wire that breaks at a commit may be the one behind the pooler. Then it is the pooler that tells of it, in words
// of its own, and nobody knows whether the commit was applied.
func TestACommitThatTheWireBehindThePoolerBreaksIsSettledByWhatStands(t *testing.T) {
	for _, commit := range []int{reservation, completion} {
		for name, fault := range map[string]pgproxy.Fault{
			"is applied, its answer lost": pgproxy.LoseAnswer, "never arrives": pgproxy.LoseCommit,
		} {
			t.Run(fmt.Sprint("commit ", commit, " ", name), func(t *testing.T) {
				g := groundOn(t, pgtest.Empty(t))
				proxy, database := pgproxy.Between(t, g.env["KAKUTEI_DATABASE_URL"])
				pool := g.pooled(database)
				r := g.driven(t, pool.url)
				p := r.fresh("doubted-", 1)[0]
				struck := proxy.Strike(commit, fault)
				_, err := p.try(t.Context(), r)
				require.NoError(t, err)
				<-struck
				assert.Equal(t, http.StatusOK, p.first.status, "the service settles it by itself: %s", p.first.body)
				assert.False(t, p.first.replayed, "it is its own execution's answer")
				g.whole(r, p)
				r.stop()
			})
		}
	}
}

// L6, behind a pooler: its sessions are ended again and again, and it opens new ones.
func TestSessionsOfAPoolerThatTheServerEndsUnderLoadCostNothing(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	pool := g.pooled(g.env["KAKUTEI_DATABASE_URL"])
	r := serving(t, g.with("KAKUTEI_DATABASE_URL", pool.url).env)
	ended := 0
	payments := r.underLoad(func() {
		repeatedly(200*time.Millisecond, loadFor, func() {
			ended += g.number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		})
	})
	require.NotZero(t, ended)
	t.Logf("%d payments while %d sessions of the pooler were ended", len(payments), ended)
	g.whole(r, payments...)
	r.stop()
}
