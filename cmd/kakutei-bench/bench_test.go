package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ledger is a store of which it is said what is in it.
type ledger struct{ orders, entries int64 }

func (l *ledger) paid(context.Context) (orders, entries int64, err error) {
	return l.orders, l.entries, nil
}

func TestWhatIsAcknowledgedIsPaidAndBooked(t *testing.T) {
	for name, c := range map[string]struct {
		orders, entries int64
		acknowledged    int
		right           bool
	}{
		"as it should be":         {3, 3, 3, true},
		"an order is not paid":    {2, 3, 3, false},
		"an entry is not booked":  {3, 2, 3, false},
		"more than anybody knows": {4, 4, 3, false},
	} {
		l := &ledger{orders: 10, entries: 20}
		err := settled(t.Context(), l, func() (int, error) {
			l.orders, l.entries = l.orders+c.orders, l.entries+c.entries
			return c.acknowledged, nil
		})
		assert.Equal(t, c.right, err == nil, name)
	}
}

func TestRowsAreCopiedWithWhatMustDiffer(t *testing.T) {
	assert.Equal(t, "INSERT INTO orders (id, status) SELECT x(n), t.status FROM orders AS t, generate_series(7, 9) AS n WHERE t.id = $1",
		copying("orders", []string{"id", "status"}, "t.id = $1", map[string]string{"id": "x(n)"}, 7, 9))
}

func TestAnOrderMadeHasTheIDThatPostgreSQLMakes(t *testing.T) {
	_, direct, _ := recorded(t)
	conn := connect(t, direct)
	for _, n := range []int64{1, 0xabc, 1<<48 + 5} {
		var id string
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT CAST("+orderOf("$1")+" AS text)", n).Scan(&id))
		assert.Equal(t, idOf(n), id)
	}
}
