package gormstore_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
)

// Whoever gives up does so without a turn, or has one: none is lost, and none is had by two.
func TestNoTurnIsLostByWhoGivesUp(t *testing.T) {
	const most, clients, rounds = 3, 40, 200
	turns := gormstore.NewTurns(most)
	var having, had, gaveUp atomic.Int64
	var working sync.WaitGroup
	for c := range clients {
		working.Go(func() {
			for n := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%20)*20*time.Microsecond)
				var err error
				switch {
				case (c+n)%5 > 0:
					err = turns.Take(ctx, (c+n)%3 == 0)
				case !turns.TakeFree():
					err = context.DeadlineExceeded
				}
				cancel()
				if err != nil {
					if assert.ErrorIs(t, err, context.DeadlineExceeded) {
						gaveUp.Add(1)
					}
					continue
				}
				assert.LessOrEqual(t, having.Add(1), int64(most))
				had.Add(1)
				runtime.Gosched()
				having.Add(-1)
				turns.Give()
			}
		})
	}
	working.Wait()
	t.Logf("%d had a turn, %d gave up", had.Load(), gaveUp.Load())
	assert.Positive(t, gaveUp.Load())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range most {
		require.NoError(t, turns.Take(over, false), "all are free again")
	}
	assert.False(t, turns.TakeFree())
	require.Error(t, turns.Take(over, true))
	turns.Give()
	assert.True(t, turns.TakeFree())
}

// endings are who has ended, one after the other.
type endings struct {
	mu  sync.Mutex
	who []string
}

func (e *endings) add(who string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.who = append(e.who, who)
}

// busyStore is a store whose one connection, or turn to write, is held until it is released. The lock timeout is for slow
// machines.
func busyStore(t *testing.T, d gormtest.Database) (s *gormstore.Store, release func()) {
	t.Helper()
	s = d.OpenWaiting(t, 1, 30*time.Second)
	held, released, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			tx.Now()
			close(held)
			<-released
			return nil
		})
	}()
	<-held
	return s, func() {
		close(released)
		assert.NoError(t, <-ended)
	}
}

// ask is a transaction that goes by no lane.
func ask(ctx context.Context, s *gormstore.Store, wait port.Wait) error {
	return s.Do(ctx, wait, func(tx port.Tx) error {
		tx.Now()
		return nil
	})
}

// A payment that has been charged does not wait behind those that have not begun, wherever they wait: for a lane, for a
// connection, or for SQLite's turn to write.
func TestWhatHasBegunOutsideIsFinishedBeforeOthersBegin(t *testing.T) {
	const crowd, beforehand = 60, 16 // a company that waits already, and one that just forms
	begin := map[string]func(context.Context, *gormstore.Store, port.Wait, int) error{
		"reservations": func(ctx context.Context, s *gormstore.Store, wait port.Wait, n int) error {
			return reserveWaiting(ctx, s, wait, fmt.Sprint("key-", n))
		},
		"others": func(ctx context.Context, s *gormstore.Store, wait port.Wait, _ int) error { return ask(ctx, s, wait) },
	}
	for name, database := range gormtest.All {
		for what, begins := range begin {
			t.Run(name+"/"+what, func(t *testing.T) {
				s, release := busyStore(t, database(t))
				var ended endings
				var working sync.WaitGroup
				comes := func(who string, wait port.Wait, n int) {
					working.Go(func() {
						if assert.NoError(t, begins(t.Context(), s, wait, n)) {
							ended.add(who)
						}
					})
				}
				for n := range crowd {
					comes("begins", port.Briefly, n)
				}
				require.Eventually(t, func() bool { return s.Busy() == 1+crowd }, 10*time.Second, time.Millisecond)
				comes("finishes", port.Finishing, crowd)
				require.Eventually(t, func() bool { return s.Busy() == 2+crowd }, 10*time.Second, time.Millisecond)
				release()
				working.Wait()
				assert.LessOrEqual(t, slices.Index(ended.who, "finishes"), beforehand)
			})
		}
	}
}

// A company in which somebody finishes waits for a connection as he would alone.
func TestACompanyGoesAheadWithWhoFinishes(t *testing.T) {
	const crowd, company = 30, 3
	s, release := busyStore(t, gormtest.PostgreSQL(t))
	var ended endings
	var working sync.WaitGroup
	for range crowd {
		working.Go(func() {
			if assert.NoError(t, ask(t.Context(), s, port.Briefly)) {
				ended.add("begins")
			}
		})
	}
	require.Eventually(t, func() bool { return s.Busy() == 1+crowd }, 10*time.Second, time.Millisecond)
	s.Gather(t, company, func() {
		for n := range company {
			working.Go(func() {
				err := s.Do(t.Context(), port.Finishing, func(tx port.Tx) error {
					_, err := tx.Records().Find(t.Context(), idempotency.Scope{Operation: "o", Actor: "a", Key: idempotency.Key(fmt.Sprint(n))})
					return err
				})
				if assert.ErrorIs(t, err, idempotency.ErrNotFound) {
					ended.add("finishes")
				}
			})
		}
	})
	require.Eventually(t, func() bool { return s.WaitForTurns() == crowd+1 }, 10*time.Second, time.Millisecond, "the company waits, too")
	release()
	working.Wait()
	assert.Less(t, slices.Index(ended.who, "finishes"), crowd/2)
}
