package gormstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/storetest"
)

func TestAReservationOfAFamiliarOrderTakesOneRoundTripAndAnotherOneTwo(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	var w watch
	p := storetest.NewProvider()
	store := d.Open(t, 4).Watched(&w)
	s := storetest.OpenShop(store, p)
	exchanges := func(id order.ID) (commits []bool) {
		w.exchanges = nil
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k of "+string(id)))
		require.NoError(t, err)
		for _, e := range w.exchanges {
			commits = append(commits, e.Commits)
		}
		return commits
	}
	here := placed(t, s, 1)[0]
	assert.Equal(t, []bool{true, true}, exchanges(here), "what was placed here is known")
	elsewhere := placed(t, storetest.OpenShop(d.Open(t, 1), p), 2)
	assert.Equal(t, []bool{false, true, true}, exchanges(elsewhere[0]))
	require.NoError(t, store.Read(t.Context(), func(tx port.Tx) error {
		_, err := tx.Orders().Find(t.Context(), elsewhere[1], "alice")
		return err
	}))
	assert.Equal(t, []bool{true, true}, exchanges(elsewhere[1]), "and so is what was read here")
}

func TestACompletionTakesOneRoundTripAndLocksNothing(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	var w watch
	p := storetest.NewProvider()
	s := storetest.OpenShop(d.Open(t, 4).Watched(&w), p)
	id := placed(t, s, 1)[0]
	w.exchanges = nil
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
	require.Len(t, w.exchanges, 2, "one for the reservation, one for the completion")
	completion := w.exchanges[1]
	assert.True(t, completion.Commits)
	assert.NotContains(t, completion.Texts(), "SELECT", "nothing is read, and so nothing locked")
	assert.Contains(t, completion.Texts(), `UPDATE "orders"`)
	assert.Contains(t, completion.Texts(), `INSERT INTO "journal_entries"`)
	assert.Contains(t, completion.Texts(), `UPDATE "idempotency_records"`)
}

// An order is held before its record, whoever completes: so two transactions never wait for each other.
func TestACompletionThatWaitsForItsOrderHoldsNoRecord(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				d.Exec(t, `TRUNCATE idempotency_records`)
				c := companyOf(t, d.Open(t, 4), n)
				var looked sync.WaitGroup
				c.pay(t, n, func() {
					holder, err := d.SQL(t).BeginTx(t.Context(), nil)
					require.NoError(t, err)
					_, err = holder.ExecContext(t.Context(), `SELECT FROM orders WHERE id = $1 FOR UPDATE`, string(c.ids[0]))
					require.NoError(t, err)
					looked.Go(func() {
						_, err := d.SQL(t).ExecContext(t.Context(), lockRecordsWhenSomebodyWaits)
						assert.NoError(t, errors.Join(err, holder.Rollback()))
					})
				})
				looked.Wait()
				for i := range n {
					c.assertPaid(t, i)
				}
			})
		}
	})
}

// lockRecordsWhenSomebodyWaits fails if one of them is held then.
const lockRecordsWhenSomebodyWaits = `DO $$ BEGIN
	FOR i IN 1..10000 LOOP
		IF EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock')
		THEN
			PERFORM FROM idempotency_records FOR UPDATE NOWAIT;
			RETURN;
		END IF;
		PERFORM pg_stat_clear_snapshot();
		PERFORM pg_sleep(0.001);
	END LOOP;
	RAISE 'nobody waits';
END $$`

