package gormstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

func TestACompletionTakesOneRoundTripAndLocksNothing(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	var w watch
	p := storetest.NewProvider()
	s := storetest.OpenShop(d.Open(t, 4).Watched(&w), p)
	id := placed(t, s, 1)[0]
	w.exchanges = nil
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
	require.Len(t, w.exchanges, 3, "two for the reservation, one for the completion")
	completion := w.exchanges[2]
	assert.True(t, completion.Commits)
	assert.NotContains(t, completion.Texts(), "SELECT", "nothing is read, and so nothing locked")
	assert.Contains(t, completion.Texts(), `UPDATE "orders"`)
	assert.Contains(t, completion.Texts(), `INSERT INTO "journal_entries"`)
	assert.Contains(t, completion.Texts(), `UPDATE "idempotency_records"`)
}

// Whatever happens to the order between a payment's two commits, its completion decides by what stands.
func TestACompletionThatHasPresumedWronglyStartsAnew(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	for name, c := range map[string]struct {
		change string
		paid   bool
	}{
		"another version":    {`UPDATE orders SET version = version + 1 WHERE id = $1`, true},
		"another attempt":    {`UPDATE orders SET version = version + 1, attempt = 2 WHERE id = $1`, false},
		"no attempt running": {`UPDATE orders SET version = version + 1, status = 'CANCELLED' WHERE id = $1`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := storetest.NewProvider()
			s := storetest.OpenShop(d.Open(t, 4), p)
			id := placed(t, s, 1)[0]
			p.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
				d.Exec(t, c.change, string(id)) //nolint:contextcheck // its own
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
				assert.Equal(t, 4, version)
				assert.Equal(t, 1, entriesIn(t, d))
			} else {
				require.Error(t, err)
				assert.NotEqual(t, "PAID", status)
				assert.Equal(t, 3, version)
			}
			assert.Equal(t, 1, p.Charges())
		})
	}
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
	s := d.Open(t, 4)
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
	assert.Equal(t, 1, entriesIn(t, d))
}
