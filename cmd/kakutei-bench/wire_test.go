package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

// recorded is a recorder before a database of the test's own.
func recorded(t *testing.T) (wire *recorder, direct, through string) {
	t.Helper()
	d := gormtest.PostgreSQL(t)
	wire, through, err := newRecorder(d.URL)
	require.NoError(t, err)
	t.Cleanup(wire.close)
	return wire, d.URL, through
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func TestTheRecorderWritesDownWhatIsSentAndWhatTravelsTogether(t *testing.T) {
	wire, _, through := recorded(t)
	conn := connect(t, through)
	_, err := conn.Exec(t.Context(), "SELECT * FROM no_such_table WHERE a = $1", 1)
	require.Error(t, err, "what fails to be prepared has no types, and takes nobody else's")
	send := func() error {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		batch.Queue("SELECT CAST($1 AS uuid), CAST($2 AS timestamptz), CAST($3 AS bytea), CAST($4 AS integer), CAST($5 AS text)",
			"01930000-0000-7000-8000-000000000001", "2026-11-30 01:02:03.5Z", []byte{1, 255}, 42, nil)
		if err := conn.SendBatch(t.Context(), batch).Close(); err != nil {
			return err
		}
		_, err := conn.Exec(t.Context(), "COMMIT")
		return err
	}
	require.NoError(t, send()) // each statement is prepared now
	exchanges, err := wire.during(send, true)
	require.NoError(t, err)
	require.Len(t, exchanges, 2)
	require.Len(t, exchanges[0], 2)
	assert.Equal(t, "BEGIN", exchanges[0][0].sql)
	assert.Equal(t, exchange{{sql: "COMMIT"}}, exchanges[1])
	var texts []string
	for _, a := range exchanges[0][1].args {
		texts = append(texts, a.text)
	}
	assert.Equal(t, []string{
		"01930000-0000-7000-8000-000000000001", "2026-11-30 01:02:03.5Z", `\x01ff`, "42", "",
	}, texts)
	assert.True(t, exchanges[0][1].args[4].null)
}

func TestARecordingInWhichSomethingIsPreparedIsNone(t *testing.T) {
	wire, _, through := recorded(t)
	conn := connect(t, through)
	_, err := wire.during(func() error {
		_, err := conn.Exec(t.Context(), "SELECT $1 + 1", 1)
		return err
	}, true)
	require.ErrorContains(t, err, "warm up longer")
}

// What the service sends, whatever that is at the time, becomes a script that pays an order which is there already: the
// bench measures those statements and no others.
func TestTheServicesOwnStatementsPayAnOrderAndReplayIt(t *testing.T) {
	wire, direct, through := recorded(t)
	work, err := gormstore.Open(t.Context(), gormstore.Config{URL: through, Pool: 1, LockTimeout: gormtest.LockTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, work.Close()) })
	shop := storetest.OpenShop(work, storetest.NewProvider())
	shop.Gateway = gateway.NewSimulator(gateway.NewMemoryBook(), time.Now) // as in the service
	var first, again []recording
	for range settledAfter + 2 {
		id, err := shop.Place(t.Context())
		require.NoError(t, err)
		of := recording{order: string(id), key: string(order.NewID())}
		for _, all := range []*[]recording{&first, &again} {
			of.exchanges, err = wire.during(func() error {
				_, err := shop.ConfirmPayment(t.Context(), storetest.Payment(id, of.key))
				return err
			}, len(*all) >= settledAfter)
			require.NoError(t, err)
			*all = append(*all, of)
		}
	}
	d := &database{conn: connect(t, direct), url: direct}
	confirms, err := d.script(t.Context(), first[settledAfter:])
	require.NoError(t, err)
	replays, err := d.script(t.Context(), again[settledAfter:])
	require.NoError(t, err)
	assert.LessOrEqual(t, confirms.roundTrips(), 4)
	assert.Equal(t, 1, replays.roundTrips())
	assert.Equal(t, 2, confirms.commits())

	like, err := shop.Place(t.Context())
	require.NoError(t, err)
	require.NoError(t, d.orders(t.Context(), string(like), 7, 8))
	for n := 7; n <= 8; n++ {
		require.NoError(t, settled(t.Context(), d, func() (int, error) { return 1, play(t, d.conn, confirms, n) }))
		require.NoError(t, settled(t.Context(), d, func() (int, error) { return 0, play(t, d.conn, replays, n) }))
		paid, err := shop.Order(t.Context(), idOf(int64(n)), "alice")
		require.NoError(t, err)
		assert.Equal(t, order.Paid, paid.Status)
		var status string
		require.NoError(t, d.conn.QueryRow(t.Context(), "SELECT status FROM idempotency_records WHERE idempotency_key = "+
			keyOf("$1"), hashed(n, 99)).Scan(&status))
		assert.Equal(t, string(idempotency.Succeeded), status)
	}
}

var variable = regexp.MustCompile(`:(n|key|[ch]\d+)\b`)

// hashed stands for pgbench's hash of a number.
func hashed(n, salt int) int64 { return int64(n)<<40 + int64(salt) }

// play does what pgbench does with a script, with the values in the text.
func play(t *testing.T, conn *pgx.Conn, s script, n int) error {
	t.Helper()
	for _, texts := range s.texts {
		for _, text := range texts {
			text = variable.ReplaceAllStringFunc(text, func(name string) string {
				switch salt, _ := strconv.Atoi(name[2:]); {
				case name == ":n":
					return strconv.Itoa(n)
				case name == ":key":
					return fmt.Sprint(hashed(n, 99))
				case name[1] == 'h':
					return fmt.Sprint(hashed(n, salt))
				}
				return "'" + strings.ReplaceAll(s.variables[name[1:]], "'", "''") + "'"
			})
			if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
	}
	return nil
}