// Whatever happens to the order between a payment's two commits, its completion decides by what stands.
func TestACompletionThatHasPresumedWronglyStartsAnew(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	for name, c := range map[string]struct {
		change  string
		paid    bool
		version int
	}{
		"another version":    {`UPDATE orders SET version = version + 1 WHERE id = $1`, true, 4},
		"another attempt":    {`UPDATE orders SET version = version + 1, attempt = 2 WHERE id = $1`, false, 3},
		"no attempt running": {`UPDATE orders SET version = version + 1, status = 'CANCELLED' WHERE id = $1`, false, 3},
		// A hand need not change the version.
		"by hand, cancelled":       {`UPDATE orders SET status = 'CANCELLED' WHERE id = $1`, false, 2},
		"by hand, placed":          {`UPDATE orders SET status = 'PLACED', paying_key = NULL WHERE id = $1`, false, 2},
		"by hand, another attempt": {`UPDATE orders SET attempt = 2 WHERE id = $1`, false, 2},
		"by hand, other money":     {`UPDATE orders SET attempt_amount = 7 WHERE id = $1`, false, 2},
		"by hand, other currency":  {`UPDATE orders SET attempt_currency = 'EUR' WHERE id = $1`, false, 2},
		"by hand, another's":       {`UPDATE orders SET customer_id = 'bob' WHERE id = $1`, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := storetest.NewProvider()
			s := storetest.OpenShop(d.Open(t, 4), p)
			id := placed(t, s, 1)[0]
			p.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
				d.Exec(t, c.change, string(id)) //nolint:contextcheck // the test's
				return storetest.Approving(ctx, a, book)
			})
			_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, name))
			var status string
			var version int
			require.NoError(t, d.SQL(t).QueryRowContext(t.Context(),
				`SELECT status, version FROM orders WHERE id = $1`, string(id)).Scan(&status, &version))
			if c.paid {
				require.NoError(t, err)
				assert.Equal(t, "PAID", status)
				assert.Equal(t, 1, entriesIn(t, d))
			} else {
				require.Error(t, err)
				assert.NotEqual(t, "PAID", status)
			}
			assert.Equal(t, c.version, version)
			assert.Equal(t, 1, p.Charges())
		})
	}
}

// Whatever has happened to an order since it was seen last, its payment is decided by what stands.
func TestAReservationThatHasPresumedWronglyStartsAnew(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	for name, c := range map[string]struct {
		change  string
		refusal fault.Code // empty: it is paid
		attempt int
	}{
		"another version": {`version = 7`, "", 1},
		"cancelled":       {`version = 2, status = 'CANCELLED', cancelled_at = now(), cancel_reason = ''`, "invalid_state", 0},
		// A hand need not change the version.
		"by hand, cancelled": {`status = 'CANCELLED', cancelled_at = now(), cancel_reason = ''`, "invalid_state", 0},
		"by hand, pending": {`status = 'PAYMENT_PENDING', attempt = 1, attempt_amount = 1000, attempt_currency = 'JPY',
			attempt_begun_at = now(), paying_key = 'another'`, "payment_in_progress", 1},
		"by hand, other money":     {`amount = 7`, "amount_mismatch", 0},
		"by hand, other currency":  {`currency = 'EUR'`, "amount_mismatch", 0},
		"by hand, another's":       {`customer_id = 'bob'`, "order_not_found", 0},
		"by hand, another attempt": {`attempt = 2, attempt_amount = 9, attempt_currency = 'JPY', attempt_begun_at = now()`, "", 3},
		"by hand, written off": {`attempt = 2, attempt_amount = 9, attempt_currency = 'JPY', attempt_begun_at = now(),
			written_off = 2`, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := storetest.NewProvider()
			s := storetest.OpenShop(d.Open(t, 4), p)
			id := placed(t, s, 1)[0]
			d.Exec(t, `UPDATE orders SET `+c.change+` WHERE id = $1`, string(id))
			answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, name))
			told, unrecorded := fault.From(err)
			if unrecorded {
				assert.Equal(t, c.refusal, told.Code())
			} else {
				require.NoError(t, err)
				assert.Equal(t, c.refusal, answer.Refusal)
			}
			_, err = storetest.RecordIn(t.Context(), s.Store, storetest.ScopeOf(storetest.Payment(id, name)))
			assert.Equal(t, unrecorded, errors.Is(err, idempotency.ErrNotFound), "what is not recorded leaves nothing")
			var status string
			var attempt int
			require.NoError(t, d.SQL(t).QueryRowContext(t.Context(),
				`SELECT status, attempt FROM orders WHERE id = $1`, string(id)).Scan(&status, &attempt))
			assert.Equal(t, c.refusal == "", status == "PAID")
			assert.Equal(t, c.attempt, attempt)
			paid := 0
			if c.refusal == "" {
				paid = 1
			}
			assert.Equal(t, paid, p.Charges())
			assert.Equal(t, paid, p.ChargesUnder(fmt.Sprint(id, ":", c.attempt)), "under the attempt that is due")
		})
	}
}

