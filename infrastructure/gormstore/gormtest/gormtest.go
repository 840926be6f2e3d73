// Package gormtest gives each test databases of its own, migrated and empty: a SQLite file, a PostgreSQL database.
package gormtest

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", for statements from outside
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/pgtest"
	"kakutei/migrations"
)

// Database is one test's database.
type Database struct {
	URL    string
	driver string
	source string // for the driver
}

// All are the databases that a store can be on, by name.
var All = map[string]func(testing.TB) Database{"SQLite": SQLite, "PostgreSQL": PostgreSQL}

// SQLite is a file in the test's folder.
func SQLite(t testing.TB) Database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kakutei.db")
	d := Database{URL: "sqlite:" + path, driver: "sqlite", source: path + "?_pragma=busy_timeout(5000)"}
	require.NoError(t, migrate(t.Context(), d.URL))
	return d
}

// PostgreSQL is a database on the tests' server (pgtest).
func PostgreSQL(t testing.TB) Database {
	t.Helper()
	url := pgtest.Database(t, migrations.Postgres, migrate)
	return Database{URL: url, driver: "pgx", source: url}
}

// LockTimeout is that of a store which is opened without another one.
const LockTimeout = time.Second

// Open is a store on the database, with so many connections at most; closed when the test ends.
func (d Database) Open(t testing.TB, pool int) *gormstore.Store {
	t.Helper()
	return d.OpenWaiting(t, pool, LockTimeout)
}

// OpenWaiting is Open with another lock timeout.
func (d Database) OpenWaiting(t testing.TB, pool int, lockTimeout time.Duration) *gormstore.Store {
	t.Helper()
	c := gormstore.Config{URL: d.URL, Pool: pool, LockTimeout: lockTimeout}
	s, err := gormstore.Open(context.WithoutCancel(t.Context()), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// SQL is a way to the database from outside: no store knows of it.
func (d Database) SQL(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Exec runs one statement from outside.
func (d Database) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := d.SQL(t).ExecContext(t.Context(), statement, args...)
	require.NoError(t, err)
}

func migrate(ctx context.Context, url string) error {
	s, err := gormstore.Open(ctx, gormstore.Config{URL: url, Pool: 1, LockTimeout: LockTimeout})
	if err != nil {
		return err
	}
	if err := s.Migrate(ctx); err != nil {
		_ = s.Close()
		return err
	}
	return s.Close()
}
