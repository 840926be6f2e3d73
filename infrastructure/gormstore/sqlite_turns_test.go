package gormstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
)

func reserve(ctx context.Context, s *gormstore.Store, key string) error {
	return s.Do(ctx, port.Briefly, func(tx port.Tx) error {
		_, err := tx.Records().Reserve(ctx, idempotency.Reservation{
			Scope: idempotency.Scope{Operation: "o", Actor: "a", Key: idempotency.Key(key)},
			Token: idempotency.NewToken(), Request: "r",
		}, time.Minute)
		return err
	})
}

// turns are what a store got done while another one was at work on the same file.
type turns struct{ done, refused atomic.Int64 }

// Each of the two would take the file for itself: it begins the next transaction as soon as one has ended. Whoever waits
// asks often enough all the same.
func TestTwoStoresThatNeverPauseTakeTurnsAtOneFile(t *testing.T) {
	d := gormtest.SQLite(t)
	over, end := context.WithTimeout(t.Context(), 3*time.Second)
	defer end()
	var both [2]turns
	var working sync.WaitGroup
	for i := range both {
		s := d.Open(t, 2)
		for w := range 4 {
			working.Go(func() {
				for n := 0; over.Err() == nil; n++ {
					err := reserve(context.WithoutCancel(over), s, fmt.Sprint(i, "-", w, "-", n))
					if err == nil {
						both[i].done.Add(1)
					} else if assert.ErrorIs(t, err, port.ErrUnavailable) {
						both[i].refused.Add(1)
					}
				}
			})
		}
	}
	working.Wait()
	for i := range both {
		done, others, refused := both[i].done.Load(), both[1-i].done.Load(), both[i].refused.Load()
		t.Logf("store %d: %d done, %d refused", i, done, refused)
		assert.Greater(t, 4*done, others, "neither is kept from the file")
		assert.LessOrEqual(t, 20*refused, done, "few wait in vain")
	}
}