// What the domain refuses of a familiar order is refused, and recorded, by the order that stands.
func TestARefusalOfAFamiliarOrderIsRecorded(t *testing.T) {
	s := storetest.OpenShop(gormtest.PostgreSQL(t).Open(t, 4), storetest.NewProvider())
	id := placed(t, s, 1)[0]
	request := storetest.Payment(id, "k")
	request.Money = money.Of(7, money.JPY)
	for _, replayed := range []bool{false, true} {
		answer, err := s.ConfirmPayment(t.Context(), request)
		require.NoError(t, err)
		assert.EqualValues(t, "amount_mismatch", answer.Refusal)
		assert.Equal(t, replayed, answer.Replayed)
	}
}

// A key that another instance has used is none that is free, whatever is presumed: it is met as ever, and is no error of the
// database's.
func TestAReservationThatPresumesMeetsTheRecordThatStands(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	p := storetest.NewProvider()
	there := storetest.OpenShop(d.Open(t, 2), p)
	var w refusals
	here := storetest.OpenShop(d.Open(t, 2).Watched(&w), p)

	same := placed(t, here, 1)[0]
	first, err := there.ConfirmPayment(t.Context(), storetest.Payment(same, "same"))
	require.NoError(t, err)
	again, err := here.ConfirmPayment(t.Context(), storetest.Payment(same, "same"))
	require.NoError(t, err)
	assert.True(t, again.Replayed)
	assert.Equal(t, string(first.Document), string(again.Document))

	other := placed(t, here, 1)[0]
	_, err = here.ConfirmPayment(t.Context(), storetest.Payment(other, "same"))
	require.ErrorIs(t, err, idempotency.ErrKeyReused)

	held, call := storetest.Holding(storetest.Approving)
	p.Next(call)
	pending := placed(t, here, 1)[0]
	paid := make(chan error, 1)
	go func() {
		_, err := there.ConfirmPayment(t.Context(), storetest.Payment(pending, "pending"))
		paid <- err
	}()
	<-held.Reached
	_, err = here.ConfirmPayment(t.Context(), storetest.Payment(pending, "pending"))
	require.ErrorIs(t, err, idempotency.ErrInProgress)
	held.Release()
	require.NoError(t, <-paid)

	assert.Equal(t, 2, p.Charges())
	assert.Empty(t, w.refused)
}

// refusals notes what the database has refused.
type refusals struct {
	refused []error
}

func (w *refusals) Exchanging(context.Context, gormstore.Exchange) func(error) {
	return func(err error) {
		if no := (*pgconn.PgError)(nil); errors.As(err, &no) {
			w.refused = append(w.refused, err)
		}
	}
}

// A reservation that goes by a way of its own waits for the key and for the order with one statement, and tells which it was.
func TestAPresumedKeyThatSomebodyHoldsIsNoOrderThatIsBusy(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	shop := storetest.OpenShop(s, storetest.NewProvider())
	id := placed(t, shop, 1)[0]
	holder, err := d.SQL(t).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = holder.ExecContext(t.Context(), `INSERT INTO idempotency_records (operation, actor, idempotency_key, fingerprint,
		token, status, executions, created_at, lease_expires_at, request)
		VALUES ('ConfirmPayment', 'alice', 'k', '', gen_random_uuid(), 'IN_PROGRESS', 1, now(), now(), '')`)
	require.NoError(t, err)
	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		_, err := tx.Orders().Lock(t.Context(), id, "alice") // so it takes no lane
		require.NoError(t, err)
		_, err = shop.Order(t.Context(), string(id), "alice")
		require.NoError(t, err)
		_, err = shop.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		require.NoError(t, holder.Rollback())
		_, err = shop.Order(t.Context(), string(id), "alice")
		require.NoError(t, err)
		_, err = shop.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.ErrorIs(t, err, order.ErrPaymentInProgress)
		return nil
	}))
}

