package gormstore_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gormstore/gormtest"
)

var bookedAt = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)

func entered(t *testing.T, book gateway.Book, key string) {
	t.Helper()
	_, _, err := book.Enter(t.Context(), gateway.Line{
		GatewayKey: key, OrderID: "o", Attempt: 1, Amount: 1000, Currency: "JPY", Status: gateway.Approved,
		ChargeID: "ch_" + key, BookedAt: bookedAt,
	})
	require.NoError(t, err)
}

// entering books a line in a transaction that is left open.
func entering(t *testing.T, db *sql.DB, key string) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), `INSERT INTO simulator_charges
		(gateway_key, order_id, attempt, amount, currency, method, status, charge_id, booked_at, position)
		VALUES ($1, 'o', 1, 1000, 'JPY', '', 'approved', $2, $3, CAST(CAST(pg_current_xact_id() AS text) AS bigint))`,
		key, "ch_"+key, bookedAt)
	require.NoError(t, err)
	return tx
}

func pageOf(t *testing.T, book gateway.Book, after string, limit int) (keys []string, next string) {
	t.Helper()
	lines, next, err := book.Since(t.Context(), bookedAt, after, limit)
	require.NoError(t, err)
	for _, l := range lines {
		keys = append(keys, l.GatewayKey)
	}
	return keys, next
}

func TestALineThatIsCommittedBehindAPageIsOnTheNextOne(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	book, db := d.Open(t, 4).Book(), d.SQL(t)
	first, second, undone := entering(t, db, "late 1"), entering(t, db, "late 2"), entering(t, db, "undone")
	for _, key := range []string{"a", "b", "c"} {
		entered(t, book, key)
	}
	keys, next := pageOf(t, book, "", 1)
	require.Equal(t, []string{"a"}, keys)
	require.NoError(t, undone.Rollback())
	require.NoError(t, second.Commit())
	keys, next = pageOf(t, book, next, 1)
	assert.Equal(t, []string{"late 2"}, keys)
	keys, next = pageOf(t, book, next, 1)
	assert.Equal(t, []string{"b"}, keys, "no line is listed twice")
	require.NoError(t, first.Commit())
	keys, next = pageOf(t, book, next, 2)
	assert.Equal(t, []string{"late 1", "c"}, keys)
	assert.Empty(t, next)
}

func TestLateLinesThatDoNotFitOnAPageAreOnThoseThatFollow(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	book, db := d.Open(t, 4).Book(), d.SQL(t)
	var late []*sql.Tx
	for i := range 5 {
		late = append(late, entering(t, db, fmt.Sprintf("late %d", i)))
	}
	entered(t, book, "a")
	entered(t, book, "b")
	_, next := pageOf(t, book, "", 1)
	for _, tx := range late {
		require.NoError(t, tx.Commit())
	}
	var seen []string
	for next != "" {
		var keys []string
		keys, next = pageOf(t, book, next, 2)
		seen = append(seen, keys...)
	}
	assert.Equal(t, []string{"late 0", "late 1", "late 2", "late 3", "late 4", "b"}, seen)
}

func TestLinesWrittenByHandAreListedToo(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			book := d.Open(t, 4).Book()
			entered(t, book, "booked")
			for i := range 3 {
				d.Exec(t, fmt.Sprintf(`INSERT INTO simulator_charges
					(gateway_key, order_id, attempt, amount, currency, method, status, charge_id, booked_at)
					SELECT 'hand %d', order_id, 1, 1000, 'JPY', '', 'approved', 'ch_hand_%d', booked_at
					FROM simulator_charges WHERE gateway_key = 'booked'`, i, i))
			}
			var seen []string
			for next, begun := "", false; next != "" || !begun; begun = true {
				var keys []string
				keys, next = pageOf(t, book, next, 1)
				seen = append(seen, keys...)
			}
			assert.Equal(t, []string{"hand 0", "hand 1", "hand 2", "booked"}, seen)
		})
	}
}

func TestABookFromBeforeItsOrderWasKeptIsListedByTime(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			db := d.SQL(t)
			for _, statement := range []string{
				`DROP INDEX orders_paid_at`, `DROP INDEX simulator_charges_booked_at`, `DROP INDEX simulator_charges_position`,
				`ALTER TABLE simulator_charges DROP COLUMN position`, `ALTER TABLE orders DROP COLUMN attempt_provider`,
				`DELETE FROM goose_db_version WHERE version_id >= 4`,
			} {
				_, err := db.ExecContext(t.Context(), statement)
				require.NoError(t, err, statement)
			}
			for i, key := range []string{"third", "first", "second"} {
				minute := map[string]int{"first": 1, "second": 2, "third": 3}[key]
				var at any = bookedAt.Add(time.Duration(minute) * time.Minute)
				if name == "SQLite" {
					at = at.(time.Time).UnixMicro()
				}
				_, err := db.ExecContext(t.Context(), `INSERT INTO simulator_charges
					(gateway_key, order_id, attempt, amount, currency, method, status, charge_id, booked_at)
					VALUES ($1, 'o', 1, 1000, 'JPY', '', 'approved', $2, $3)`, key, fmt.Sprintf("ch_%d", i), at)
				require.NoError(t, err)
			}
			s := d.Open(t, 2)
			require.NoError(t, s.Migrate(t.Context()))
			entered(t, s.Book(), "after")
			keys, _ := pageOf(t, s.Book(), "", 10)
			assert.Equal(t, []string{"first", "second", "third", "after"}, keys)
		})
	}
}
