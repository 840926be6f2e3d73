package gormstore_test

import (
	"context"
	"database/sql"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore/pgtest"
	"kakutei/migrations"
)

// The version of the schema whose records knew nothing of a recovery.
const beforeRecovery = 2

// earlier is a database of an earlier version.
type earlier struct {
	url string
	db  *sql.DB
}

func earlierDatabases(t *testing.T, version int64) map[string]earlier {
	t.Helper()
	file := filepath.Join(t.TempDir(), "earlier.db")
	server := pgtest.Empty(t)
	return map[string]earlier{
		"SQLite":     {"sqlite:" + file, migratedTo(t, version, goose.DialectSQLite3, migrations.SQLite, "sqlite", file)},
		"PostgreSQL": {server, migratedTo(t, version, goose.DialectPostgres, migrations.Postgres, "postgres", server)},
	}
}

func migratedTo(
	t *testing.T, version int64, dialect goose.Dialect, files fs.FS, dir, source string,
) *sql.DB {
	t.Helper()
	db, err := sql.Open(map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[dir], source)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	files, err = fs.Sub(files, dir)
	require.NoError(t, err)
	p, err := goose.NewProvider(dialect, db, files)
	require.NoError(t, err)
	_, err = p.UpTo(context.WithoutCancel(t.Context()), version)
	require.NoError(t, err)
	return db
}

// What an earlier version has left in progress is due as soon as its lease is over.
func TestARecordOfAnEarlierVersionIsRecovered(t *testing.T) {
	for name, e := range earlierDatabases(t, beforeRecovery) {
		t.Run(name, func(t *testing.T) {
			created, over := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC), time.Date(2026, 11, 30, 1, 2, 33, 0, time.UTC)
			scope := idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "k"}
			request := idempotency.Request("").With("order", "o-1")
			n := idempotency.Reservation{Scope: scope, Request: request, Token: idempotency.NewToken()}
			times := []any{created, over}
			insert := `INSERT INTO idempotency_records (operation, actor, idempotency_key, fingerprint, token, status, executions,
				request, created_at, lease_expires_at) VALUES ('ConfirmPayment', 'alice', 'k', $1, $2, 'IN_PROGRESS', 1, $3, $4, $5)`
			if name == "SQLite" {
				times = []any{created.UnixMicro(), over.UnixMicro()}
			}
			args := append([]any{string(idempotency.FingerprintOf(scope, request)), string(n.Token), []byte(request)}, times...)
			_, err := e.db.ExecContext(t.Context(), insert, args...)
			require.NoError(t, err)

			s := open(t, e.url)
			require.NoError(t, s.Migrate(t.Context()))
			for _, due := range []bool{true, false} {
				var found []idempotency.Record
				require.NoError(t, s.Read(t.Context(), func(tx port.Tx) (err error) {
					found, err = tx.Records().Unresolved(t.Context(), due, 10)
					return err
				}))
				want := n.Opened(created, over.Sub(created))
				assert.Equal(t, []idempotency.Record{want}, found, "due: %t", due)
			}
		})
	}
}

// The list is read through an index of its own: a table of millions of finished records is not looked through.
func TestUnresolvedRecordsAreFoundThroughTheirIndex(t *testing.T) {
	for name, e := range earlierDatabases(t, beforeRecovery) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, open(t, e.url).Migrate(t.Context()))
			e.db.SetMaxOpenConns(1)
			explain := "EXPLAIN QUERY PLAN "
			prepare := "SELECT count(*) FROM idempotency_records" // it learns of the migrations
			if name == "PostgreSQL" {
				explain, prepare = "EXPLAIN ", "SET enable_seqscan = off" // an empty table is scanned otherwise
			}
			_, err := e.db.ExecContext(t.Context(), prepare)
			require.NoError(t, err)
			rows, err := e.db.QueryContext(t.Context(), explain+
				`SELECT * FROM idempotency_records WHERE status = 'IN_PROGRESS' AND lease_expires_at <= `+
				map[string]string{"SQLite": "9", "PostgreSQL": "now()"}[name]+
				` ORDER BY created_at, operation, actor, idempotency_key LIMIT 500`)
			require.NoError(t, err)
			defer func() { assert.NoError(t, rows.Close()) }()
			columns, err := rows.Columns()
			require.NoError(t, err)
			var plan strings.Builder
			for rows.Next() {
				into := make([]any, len(columns))
				for i := range into {
					into[i] = new(any)
				}
				require.NoError(t, rows.Scan(into...))
				if text, isText := (*into[len(into)-1].(*any)).(string); isText {
					plan.WriteString(text + "\n")
				}
			}
			require.NoError(t, rows.Err())
			assert.Contains(t, plan.String(), "idempotency_records_in_progress")
		})
	}
}