// Who has presumed and asks for something all the same starts anew before anything is committed.
func TestAReservationThatPresumesAndAsksHasCommittedNothing(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	id := placed(t, storetest.OpenShop(s, storetest.NewProvider()), 1)[0]
	n := reservationOf("k")
	runs := 0
	require.NoError(t, s.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
		var stands int
		err := d.SQL(t).QueryRowContext(t.Context(),
			`SELECT count(*) FROM idempotency_records WHERE operation = $1`, string(n.Operation)).Scan(&stands)
		require.NoError(t, err)
		assert.Zero(t, stands)
		runs++
		tx.Orders().Announce(id, "alice", "k")
		if _, err := tx.Records().Reserve(t.Context(), n, time.Minute); err != nil {
			return err
		}
		if _, err := tx.Orders().Find(t.Context(), id, "alice"); err != nil {
			return err
		}
		o, err := tx.Orders().LockIfOpen(t.Context(), id, "alice", "k")
		if err != nil {
			return err
		}
		_, _, err = o.BeginPayment(order.PaymentRequest{Key: "k", Money: money.Of(1000, money.JPY)}, tx.Now())
		if err != nil {
			return err
		}
		return tx.Orders().Save(t.Context(), o)
	}))
	assert.Equal(t, 2, runs)
}

// One of a company whose key stands goes his own way; the others' reservations are granted meanwhile.
func TestAKeyThatStandsCostsTheCompanyNothing(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d.Exec(t, `TRUNCATE idempotency_records`)
		c := companyOf(t, d.Open(t, 4), 4)
		p := storetest.NewProvider()
		there := storetest.OpenShop(d.Open(t, 1), p)
		for _, i := range []int{0, 1} {
			_, err := there.ConfirmPayment(t.Context(), storetest.Payment(placed(t, there, 1)[0], fmt.Sprint("k", i)))
			require.NoError(t, err)
		}
		before := c.store.Connections().Acquired
		c.pay(t, 2, nothing)
		require.ErrorIs(t, c.errs[0], idempotency.ErrKeyReused)
		require.ErrorIs(t, c.errs[1], idempotency.ErrKeyReused)
		assert.LessOrEqual(t, c.store.Connections().Acquired-before, int64(4), "one for each company, and for who starts anew")
		c.assertPaid(t, 2, 3)
		assert.Equal(t, order.Placed, c.statusOf(t, 0).Status)
		assert.Equal(t, order.Placed, c.statusOf(t, 1).Status)
	})
}

// One of a company whose order has changed leaves nothing behind, and the others are paid.
func TestAnOrderThatHasChangedCostsTheCompanyItsCompanyOnly(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		c := companyOf(t, d.Open(t, 4), 4)
		d.Exec(t, `UPDATE orders SET status = 'PAYMENT_PENDING', attempt = 1, attempt_amount = 1000, attempt_currency = 'JPY',
			attempt_begun_at = now(), paying_key = 'another' WHERE id = $1`, string(c.ids[0]))
		c.pay(t, 3, nothing)
		require.ErrorIs(t, c.errs[0], order.ErrPaymentInProgress)
		_, err := storetest.RecordIn(t.Context(), c.store, storetest.ScopeOf(storetest.Payment(c.ids[0], "k0")))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
		c.assertPaid(t, 1, 2, 3)
		d.Exec(t, `TRUNCATE idempotency_records`)
	})
}

func TestOrdersAreFamiliarWhileTheyWaitForTheirPayment(t *testing.T) {
	f := gormstore.NewFamiliar()
	f.See("1", order.Placed, 10)
	assert.False(t, f.Take("1", "bob"), "nobody learns of another's")
	assert.True(t, f.Take("1", "alice"))
	assert.False(t, f.Take("1", "alice"), "it is presumed once")
	for _, s := range []order.Status{order.PaymentPending, order.Paid, order.Cancelled} {
		f.See("1", order.Placed, 10)
		f.See("1", s, 10)
		assert.False(t, f.Take("1", "alice"), s)
	}
	assert.Zero(t, f.Known())
	assert.Zero(t, f.Bytes())
}

