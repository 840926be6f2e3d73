package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// comparing is what is read of orders and entries to compare them with a provider's list.
var comparing = []check{
	{"orders are found by their ids, whoever's, and those that are not there are left out", func(t *testing.T, s Opened) {
		var ids []order.ID
		want := map[order.ID]order.State{}
		for _, state := range statesOf(t) {
			state.Customer += " " + string(state.Status)
			do(t, s.Work, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(state)) })
			ids, want[state.ID] = append(ids, state.ID, order.NewID()), state
		}
		added(t, s.Work)
		require.NoError(t, s.Beside.Read(t.Context(), func(tx port.Tx) error {
			found, err := tx.Orders().FindAll(t.Context(), ids)
			require.Len(t, found, len(want))
			for _, o := range found {
				got := o.State()
				got.Version = want[got.ID].Version
				assert.Equal(t, want[got.ID], got)
			}
			return err
		}))
	}},
	{"no ids find no orders, and no keys no entries", func(t *testing.T, s Opened) {
		added(t, s.Work)
		posted(t, s.Work, invoice(t, "inv-1"))
		require.NoError(t, s.Work.Read(t.Context(), func(tx port.Tx) error {
			orders, err := tx.Orders().FindAll(t.Context(), nil)
			require.NoError(t, err)
			assert.Empty(t, orders)
			entries, err := tx.Journal().FindByKeys(t.Context(), nil)
			assert.Empty(t, entries)
			return err
		}))
	}},
	{"paid orders are listed by the time of their payment, page by page, each once", func(t *testing.T, s Opened) {
		var want []order.ID
		for _, plus := range []time.Duration{0, 0, 0, time.Microsecond, time.Hour} { // three at the same time: by their ids
			want = append(want, paidAt(t, s.Work, instant(plus)))
		}
		paidAt(t, s.Work, instant(-time.Microsecond))
		added(t, s.Work)
		begun(t, s.Work, added(t, s.Work), "k")
		for limit := 1; limit <= 6; limit++ {
			assert.Equal(t, want, paidSince(t, s.Beside, instant(0), limit), "pages of %d", limit)
		}
		assert.Equal(t, want[3:], paidSince(t, s.Beside, instant(time.Nanosecond*1000), 2))
		assert.Empty(t, paidSince(t, s.Beside, instant(2*time.Hour), 2))
		assert.Len(t, paidSince(t, s.Beside, time.Time{}, 4), 6, "since ever")
	}},
	{"a transaction lists what it has changed itself", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		do(t, s.Work, func(tx port.Tx) error {
			require.NoError(t, changing(t, o, paying("k"))(tx))
			found, err := tx.Orders().PaidAfter(t.Context(), order.Mark{PaidAt: tx.Now()}, 2)
			assert.Len(t, found, 1)
			return err
		})
	}},
	{"entries are found by their posting keys, and those that are not there are left out", func(t *testing.T, s Opened) {
		first, second, other := invoice(t, "inv-1"), invoice(t, "inv-2"), invoice(t, "inv-3")
		posted(t, s.Work, first)
		posted(t, s.Work, second)
		posted(t, s.Work, invoice(t, "inv-4"))
		require.NoError(t, s.Beside.Read(t.Context(), func(tx port.Tx) error {
			keys := []journal.PostingKey{first.PostingKey, other.PostingKey, second.PostingKey}
			found, err := tx.Journal().FindByKeys(t.Context(), keys)
			assert.ElementsMatch(t, []journal.Entry{first, second}, found)
			return err
		}))
	}},
}

// paidAt stores an order that was paid then.
func paidAt(t *testing.T, w port.UnitOfWork, at time.Time) order.ID {
	t.Helper()
	s := paidOrder(t)
	s.PaidAt = at
	do(t, w, func(tx port.Tx) error { return tx.Orders().Add(t.Context(), order.Rehydrate(s)) })
	return s.ID
}

// paidSince follows the list from a time to its end.
func paidSince(t *testing.T, w port.UnitOfWork, since time.Time, limit int) (ids []order.ID) {
	t.Helper()
	for mark := (order.Mark{PaidAt: since}); ; {
		var page []*order.Order
		require.NoError(t, w.Read(t.Context(), func(tx port.Tx) (err error) {
			page, err = tx.Orders().PaidAfter(t.Context(), mark, limit)
			return err
		}))
		require.LessOrEqual(t, len(page), limit)
		for _, o := range page {
			require.Equal(t, order.Paid, o.State().Status)
			ids, mark = append(ids, o.State().ID), o.State().Mark()
		}
		if len(page) < limit {
			return ids
		}
	}
}
