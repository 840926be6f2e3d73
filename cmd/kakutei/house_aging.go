package main

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// What makes everything that is on record of an actor older: an order's running attempt, and records with their leases
// and retentions. Receipts keep their times: nobody is paid at another time for it.
const (
	agePostgres = `WITH o AS (UPDATE orders SET attempt_begun_at = attempt_begun_at - $1::bigint * interval '1 microsecond'
	WHERE customer_id = $2)
UPDATE idempotency_records SET created_at = created_at - $1::bigint * interval '1 microsecond',
	lease_expires_at = lease_expires_at - $1::bigint * interval '1 microsecond',
	completed_at = completed_at - $1::bigint * interval '1 microsecond',
	expires_at = expires_at - $1::bigint * interval '1 microsecond',
	recover_from = recover_from - $1::bigint * interval '1 microsecond'
WHERE actor = $2`

	ageOrdersSQLite  = `UPDATE orders SET attempt_begun_at = attempt_begun_at - $1 WHERE customer_id = $2`
	ageRecordsSQLite = `UPDATE idempotency_records SET created_at = created_at - $1, lease_expires_at = lease_expires_at - $1,
	completed_at = completed_at - $1, expires_at = expires_at - $1, recover_from = recover_from - $1 WHERE actor = $2`
)

// agingRows ages the rows of a database, on a way to it that the service does not know. That database's clock is its
// own: what stands in it can only be made older.
func agingRows(url string) (aging, error) {
	driver, source, statements := "pgx", url, []string{agePostgres}
	if file, isSQLite := strings.CutPrefix(url, "sqlite:"); isSQLite {
		driver, source = "sqlite", file+"?_pragma=busy_timeout(5000)"
		statements = []string{ageOrdersSQLite, ageRecordsSQLite}
	}
	return func(ctx context.Context, actor string, d time.Duration) (err error) {
		rows, err := sql.Open(driver, source)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for _, statement := range statements {
			if _, err := rows.ExecContext(ctx, statement, d.Microseconds(), actor); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
