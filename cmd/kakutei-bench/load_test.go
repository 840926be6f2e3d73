package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALoadThatRunsDryEndsAndItsRateIsByTheTimeItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stock
		for n := range int64(10) {
			s.add(idOf(n))
		}
		r, err := load(2, time.Hour, func() error {
			if _, err := s.take(); err != nil {
				return err
			}
			time.Sleep(time.Second)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 10, r.count)
		assert.InDelta(t, 2, r.rate, 1e-9)
	})
}

// inserted writes down which orders were asked for.
type inserted [][2]int64

func (i *inserted) orders(_ context.Context, _ string, first, last int64) error {
	*i = append(*i, [2]int64{first, last})
	return nil
}

func TestAStockIsFilledWithWhatItLacksForACell(t *testing.T) {
	var asked inserted
	from, s := source{store: &asked}, stock{}
	fill := func() { require.NoError(t, from.fill(t.Context(), &s, 2*time.Second)) }
	fill()
	fill()
	for range 500 {
		_, err := s.take()
		require.NoError(t, err)
	}
	fill()
	assert.Equal(t, inserted{{1, 2 * supply}, {2*supply + 1, 2*supply + 500}}, asked)
	assert.Len(t, s.open, 2*supply)
	assert.Equal(t, idOf(501), s.open[0].order, "what is left is paid first")
	assert.Equal(t, idOf(2*supply+500), s.open[2*supply-1].order)
}
