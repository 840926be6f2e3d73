package main

import (
	"context"
	"testing"
	"time"

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

// How long a sweep takes is not known beforehand: no stock of orders must have to last for it.
func TestSpellsFollowOneAnotherUntilItIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		endsIn string // of the third spell
		spells int
	}{
		"while one is measured":               {"measured", 3},
		"before anything was done in a spell": {"nothing", 2},
		"while the next one is made ready":    {"ready", 2},
	} {
		over, asked := make(chan struct{}), 0
		all, times, err := spells(over, func() error {
			if asked++; asked == 3 && c.endsIn == "ready" {
				close(over)
			}
			return nil
		}, func() (sample, ran, error) {
			switch {
			case asked == 3 && c.endsIn == "nothing":
				close(over)
				return sample{}, ran{}, errTooLittle
			case asked == 3:
				close(over)
			}
			return sample{Count: asked}, ran{times: make([]time.Duration, asked)}, nil
		})
		require.NoError(t, err, name)
		assert.Len(t, all, c.spells, name)
		assert.Len(t, times, c.spells*(c.spells+1)/2, name)
		assert.Equal(t, 1, all[0].Count, name)
	}
}

func TestSpellsInWhichNothingIsDoneAreAnError(t *testing.T) {
	ready := func() error { return nil }
	nothing := func() (sample, ran, error) { return sample{}, ran{}, errTooLittle }
	_, _, err := spells(nil, ready, nothing)
	require.ErrorIs(t, err, errTooLittle, "it is not over")
	over := make(chan struct{})
	close(over)
	_, _, err = spells(over, ready, nothing)
	require.ErrorContains(t, err, "before anything was measured")
	_, _, err = spells(nil, func() error { return assert.AnError }, nothing)
	require.ErrorIs(t, err, assert.AnError)
}

func TestRowsAreCopiedWithWhatMustDiffer(t *testing.T) {
	assert.Equal(t, "INSERT INTO orders (id, status) SELECT x(n), t.status FROM orders AS t, generate_series(7, 9) AS n WHERE t.id = $1",
		copying("orders", []string{"id", "status"}, "t.id = $1", map[string]string{"id": "x(n)"}, "generate_series(7, 9)"))
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
