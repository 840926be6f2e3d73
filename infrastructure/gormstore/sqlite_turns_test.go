package gormstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
)

func reserve(ctx context.Context, s *gormstore.Store, key string) error {
	return reserveWaiting(ctx, s, port.Briefly, key)
}

func reserveWaiting(ctx context.Context, s *gormstore.Store, wait port.Wait, key string) error {
	return s.Do(ctx, wait, func(tx port.Tx) error {
		_, err := tx.Records().Reserve(ctx, idempotency.Reservation{
			Scope: idempotency.Scope{Operation: "o", Actor: "a", Key: idempotency.Key(key)},
			Token: idempotency.NewToken(), Request: "r",
		}, time.Minute)
		return err
	})
}

// Each of the two would take the file for itself: it begins the next transaction as soon as one has ended. Whoever waits
// asks often enough all the same.
func TestTwoStoresThatNeverPauseTakeTurnsAtOneFile(t *testing.T) {
	d := gormtest.SQLite(t)
	over, end := context.WithTimeout(t.Context(), 3*time.Second)
	defer end()
	var mu sync.Mutex
	var turns []int // whose each was, in their order
	var working sync.WaitGroup
	for i := range 2 {
		c := gormstore.Config{URL: d.URL, Pool: 2, LockTimeout: 10 * time.Second} // however slow the machine is
		s, err := gormstore.Open(context.WithoutCancel(t.Context()), c)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		for w := range 4 {
			working.Go(func() {
				for n := 0; over.Err() == nil; n++ {
					if err := reserve(context.WithoutCancel(over), s, fmt.Sprint(i, "-", w, "-", n)); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					turns = append(turns, i)
					mu.Unlock()
				}
			})
		}
	}
	working.Wait()
	changes := 0
	for n := 1; n < len(turns); n++ {
		if turns[n] != turns[n-1] {
			changes++
		}
	}
	t.Logf("%d transactions, %d times the other store's turn came", len(turns), changes)
	// On a fast disk many transactions fit into a short wait, on a slow one few into a long one.
	assert.True(t, 20*changes > len(turns) || changes > 200, "neither is kept from the file for long")
}
