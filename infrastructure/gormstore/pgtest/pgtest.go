// Package pgtest gives each test a PostgreSQL database of its own, on the server that KAKUTEI_TEST_DATABASE_URL names. It is
// for tests only and knows no schema: the caller brings the migrations.
package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ServerVariable names the server's maintenance database as a URL. Its user must be allowed to create databases.
const ServerVariable = "KAKUTEI_TEST_DATABASE_URL"

// patience bounds each step: dozens of tests may queue for two cores.
const patience = 2 * time.Minute

// Migrate brings the schema into the empty database at dsn. It leaves no connection open, else no copy can be made.
type Migrate func(ctx context.Context, dsn string) error

// Database returns the URL of a migrated database that only t uses, and that is dropped when t ends, whoever is still
// connected. Migrating happens once per server and content of the migrations: what a test gets is a copy of the result.
// A missing server fails the test.
func Database(t testing.TB, migrations fs.FS, migrate Migrate) string {
	t.Helper()
	s := serverOf(t)
	template, err := templateName(migrations)
	if err != nil {
		t.Fatalf("pgtest: reading the migrations: %v", err)
	}
	if err := s.ensureOnce(t.Context(), template, migrate); err != nil {
		t.Fatalf("pgtest: making the template %s: %v", template, err)
	}
	return s.fresh(t, template)
}

// Empty is Database without a schema.
func Empty(t testing.TB) string {
	t.Helper()
	return serverOf(t).fresh(t, "template0")
}

// server is the maintenance database's URL.
type server struct{ url *url.URL }

func serverOf(t testing.TB) server {
	t.Helper()
	s, err := parseServer(os.Getenv(ServerVariable))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parseServer(text string) (server, error) {
	const advice = "run `make test`, which starts a PostgreSQL server, or set " + ServerVariable +
		" to postgres://USER:PASSWORD@HOST:PORT/postgres"
	if text == "" {
		return server{}, errors.New("pgtest: this test needs PostgreSQL: " + advice)
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return server{}, errors.New("pgtest: " + ServerVariable + " is no postgres:// URL: " + advice) // it may hold a password
	}
	return server{u}, nil
}

// dsn is the URL of another database of the server.
func (s server) dsn(database string) string {
	u := *s.url
	u.Path = "/" + database
	return u.String()
}

// exec runs statements, none of which may be in a transaction, on a connection of its own.
func (s server) exec(ctx context.Context, statements ...string) error {
	return s.connected(ctx, func(conn *pgx.Conn) error { return execAll(ctx, conn, statements...) })
}

func (s server) connected(ctx context.Context, use func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", s.url.Redacted(), err)
	}
	return errors.Join(use(conn), conn.Close(context.WithoutCancel(ctx)))
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// fresh makes a copy of template for t.
func (s server) fresh(t testing.TB, template string) string {
	t.Helper()
	name := databaseName(t.Name())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Copying files is the fastest way by far where the server's directory is in memory.
	if err := s.exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)+" STRATEGY file_copy"); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := s.exec(ctx, "DROP DATABASE "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s.dsn(name)
}

// ensured remembers each template that this process has asked for.
var ensured sync.Map // of template's URL to func() error

func (s server) ensureOnce(ctx context.Context, template string, migrate Migrate) error {
	ctx = context.WithoutCancel(ctx) // the other tests of the process get the same answer
	once, _ := ensured.LoadOrStore(s.dsn(template), sync.OnceValue(func() error { return s.ensure(ctx, template, migrate) }))
	return once.(func() error)()
}

// ensure makes the template unless it stands. Several processes may come at once (go test runs packages in parallel): an
// advisory lock lets one work while the others wait. Only a finished template bears the name, so one whose maker died is
// never used; the next maker replaces it.
func (s server) ensure(ctx context.Context, template string, migrate Migrate) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.connected(ctx, func(conn *pgx.Conn) error {
		// Held until the connection closes; per server, since an advisory lock belongs to the database it was taken in.
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", template); err != nil {
			return err
		}
		var stands bool
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", template).Scan(&stands)
		if err != nil || stands {
			return err
		}
		unfinished := template + "_unfinished"
		err = execAll(ctx, conn,
			"DROP DATABASE IF EXISTS "+quote(unfinished)+" WITH (FORCE)",
			"CREATE DATABASE "+quote(unfinished)+" TEMPLATE template0 STRATEGY file_copy")
		if err != nil {
			return err
		}
		if err := migrate(ctx, s.dsn(unfinished)); err != nil {
			return fmt.Errorf("migrating: %w", err)
		}
		// A database that somebody is connected to can be neither renamed nor copied, so it is closed for good.
		return execAll(ctx, conn,
			"ALTER DATABASE "+quote(unfinished)+" ALLOW_CONNECTIONS false",
			"ALTER DATABASE "+quote(unfinished)+" RENAME TO "+quote(template))
	})
}

// templateName bears a hash over the names and contents of all files.
func templateName(migrations fs.FS) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrations, path)
		fmt.Fprintf(hash, "%q %d\n%s", path, len(content), content)
		return err
	})
	return "kakutei_template_" + hex.EncodeToString(hash.Sum(nil)[:8]), err
}

// databaseName is new at each call and shows the test in the server's log. PostgreSQL cuts names off after 63 bytes.
func databaseName(test string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, test)
	return "kakutei_" + strings.ToLower(rand.Text()[:12]) + "_" + slug[:min(len(slug), 40)]
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
