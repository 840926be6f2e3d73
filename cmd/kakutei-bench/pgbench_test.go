package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALogOfPgbenchIsRead(t *testing.T) {
	all, err := transactionsIn("0 1 1500 0 1700000000 250\n31 2 20 0 1700000001 0\n")
	require.NoError(t, err)
	assert.Equal(t, []transaction{
		{client: 0, ended: 1700000000*time.Second + 250*time.Microsecond, took: 1500 * time.Microsecond},
		{client: 31, ended: 1700000001 * time.Second, took: 20 * time.Microsecond},
	}, all)
	_, err = transactionsIn("0 1 failed 0 1700000000 250\n")
	require.Error(t, err)
}

// The first transactions of a connection are slow, and when one client has finished the others have its share.
func TestOnlyWhatAllClientsDoAtTheSameTimeIsMeasured(t *testing.T) {
	var all []transaction
	for client, last := range []int{40, 60} {
		for i := 1; i <= last; i++ {
			took := time.Millisecond
			if i <= unsteady {
				took = time.Second
			}
			all = append(all, transaction{client: client, ended: time.Duration(i) * 10 * time.Millisecond, took: took})
		}
	}
	perSecond, times := steady(all, 2)
	assert.Len(t, times, 60) // of each client the 11th to the 40th
	assert.InDelta(t, 200, perSecond, 1e-9)
	assert.Equal(t, time.Millisecond, percentile(times, 100))

	perSecond, times = steady(all[:unsteady], 1)
	assert.Zero(t, perSecond, "too short")
	assert.Empty(t, times)
}
