package main

import (
	"database/sql"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// freePort is an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// listen serves each connection at the address until the test ends.
func listen(t *testing.T, address string, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// refusing is a PostgreSQL server that answers whoever connects with an error.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	return listen(t, "127.0.0.1:0", func(c net.Conn) {
		backend := pgproto3.NewBackend(c, c)
		if _, err := backend.ReceiveStartupMessage(); err == nil {
			backend.Send(&pgproto3.ErrorResponse{
				Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message,
			})
			_ = backend.Flush()
		}
	})
}

func postgresAt(address string) map[string]string {
	return map[string]string{
		"KAKUTEI_DATABASE_URL": "postgres://shop:s3cret@" + address + "/shop?sslmode=disable",
		"KAKUTEI_LOCK_TIMEOUT": "100ms",
	}
}

// waiting sets how long a store that is away is waited for.
func waiting(d time.Duration) func(*program) { return func(p *program) { p.patience = d } }

func TestAStoreThatStaysAwayEndsTheStartWithOneLine(t *testing.T) {
	for name, address := range map[string]string{
		"nobody listens":           freePort(t),
		"the server is starting":   refusing(t, "57P03", "the database system is starting up"),
		"no connection is left":    refusing(t, "53300", "sorry, too many clients already"),
		"the connection is broken": listen(t, "127.0.0.1:0", func(net.Conn) {}),
		"the server is silent":     listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, postgresAt(address), waiting(300*time.Millisecond))
			assert.Equal(t, 1, r.exitCode())
			assert.Empty(t, r.stdout.String())
			log, last, _ := strings.Cut(strings.TrimSuffix(r.stderr.String(), "\n"), "\n")
			assert.Contains(t, log, `"msg":"waiting for the store"`)
			assert.Regexp(t, `\Akakutei: KAKUTEI_DATABASE_URL \(PostgreSQL at `+address+`/shop\): .+\z`, last)
			assert.NotContains(t, last, "\n", "one line while it waits, one at the end")
			assert.NotContains(t, r.stderr.String(), "s3cret")
		})
	}
}

func TestAStoreThatWillNotHaveUsEndsTheStartAtOnce(t *testing.T) {
	for name, address := range map[string]string{
		"wrong password":   refusing(t, "28P01", `password authentication failed for user "shop"`),
		"not allowed":      refusing(t, "28000", "no pg_hba.conf entry"),
		"no such database": refusing(t, "3D000", `database "shop" does not exist`),
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, postgresAt(address), waiting(time.Hour))
			assert.Equal(t, 1, r.exitCode())
			assert.Regexp(t, `\Akakutei: KAKUTEI_DATABASE_URL .+\n\z`, r.stderr.String())
			assert.NotContains(t, r.stderr.String(), "s3cret")
		})
	}
}

func TestAFileThatCannotBeOpenedEndsTheStartAtOnce(t *testing.T) {
	r := begin(t, map[string]string{"KAKUTEI_DATABASE_URL": "sqlite:/nowhere/shop.db"}, waiting(time.Hour))
	assert.Equal(t, 1, r.exitCode())
	assert.Regexp(t, `\Akakutei: KAKUTEI_DATABASE_URL \(SQLite file /nowhere/shop\.db\): .+\n\z`, r.stderr.String())
}

func TestASignalEndsTheWaitForTheStore(t *testing.T) {
	r := begin(t, postgresAt(freePort(t)), waiting(time.Hour))
	r.stderr.await(t, "waiting for the store")
	r.signals <- os.Interrupt
	assert.Equal(t, 0, r.exitCode())
}

func TestAStoreThatComesBackIsServedFrom(t *testing.T) {
	real, err := url.Parse(pgtest.Empty(t))
	require.NoError(t, err)
	server := real.Host
	real.Host = freePort(t)
	r := begin(t, map[string]string{"KAKUTEI_DATABASE_URL": real.String()}, waiting(time.Minute))
	r.stderr.await(t, "waiting for the store")

	listen(t, real.Host, func(c net.Conn) { relay(c, server) })
	r.base = r.stdout.await(t, `page +(http://\S+)/\n`)[1]
	assert.Equal(t, http.StatusOK, r.get("/readyz").status)
	r.stop()
}

// As in a switchover: each host is there, and none of them is the primary yet.
func TestAStoreOfWhichNoHostCanBeWrittenIsWaitedFor(t *testing.T) {
	url := pgtest.Empty(t)
	database, err := sql.Open("pgx", url)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, database.Close()) })
	const alter = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ', current_database()) || '`
	set := func(value string) {
		_, err := database.ExecContext(t.Context(), `BEGIN READ WRITE; `+alter+value+`'; END $$; COMMIT`)
		require.NoError(t, err)
	}
	set("on")
	r := begin(t, map[string]string{"KAKUTEI_DATABASE_URL": url + "&target_session_attrs=read-write"}, waiting(time.Minute))
	r.stderr.await(t, "waiting for the store")
	set("off")
	r.base = r.stdout.await(t, `page +(http://\S+)/\n`)[1]
	assert.Equal(t, http.StatusOK, r.get("/readyz").status)
	r.stop()
}

// A host whose machine is gone refuses nobody: it is silent.
func TestASilentHostIsPassedOver(t *testing.T) {
	real, err := url.Parse(pgtest.Empty(t))
	require.NoError(t, err)
	silent := listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	real.Host = silent + "," + real.Host
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": real.String() + "&connect_timeout=1"}, waiting(time.Minute))
	require.NoError(t, placing("place-1").insist(t.Context(), func() *running { return r }))
	r.stop()
}

// relay passes on what both sides say, until one has nothing more to say.
func relay(c net.Conn, server string) {
	s, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(s, c); done <- struct{}{} }()
	go func() { _, _ = io.Copy(c, s); done <- struct{}{} }()
	<-done
}

func TestTheStoresNameHoldsNoSecret(t *testing.T) {
	for url, want := range map[string]string{
		"memory:":                              "memory, forgotten at exit",
		"sqlite:data/shop.db":                  "SQLite file data/shop.db",
		"postgres://shop:s3cret@db:5432/shop":  "PostgreSQL at db:5432/shop",
		"postgresql://db/shop?password=s3cret": "PostgreSQL at db/shop",
		"postgres:///shop?host=/run&user=x":    "PostgreSQL at /run/shop",
		"postgres://shop:s3cret@a:1,b:2/shop":  "PostgreSQL at a:1,b:2/shop",
	} {
		assert.Equal(t, want, (&storeConfig{url: url}).name())
	}
}
