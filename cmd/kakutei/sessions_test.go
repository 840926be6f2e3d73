package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// isPostgres tells whether the ground's store is a PostgreSQL server.
func (g ground) isPostgres() bool {
	return !strings.HasPrefix(g.env["KAKUTEI_DATABASE_URL"], "sqlite:")
}

// neverLogged are what the server may not have to say of a service, whatever fails around it: an aborted transaction that
// is used further (25P02), or a unique key that is found out by violating it (23505). C62, C71.
var neverLogged = regexp.MustCompile(`current transaction is aborted|duplicate key value violates`)

// rests demands that a PostgreSQL server has got over everything: no session waits in a transaction that nobody goes on
// with, and its log tells of none of what must not be. A SQLite file has no sessions.
func (g ground) rests() {
	g.t.Helper()
	if !g.isPostgres() {
		return
	}
	assert.Eventually(g.t, func() bool {
		return g.number(`SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state LIKE 'idle in transaction%'`) == 0
	}, 5*time.Second, 10*time.Millisecond, "no session is left idle in a transaction")
	for _, line := range g.logged() {
		assert.NotRegexp(g.t, neverLogged, line)
	}
}

// logged is what the server has written in its log about the ground's database.
func (g ground) logged() (lines []string) {
	g.t.Helper()
	var database string
	require.NoError(g.t, g.rows.QueryRowContext(g.t.Context(), `SELECT current_database()`).Scan(&database))
	log, err := os.ReadFile(g.log)
	require.NoError(g.t, err, "KAKUTEI_TEST_POSTGRES_LOG must name the server's log; `make test` does it")
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, " "+database+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// waiting is how many sessions of the ground's database wait for a lock.
func (g ground) waiting() int {
	g.t.Helper()
	return g.number(`SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// outside is somebody else's session with the store. It holds what it has locked until it gives it back.
type outside struct {
	t    *testing.T
	exec func(statement string)
	done func()
}

// outside begins a transaction with these statements, which the service knows nothing of.
func (g ground) outside(statements ...string) outside {
	g.t.Helper()
	conn, err := g.rows.Conn(g.t.Context())
	require.NoError(g.t, err)
	o := outside{t: g.t, done: func() { require.NoError(g.t, conn.Close()) }}
	o.exec = func(statement string) {
		_, err := conn.ExecContext(g.t.Context(), statement)
		require.NoError(g.t, err, statement)
	}
	o.exec(`BEGIN`)
	for _, statement := range statements {
		o.exec(statement)
	}
	return o
}

// gives the locks back: with COMMIT or with ROLLBACK.
func (o outside) gives(end string) {
	o.t.Helper()
	o.exec(end)
	o.done()
}

// exec runs a statement from outside.
func (g ground) exec(statement string, args ...any) {
	g.t.Helper()
	_, err := g.rows.ExecContext(g.t.Context(), statement, args...)
	require.NoError(g.t, err, statement)
}
