package gormstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

// storm sends n payments of each order at once and returns the errors that no client should get.
func storm(t *testing.T, s storetest.Shop, n int, ids ...order.ID) (unexpected []error) {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, id := range ids {
		for range n {
			running.Go(func() {
				_, err := s.Beside().ConfirmPayment(t.Context(), storetest.Payment(id, "key-of-"+string(id)))
				if err != nil && !isDuplicate(err) {
					mu.Lock()
					defer mu.Unlock()
					unexpected = append(unexpected, err)
				}
			})
		}
	}
	running.Wait()
	return unexpected
}

func isDuplicate(err error) bool {
	told, _ := fault.From(err)
	return told != nil && (told.Is(idempotency.ErrInProgress) || told.Is(order.ErrPaymentInProgress))
}

func placed(t *testing.T, s storetest.Shop, n int) (ids []order.ID) {
	t.Helper()
	for range n {
		id, err := s.Place(t.Context())
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

func TestTimeoutsHoldInEveryTransaction(t *testing.T) {
	s := gormtest.PostgreSQL(t).Open(t, 2)
	assert.Equal(t, []string{"100ms", "2s", "2s"}, gormstore.Timeouts(t, s, port.Briefly))
	assert.Equal(t, []string{"1s", "2s", "2s"}, gormstore.Timeouts(t, s, port.Fully))
}

// Duplicates are no errors to the server: no unique violation, no aborted transaction (C71). Nobody gives up waiting for a
// busy machine here.
func TestDuplicatesLeaveNoErrorInTheServersLog(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	store := d.OpenWaiting(t, 16, time.Minute)
	store.WaitFully()
	s := storetest.OpenShop(store, storetest.NewProvider())
	ids := placed(t, s, 5)
	require.Empty(t, storm(t, s, 10, ids...))
	require.Empty(t, storm(t, s, 2, ids...))

	path := os.Getenv("KAKUTEI_TEST_POSTGRES_LOG")
	require.NotEmpty(t, path, "KAKUTEI_TEST_POSTGRES_LOG must name the server's log; `make test` does it")
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	database := d.URL[strings.LastIndex(d.URL, "/")+1:]
	database, _, _ = strings.Cut(database, "?")
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, database) {
			assert.NotContains(t, line, "ERROR", "of this test's database")
		}
	}
}