func TestOnlyTheLatestOrdersAreFamiliar(t *testing.T) {
	id := func(i int) order.ID { return order.ID(fmt.Sprint(i)) }
	f := gormstore.NewFamiliar()
	const more = 100
	for i := range gormstore.FamiliarAtMost + more {
		f.See(id(i), order.Placed, 10)
		f.See(id(i), order.Placed, 20) // seen again
	}
	assert.LessOrEqual(t, f.Known(), gormstore.FamiliarAtMost)
	assert.False(t, f.Take(id(0), "alice"))
	assert.True(t, f.Take(id(gormstore.FamiliarAtMost+more-1), "alice"))

	f = gormstore.NewFamiliar()
	const long = 1 << 20
	for i := range 3 * gormstore.FamiliarBytes / long {
		f.See(id(i), order.Placed, long)
		assert.LessOrEqual(t, f.Bytes(), gormstore.FamiliarBytes)
		assert.Equal(t, f.Known(), f.Passed(), "nobody is looked for who was forgotten for others")
	}
	assert.Equal(t, gormstore.FamiliarBytes/long-1, f.Known())
	assert.True(t, f.Take(id(3*gormstore.FamiliarBytes/long-1), "alice"), "the latest stays")

	f.See(id(0), order.Placed, gormstore.FamiliarBytes+1)
	assert.Zero(t, f.Known(), "it is too long by itself")
	f.See(id(1), order.Placed, 10)
	assert.True(t, f.Take(id(1), "alice"))
}

// The time that is carried on is never ahead of the store's.
func TestTheLatestTimeIsCarriedOnForASecond(t *testing.T) {
	here := time.Now()
	store := here.Add(-time.Hour).Truncate(time.Microsecond)
	var c gormstore.Clock
	_, ok := c.Now()
	assert.False(t, ok, "nothing was heard yet")
	c.Hear(store, here)
	c.Hear(store.Add(-50*time.Millisecond), here) // it was longer on its way
	now, ok := c.Now()
	assert.True(t, ok)
	assert.GreaterOrEqual(t, now.Sub(store), time.Duration(0))
	assert.LessOrEqual(t, now.Sub(store), time.Since(here))

	c = gormstore.Clock{}
	c.Hear(store, here.Add(-1100*time.Millisecond))
	_, ok = c.Now()
	assert.False(t, ok, "two clocks do not go alike for ever")
	c.Hear(store.Add(-time.Minute), here) // another server's
	now, ok = c.Now()
	assert.True(t, ok)
	assert.Less(t, now.Sub(store), time.Duration(0))
}

// A completion presumes the order as its reservation has left it. One whose total is another since books neither: the
// store says that it is not as it was presumed, and the aggregate refuses what it is.
func TestACompletionBooksNoTotalThatWasNotCharged(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	p := storetest.NewProvider()
	s := storetest.OpenShop(d.Open(t, 4), p)
	id := placed(t, s, 1)[0]
	p.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
		d.Exec(t, `UPDATE orders SET amount = 5000 WHERE id = $1`, string(id)) //nolint:contextcheck // the test's
		return storetest.Approving(ctx, a, book)
	})
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
	require.ErrorIs(t, err, order.ErrTotalChanged)
	assert.Zero(t, entriesIn(t, d))

	d.Exec(t, `UPDATE orders SET amount = 1000 WHERE id = $1`, string(id))
	_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
	var total int64
	require.NoError(t, d.SQL(t).QueryRowContext(t.Context(), `SELECT total FROM journal_entries`).Scan(&total))
	assert.EqualValues(t, 1000, total)
}

// The completion may be the first to use a connection that has died since. Nothing was sent, so it is sent again.
func TestACompletionOnADeadConnectionIsSentAgain(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				d := gormtest.PostgreSQL(t)
				proxy, url := pgproxy.Between(t, d.URL)
				s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
					URL: url, Pool: 2, LockTimeout: 10 * time.Second,
				})
				require.NoError(t, err)
				defer func() { require.NoError(t, s.Close()) }()
				c := companyOf(t, s, n)
				c.pay(t, n, proxy.Reset)
				for i := range n {
					c.assertPaid(t, i)
				}
				assert.Equal(t, n, entriesIn(t, d))
			})
		}
	})
}

