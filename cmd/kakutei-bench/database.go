package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver by its name
)

// database is one in the bench's server, with a connection to it that no service uses.
type database struct {
	conn *pgx.Conn
	name string
	url  string
}

// tidy does what autovacuum does in production, between the cells.
func (d *database) tidy(ctx context.Context) error {
	_, err := d.conn.Exec(ctx, "VACUUM (ANALYZE)")
	return err
}

func (d *database) number(ctx context.Context, sql string, arguments ...any) (n int64, err error) {
	err = d.conn.QueryRow(ctx, sql, arguments...).Scan(&n)
	return n, err
}

// written is how many bytes of write-ahead log the server has written so far.
func (d *database) written(ctx context.Context) (int64, error) {
	return d.number(ctx, "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bigint)")
}

// paid counts the orders that are paid and the entries that say so.
func (d *database) paid(ctx context.Context) (orders, entries int64, err error) {
	orders, err = d.number(ctx, "SELECT count(*) FROM orders WHERE status = 'PAID'")
	if err != nil {
		return 0, 0, err
	}
	entries, err = d.number(ctx, "SELECT count(*) FROM journal_entries")
	return orders, entries, err
}

// copies inserts rows like one that is there, for n from first to last. Columns that must not be the same are computed;
// all others are the row's, so that whatever the schema demands is kept.
func (d *database) copies(
	ctx context.Context, table, like string, computed map[string]string, first, last int64, arguments ...any,
) error {
	columns, err := d.columns(ctx, table)
	if err != nil {
		return err
	}
	numbers := fmt.Sprintf("generate_series(%d, %d)", first, last)
	_, err = d.conn.Exec(ctx, copying(table, columns, like, computed, numbers), arguments...)
	return err
}

// copying is the statement for copies. numbers are a query for n.
func copying(table string, columns []string, like string, computed map[string]string, numbers string) string {
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = "t." + column
		if expression, is := computed[column]; is {
			values[i] = expression
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s AS t, %s AS n WHERE %s", table,
		strings.Join(columns, ", "), strings.Join(values, ", "), table, numbers, like)
}

func (d *database) columns(ctx context.Context, table string) ([]string, error) {
	rows, err := d.conn.Query(ctx, `SELECT attname FROM pg_attribute
		WHERE attrelid = CAST($1 AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// orders inserts placed orders like the one with this id: those that orderOf names, from first to last.
func (d *database) orders(ctx context.Context, like string, first, last int64) error {
	return d.copies(ctx, "orders", "t.id = $1", map[string]string{"id": orderOf("n")}, first, last, like)
}

// idOf is the n-th of these orders' ids.
func idOf(n int64) string { return fmt.Sprintf("ffee0000-0000-0000-%04x-%012x", n>>48, n&(1<<48-1)) }

// file is a SQLite database, seen beside the service that writes it.
type file struct{ path string }

// orders inserts placed orders like the one with this id: those that idOf names, from first to last.
func (f file) orders(ctx context.Context, like string, first, last int64) (err error) {
	db, err := sql.Open("sqlite", "file:"+f.path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var names string
	err = db.QueryRowContext(ctx, "SELECT group_concat(name) FROM pragma_table_info('orders')").Scan(&names)
	if err != nil {
		return err
	}
	id := map[string]string{"id": "printf('ffee0000-0000-0000-%04x-%012x', n >> 48, n & (1 << 48) - 1)"}
	numbers := fmt.Sprintf("(WITH RECURSIVE c(n) AS (VALUES (%d) UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c)",
		first, last)
	_, err = db.ExecContext(ctx, copying("orders", strings.Split(names, ","), "t.id = ?", id, numbers), like)
	return err
}

// paid counts the orders that are paid and the entries that say so.
func (f file) paid(ctx context.Context) (orders, entries int64, err error) {
	db, err := sql.Open("sqlite", "file:"+f.path+"?mode=ro")
	if err != nil {
		return 0, 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM orders WHERE status = 'PAID'),
		(SELECT count(*) FROM journal_entries)`).Scan(&orders, &entries)
	return orders, entries, errors.Join(err, db.Close())
}