// A default isolation that is stricter than the store's own changes nothing (C74).
func TestAStormUnderAnotherDefaultIsolation(t *testing.T) {
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run(level, func(t *testing.T) {
			d := gormtest.PostgreSQL(t)
			d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''`+level+`''',
				current_database()); END $$`)
			p := storetest.NewProvider()
			s := storetest.OpenShop(d.Open(t, 16), p)
			ids := placed(t, s, 3)
			require.Empty(t, storm(t, s, 20, ids...))
			require.Equal(t, 3, p.Charges())
		})
	}
}

// Whatever the pool, nobody waits for himself (C78).
func TestASmallPoolIsSlowButAlive(t *testing.T) {
	for _, pool := range []int{1, 2, 4} {
		d := gormtest.PostgreSQL(t)
		s := storetest.OpenShop(d.Open(t, pool), storetest.NewProvider())
		ids := placed(t, s, 2*pool)
		require.Empty(t, storm(t, s, 1, ids...), "pool of %d", pool)
	}
}

func TestADeadConnectionIsReplaced(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	require.NoError(t, s.Ready(t.Context()))
	d.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(t, s.Ready(t.Context()))
}

// A serialization failure at COMMIT repeats the transaction, never the call to the outside (C67).
func TestASerializationFailureRepeatsTheTransactionAlone(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	d.Exec(t, `CREATE SEQUENCE failures`)
	d.Exec(t, `CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('failures') <= 2 THEN RAISE EXCEPTION 'a test' USING ERRCODE = '40001'; END IF;
		RETURN NULL;
	END $$`)
	d.Exec(t, `CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		WHEN (NEW.status = 'PAID') EXECUTE FUNCTION fail_twice()`)
	p := storetest.NewProvider()
	s := storetest.OpenShop(d.Open(t, 4), p)
	id := placed(t, s, 1)[0]
	answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
	assert.Empty(t, answer.Refusal)
	assert.Equal(t, 1, p.Charges())
	assert.Equal(t, 1, p.CallsUnder(string(id)+":1"))
}

// The last statement of the use case fails once: nothing of it stays, and the order can be paid (C70).
func TestAFailedCompletionLeavesNothing(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	d.Exec(t, `CREATE SEQUENCE failures`)
	d.Exec(t, `CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('failures') = 1 THEN RAISE EXCEPTION 'a test' USING ERRCODE = 'P0001'; END IF;
		RETURN NEW;
	END $$`)
	p := storetest.NewProvider()
	s := storetest.OpenShop(d.Open(t, 4), p)
	id := placed(t, s, 1)[0]
	d.Exec(t, `CREATE TRIGGER once BEFORE UPDATE ON idempotency_records FOR EACH ROW
		WHEN (NEW.status = 'SUCCEEDED') EXECUTE FUNCTION fail_once()`)
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
	_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
	require.ErrorIs(t, err, order.ErrPaymentInProgress)
	answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
	assert.Empty(t, answer.Refusal)
	assert.Equal(t, 1, p.Charges())
}

// Without its table nothing is executed (C21).
func TestWithoutTheTableOfTheRecordsNothingIsExecuted(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	p := storetest.NewProvider()
	s := storetest.OpenShop(d.Open(t, 4), p)
	id := placed(t, s, 1)[0]
	d.Exec(t, `ALTER TABLE idempotency_records RENAME TO hidden`)
	for range 2 {
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.ErrorIs(t, err, port.ErrUnavailable)
	}
	require.Zero(t, p.Charges())
	d.Exec(t, `ALTER TABLE hidden RENAME TO idempotency_records`)
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
}

func TestAReadOnlyPrimaryIsUnavailable(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
		current_database()); END $$`)
	s := d.Open(t, 2)
	require.ErrorIs(t, s.Ready(t.Context()), port.ErrUnavailable)
	_, err := storetest.OpenShop(s, storetest.NewProvider()).Place(t.Context())
	require.ErrorIs(t, err, port.ErrUnavailable)
}

// A connection of the time when nothing could be written is not kept: else the pool would be read-only for as long as it
// is used.
func TestAConnectionThatCanOnlyReadIsReplaced(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
		current_database()); END $$`)
	s := d.Open(t, 1)
	shop := storetest.OpenShop(s, storetest.NewProvider())
	_, err := shop.Place(t.Context())
	require.ErrorIs(t, err, port.ErrUnavailable)
	d.Exec(t, `BEGIN READ WRITE;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$;
		COMMIT`)
	_, err = shop.Place(t.Context())
	require.NoError(t, err)
}

// A client that is gone, a refusal, a panic: no session stays in a transaction (C62).
func TestNoSessionStaysInATransaction(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 5)
	n := idempotency.Reservation{
		Scope:   idempotency.Scope{Operation: "o", Actor: "a", Key: "k"},
		Request: "", Token: idempotency.NewToken(),
	}
	reserve := func(ctx context.Context, then func() error) error {
		return s.Do(ctx, port.Briefly, func(tx port.Tx) error {
			if _, err := tx.Records().Reserve(ctx, n, time.Minute); err != nil {
				return err
			}
			return then()
		})
	}
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		require.Error(t, reserve(ctx, func() error { cancel(); return nil }))
		require.ErrorIs(t, reserve(t.Context(), func() error { return order.ErrNotFound }), order.ErrNotFound)
		require.Panics(t, func() { _ = reserve(t.Context(), func() error { panic("a bug") }) })
	}
	var idle int
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, d.SQL(t).QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state LIKE 'idle in transaction%'`).Scan(&idle))
		assert.Zero(c, idle)
	}, 5*time.Second, 10*time.Millisecond)
	require.NoError(t, reserve(t.Context(), func() error { return nil }))
}

func TestTimesAreTheSameInEveryZoneOfTheDatabase(t *testing.T) {
	for _, zone := range []string{"Asia/Tokyo", "America/Los_Angeles"} {
		d := gormtest.PostgreSQL(t)
		d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''`+zone+`''',
			current_database()); END $$`)
		s := storetest.OpenShop(d.Open(t, 2), storetest.NewProvider())
		id := placed(t, s, 1)[0]
		view, err := s.Order(t.Context(), string(id), "alice")
		require.NoError(t, err)
		assert.Equal(t, time.UTC, view.PlacedAt.Location())
		assert.WithinDuration(t, time.Now(), view.PlacedAt, time.Minute)
	}
}

// An operator's hand may end a paid order (C49): the key's answer stays what it was, the order is what he made it, and
// nobody pays it again.
func TestAnOrderThatWasCancelledByHandKeepsItsAnswer(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			p := storetest.NewProvider()
			s := storetest.OpenShop(d.Open(t, 2), p)
			id := placed(t, s, 1)[0]
			first, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
			require.NoError(t, err)
			d.Exec(t, `UPDATE orders SET status = 'CANCELLED' WHERE id = '`+string(id)+`'`)
			again, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
			require.NoError(t, err)
			assert.True(t, again.Replayed)
			assert.Equal(t, first.Document, again.Document)
			view, err := s.Order(t.Context(), string(id), "alice")
			require.NoError(t, err)
			assert.Equal(t, order.Cancelled, view.Status)
			other, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
			require.NoError(t, err)
			assert.Equal(t, order.ErrInvalidState.Code(), other.Refusal)
			assert.Equal(t, 1, p.Charges())
		})
	}
}

// Nothing that the database holds is a bug of the service: what it cannot read, it does not serve.
func TestARowThatCannotBeReadIsUnavailable(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			s := storetest.OpenShop(d.Open(t, 2), storetest.NewProvider())
			id := placed(t, s, 1)[0]
			asBefore(t, name, d)
			d.Exec(t, `UPDATE orders SET currency = 'XXX'`)
			_, err := s.Order(t.Context(), string(id), "alice")
			require.ErrorIs(t, err, port.ErrUnavailable)
			_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
			require.ErrorIs(t, err, port.ErrUnavailable)
		})
	}
}

// The database itself refuses what must not be, whoever writes it.
func TestConstraintsStateTheInvariants(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			s := storetest.OpenShop(d.Open(t, 2), storetest.NewProvider())
			ids := placed(t, s, 2)
			for i, id := range ids {
				_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, string(rune('a'+i))))
				require.NoError(t, err)
			}
			unpaid := placed(t, s, 1)[0]
			for what, statement := range map[string]string{
				"PAID without a payment":             `UPDATE orders SET status = 'PAID' WHERE id = '` + string(unpaid) + `'`,
				"a payment without PAID":             `UPDATE orders SET status = 'PLACED'`,
				"one payment for two orders":         `UPDATE orders SET payment_id = (SELECT max(CAST(payment_id AS text)) FROM orders) WHERE status = 'PAID'`,
				"one charge for two orders":          `UPDATE orders SET charge_id = 'ch_1' WHERE status = 'PAID'`,
				"an unknown status":                  `UPDATE orders SET status = 'REFUNDED'`,
				"no money":                           `UPDATE orders SET amount = 0`,
				"more money than can be published":   `UPDATE orders SET amount = 9007199254740992`,
				"pending for nobody":                 `UPDATE orders SET status = 'PAYMENT_PENDING', paying_key = NULL, payment_id = NULL, charge_id = NULL, paid_at = NULL`,
				"a success without its document":     `UPDATE idempotency_records SET document = NULL`,
				"an outcome in progress":             `UPDATE idempotency_records SET status = 'IN_PROGRESS'`,
				"a refusal without its code":         `UPDATE idempotency_records SET status = 'FAILED', created_id = NULL`,
				"a record of an unknown status":      `UPDATE idempotency_records SET status = 'RUNNING'`,
				"an order before its first version":  `UPDATE orders SET version = 0`,
				"an attempt that asked for nothing":  `UPDATE orders SET attempt_amount = NULL WHERE attempt > 0`,
				"a time of cancelling, uncancelled":  `UPDATE orders SET cancelled_at = placed_at`,
				"a reason, uncancelled":              `UPDATE orders SET cancel_reason = 'none'`,
				"lines that are no list":             `UPDATE orders SET lines = '{}'`,
				"a record that was never executed":   `UPDATE idempotency_records SET executions = 0`,
				"two records of one scope":           `UPDATE idempotency_records SET operation = 'o', actor = 'a', idempotency_key = 'k'`,
				"a key that is longer than keys are": `UPDATE idempotency_records SET idempotency_key = '` + strings.Repeat("k", 256) + `'`,
			} {
				_, err := d.SQL(t).ExecContext(t.Context(), statement)
				require.Error(t, err, what)
				assert.Regexp(t, `(?i)constraint|cast|uuid`, err.Error(), what)
			}
		})
	}
}

// A connection that dies under a reading transaction costs another one, not an unknown commit: there is none.
func TestAReadIsNeverInDoubt(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	for range 20 {
		err := s.Read(t.Context(), func(tx port.Tx) error {
			_, err := tx.Records().Find(t.Context(), idempotency.Scope{Operation: "o", Actor: "a", Key: "k"})
			d.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			if errors.Is(err, idempotency.ErrNotFound) {
				return nil
			}
			return err
		})
		require.NoError(t, err)
	}
}

// A time limit may be as long as a duration can be: the server's settings have 32 bits.
func TestAnyLockTimeoutIsServed(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	for _, timeout := range []time.Duration{300 * time.Hour, 2_540_400 * time.Hour} {
		c := gormstore.Config{URL: d.URL, Pool: 2, LockTimeout: timeout}
		s, err := gormstore.Open(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, s.Ready(t.Context()), timeout)
		require.NoError(t, s.Close())
	}
}

// Only a plain "no" of the server's says that a statement was not done. PgBouncer tells of a server that it has lost under a
// code of the connection's, and not every pooler says FATAL.
func TestOnlyAPlainNoOfTheServersSaysThatNothingWasDone(t *testing.T) {
	for said, isBroken := range map[*pgconn.PgError]bool{
		{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "40001"}:    false,
		{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "23514"}:   false,
		{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"}:    true,
		{Severity: "PANIC", SeverityUnlocalized: "PANIC", Code: "XX000"}:    true,
		{Severity: "FATAL", Code: "08P01", Message: "server conn crashed?"}: true,
		{Severity: "ERROR", Code: "08P01", Message: "server conn crashed?"}: true,
	} {
		assert.Equal(t, isBroken, gormstore.IsBroken(fmt.Errorf("sending: %w", said)), "%v", said)
	}
	assert.True(t, gormstore.IsBroken(io.ErrUnexpectedEOF))
	assert.False(t, gormstore.IsBroken(nil))
}