// A server that has ended the session said so before it read what was sent then: nobody is in doubt, nor asks the provider
// again.
func TestACompletionInASessionThatTheServerHasEndedIsSentAgain(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				d := gormtest.PostgreSQL(t)
				c := companyOf(t, d.Open(t, 2), n)
				c.pay(t, n, func() {
					d.Exec(t, `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
					WHERE datname = current_database() AND pid <> pg_backend_pid()`)
				})
				for i := range n {
					c.assertPaid(t, i)
				}
				assert.Zero(t, c.shop.Seen.Count(port.CommitUnknown))
				assert.Equal(t, n, c.shop.Provider.Calls())
				assert.Equal(t, n, entriesIn(t, d))
			})
		}
	})
}

// Nobody of a company waits for a connection that none of them gets, and then again alone.
func TestACompanyThatGetsNoConnectionToCompleteIsToldSoAtOnce(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 1), 3)
		hold, letGo := make(chan struct{}), make(chan struct{})
		var refused int64
		held := make(chan error)
		c.payWhile(t, 3, func() {
			go func() {
				held <- c.store.Read(t.Context(), func(tx port.Tx) error { // which the server does not end for being idle
					tx.Now()
					close(hold)
					<-letGo
					return nil
				})
			}()
			<-hold
			refused = c.store.Connections().Refused
		})
		for i := range c.errs {
			require.ErrorIs(t, c.errs[i], idempotency.ErrOutcomeUnknown)
		}
		assert.EqualValues(t, 6, c.store.Connections().Refused-refused, "each for its completion, and to end its lease")
		close(letGo)
		require.NoError(t, <-held)
	})
}

var errDecided = errors.New("decided")

// following runs two transactions one after the other, as a payment's are: the first begins to pay the order.
func following(
	t *testing.T, s *gormstore.Store, id order.ID, between func(), fn func(ctx context.Context, tx port.Tx) error,
) error {
	t.Helper()
	ctx := port.Successive(t.Context())
	require.NoError(t, s.Do(ctx, port.Briefly, func(tx port.Tx) error {
		o, err := tx.Orders().LockIfOpen(ctx, id, "alice", "k")
		if err != nil {
			return err
		}
		_, _, err = o.BeginPayment(order.PaymentRequest{Key: "k", Money: money.Of(1000, money.JPY)}, tx.Now())
		if err != nil {
			return err
		}
		return tx.Orders().Save(ctx, o)
	}))
	between()
	return s.Do(ctx, port.Fully, func(tx port.Tx) error { return fn(ctx, tx) })
}

func paidBy(o *order.Order, now time.Time) error {
	return o.ConfirmPayment(1, payment.Charge{ID: "ch_" + string(o.State().ID), Money: money.Of(1000, money.JPY)}, now)
}

// What is decided without an update, or refused, is decided by the order that stands, and under its lock.
func TestWhatIsPresumedIsMadeSureOfBeforeTheEnd(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	for _, ending := range []error{nil, errDecided} {
		for _, changed := range []bool{false, true} {
			t.Run(fmt.Sprintf("changed %t, ending in %v", changed, ending), func(t *testing.T) {
				id := placed(t, storetest.OpenShop(s, storetest.NewProvider()), 1)[0]
				var seen []int
				err := following(t, s, id, func() {
					if changed {
						d.Exec(t, `UPDATE orders SET version = 7 WHERE id = $1`, string(id))
					}
				}, func(ctx context.Context, tx port.Tx) error {
					o, err := tx.Orders().Lock(ctx, id, "alice")
					if err != nil {
						return err
					}
					seen = append(seen, o.State().Version)
					return ending
				})
				require.ErrorIs(t, err, ending)
				if changed {
					assert.Equal(t, []int{2, 7}, seen)
				} else {
					assert.Equal(t, []int{2}, seen)
				}
			})
		}
	}
}

func TestAPresumedOrderThatSomebodyHoldsIsBusy(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	for _, saves := range []bool{true, false} {
		id := placed(t, storetest.OpenShop(s, storetest.NewProvider()), 1)[0]
		holder, err := d.SQL(t).BeginTx(t.Context(), nil)
		require.NoError(t, err)
		err = following(t, s, id, func() {
			_, err := holder.ExecContext(t.Context(), `SELECT FROM orders WHERE id = $1 FOR UPDATE`, string(id))
			require.NoError(t, err)
		}, func(ctx context.Context, tx port.Tx) error {
			o, err := tx.Orders().Lock(ctx, id, "alice")
			if err != nil || !saves {
				return err
			}
			if err := paidBy(o, tx.Now()); err != nil {
				return err
			}
			return tx.Orders().Save(ctx, o)
		})
		require.ErrorIs(t, err, order.ErrPaymentInProgress, "it saves: %t", saves)
		require.NoError(t, holder.Rollback())
	}
}

