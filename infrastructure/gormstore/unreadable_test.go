package gormstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore/gormtest"
)

// A row that a hand has spoilt keeps no other from being listed, and is named.
func TestAListGoesOnBehindARowThatCannotBeRead(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			db := database(t)
			work := db.Open(t, 4)
			var orders []order.State
			var entries []journal.Entry
			now := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
			require.NoError(t, work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				orders, entries = nil, nil
				for i := range 3 {
					o := paidThen(t, now.Add(time.Duration(i)*time.Second))
					orders = append(orders, o.State())
					e := entryOf(t, o.State())
					entries = append(entries, e)
					if err := errors.Join(tx.Orders().Add(t.Context(), o), tx.Journal().Post(t.Context(), e, func(journal.Entry) {})); err != nil {
						return err
					}
				}
				return nil
			}))
			spoilt := orders[1]
			asBefore(t, name, db)
			db.Exec(t, `UPDATE orders SET currency = 'ZZZ' WHERE id = '`+string(spoilt.ID)+`'`)
			db.Exec(t, `UPDATE journal_entries SET currency = 'ZZZ' WHERE id = '`+string(entries[1].ID)+`'`)

			require.NoError(t, work.Read(t.Context(), func(tx port.Tx) error {
				found, err := tx.Orders().FindAll(t.Context(), []order.ID{orders[0].ID, spoilt.ID, orders[2].ID})
				assert.Len(t, found, 2)
				assertUnreadable(t, err, spoilt)
				page, err := tx.Orders().PaidAfter(t.Context(), order.Mark{PaidAt: now}, 2)
				assertUnreadable(t, err, spoilt)
				require.Len(t, page, 1)
				assert.Equal(t, orders[0].ID, page[0].State().ID)
				page, err = tx.Orders().PaidAfter(t.Context(), spoilt.Mark(), 2)
				require.NoError(t, err)
				assert.Len(t, page, 1)

				booked, err := tx.Journal().FindByKeys(t.Context(), []journal.PostingKey{
					entries[0].PostingKey, entries[1].PostingKey, entries[2].PostingKey,
				})
				assert.Len(t, booked, 2)
				var bad journal.Unreadable
				require.ErrorAs(t, err, &bad)
				require.Len(t, bad, 1)
				assert.Equal(t, entries[1].PostingKey, bad[0].PostingKey)
				require.ErrorIs(t, err, port.ErrUnavailable, "to everybody else")
				return nil
			}))
		})
	}
}

func assertUnreadable(t *testing.T, err error, spoilt order.State) {
	t.Helper()
	var bad order.Unreadable
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad, 1)
	assert.Equal(t, spoilt.Mark(), bad[0].Mark)
	require.ErrorIs(t, err, port.ErrUnavailable, "to everybody else")
}

// paidThen is a PAID order.
func paidThen(t *testing.T, at time.Time) *order.Order {
	t.Helper()
	cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "tea", Quantity: 1, UnitPrice: 1000}})
	require.NoError(t, err)
	o := order.Place("alice", cart, at)
	attempt, _, err := o.BeginPayment(order.PaymentRequest{Key: "k", Money: o.State().Total}, at)
	require.NoError(t, err)
	require.NoError(t, o.ConfirmPayment(1, payment.Charge{ID: "ch_" + attempt.OrderID, Money: attempt.Money}, at))
	return o
}

func entryOf(t *testing.T, s order.State) journal.Entry {
	t.Helper()
	content, err := journal.NewContent(journal.SourceDocument{
		Company: "shop", Type: "sales_invoice", ID: string(s.ID), ServiceDate: journal.DateIn(time.UTC, s.PaidAt), Total: 1000,
	}, money.JPY, nil)
	require.NoError(t, err)
	return journal.Book(journal.NewID(), content, "alice", s.PaidAt)
}

// listing is a provider that has booked nothing.
type listing struct{}

func (listing) Charges(context.Context, time.Time, string, int) ([]payment.Booking, string, error) {
	return nil, "", nil
}

func (listing) Lookup(context.Context, string) ([]payment.Booking, error) { return nil, nil }

// However small the pages are, each order is told once, and the comparison comes to its end.
func TestAComparisonGoesOnBehindAPageOfOrdersThatCannotBeRead(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			db := database(t)
			work := db.Open(t, 4)
			asBefore(t, name, db)
			var want []string
			for i := range 6 {
				var id order.ID
				require.NoError(t, work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
					o := paidThen(t, tx.Now().Add(time.Duration(i-10)*time.Minute))
					id = o.State().ID
					return tx.Orders().Add(t.Context(), o)
				}))
				if i == 1 || i == 2 || i == 5 {
					db.Exec(t, `UPDATE orders SET currency = 'ZZZ' WHERE id = '`+string(id)+`'`)
					want = append(want, "unreadable "+string(id))
					continue
				}
				want = append(want, "paid_not_charged "+string(id), "paid_not_booked "+string(id))
			}
			for page := range 4 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var told []string
				tally, err := oversight.Reconciliation{
					Work: work, Provider: listing{}, Page: page,
					Invoice: func(s order.State) journal.SourceDocument { return entryOf(t, s).Source },
				}.Run(ctx, time.Hour, func(f oversight.Finding) error {
					told = append(told, string(f.Kind)+" "+f.OrderID)
					return nil
				})
				require.NoError(t, err)
				assert.ElementsMatch(t, want, told, "pages of %d", page)
				assert.Equal(t, 3, tally.Unreadable)
				assert.False(t, tally.Whole())
			}
		})
	}
}