// The time of a completion is the store's, as old as the reservation's answer and that much later.
func TestThePresumedTimeGoesOn(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := d.Open(t, 4)
	id := placed(t, storetest.OpenShop(s, storetest.NewProvider()), 1)[0]
	var paidAt time.Time
	const took = 50 * time.Millisecond
	require.NoError(t, following(t, s, id, func() { time.Sleep(took) }, func(ctx context.Context, tx port.Tx) error {
		o, err := tx.Orders().Lock(ctx, id, "alice")
		if err != nil {
			return err
		}
		paidAt = tx.Now()
		assert.Equal(t, paidAt, tx.Now(), "one instant")
		assert.GreaterOrEqual(t, paidAt.Sub(o.State().Attempt.BegunAt), took)
		if err := paidBy(o, paidAt); err != nil {
			return err
		}
		return tx.Orders().Save(ctx, o)
	}))
	var now, stored time.Time
	require.NoError(t, d.SQL(t).QueryRowContext(t.Context(),
		`SELECT clock_timestamp(), paid_at FROM orders WHERE id = $1`, string(id)).Scan(&now, &stored))
	assert.True(t, stored.Equal(paidAt), "in whole microseconds")
	assert.False(t, paidAt.After(now), "never ahead of the store's clock")
}

func TestAnOrderIsPresumedForASecond(t *testing.T) {
	s := gormtest.PostgreSQL(t).Open(t, 4)
	id := placed(t, storetest.OpenShop(s, storetest.NewProvider()), 1)[0]
	before := s.Connections().Acquired
	var acquired int64
	require.NoError(t, following(t, s, id, func() { time.Sleep(1100 * time.Millisecond) }, func(ctx context.Context, tx port.Tx) error {
		_, err := tx.Orders().Lock(ctx, id, "alice")
		acquired = s.Connections().Acquired - before
		return err
	}))
	assert.EqualValues(t, 2, acquired, "the second one has asked for it")
}

// An entry that is there already is met all the same.
func TestACompletionThatPresumesMeetsTheEntryThatStands(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	var w duplicates
	s := d.Open(t, 4).Watched(&w)
	id := placed(t, storetest.OpenShop(s, storetest.NewProvider()), 1)[0]
	day, err := journal.ParseDate("2026-12-01")
	require.NoError(t, err)
	content, err := journal.NewContent(journal.SourceDocument{
		Company: "c", Type: journal.SalesInvoice, ID: "inv-1", ServiceDate: day, Total: 1000,
	}, money.JPY, nil)
	require.NoError(t, err)
	first := journal.Book(journal.NewID(), content, "alice", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		return tx.Journal().Post(t.Context(), first, func(journal.Entry) {})
	}))
	var stands journal.Entry
	runs := 0
	require.NoError(t, following(t, s, id, nothing, func(ctx context.Context, tx port.Tx) error {
		runs++
		o, err := tx.Orders().Lock(ctx, id, "alice")
		if err != nil {
			return err
		}
		mine := journal.Book(journal.NewID(), content, "alice", tx.Now())
		if err := tx.Journal().Post(ctx, mine, func(e journal.Entry) { stands = e }); err != nil {
			return err
		}
		if err := paidBy(o, tx.Now()); err != nil {
			return err
		}
		return tx.Orders().Save(ctx, o)
	}))
	assert.Equal(t, first, stands)
	assert.Equal(t, 2, runs)
	require.NoError(t, w.failed, "an entry that stands is no error of the database's")
	assert.Equal(t, 1, entriesIn(t, d))
}

// duplicates notes that the database has refused a value that another row has.
type duplicates struct{ failed error }

func (w *duplicates) Exchanging(context.Context, gormstore.Exchange) func(error) {
	return func(err error) {
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "23505" {
			w.failed = err
		}
	}
}
