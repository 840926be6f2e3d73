package gormstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore"
)

// during are the companies in which clients go for a second, after one in which they meet: each makes its next transaction
// some time after the last one is answered.
func during(t *testing.T, d *gormstore.Database, clients int, pause func(client int) time.Duration) (companies []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		end := time.Now().Add(2 * time.Second)
		for client := range clients {
			all.Go(func() {
				for time.Now().Before(end) {
					time.Sleep(pause(client))
					assert.NoError(t, d.Go(t.Context(), fmt.Sprint("order ", client)))
				}
			})
		}
		time.Sleep(time.Second)
		d.Companies()
		time.Sleep(time.Second - time.Nanosecond)
		companies = d.Companies()
		all.Wait()
	})
	return companies
}

// Who comes while a company is at it would go with the others who do, and they with nobody of the company: half of all.
func TestThoseWhoWentTogetherAreWaitedFor(t *testing.T) {
	for _, n := range []int{2, 8, 32} {
		companies := during(t, gormstore.NewDatabase(t, 2*time.Millisecond, nil), n,
			func(client int) time.Duration { return time.Duration(200+10*client) * time.Microsecond })
		assert.Equal(t, slices.Repeat([]int{n}, len(companies)), companies)
		assert.Greater(t, len(companies), 350, "no longer than until they are there")
	}
}

func TestOneAloneWaitsForNobody(t *testing.T) {
	companies := during(t, gormstore.NewDatabase(t, 2*time.Millisecond, nil), 1,
		func(int) time.Duration { return 501 * time.Microsecond })
	assert.Equal(t, slices.Repeat([]int{1}, len(companies)), companies)
	assert.Greater(t, len(companies), 390)
}

// Clients who think for longer than a company takes come by chance, and those who have come go: what is lost by waiting for
// the others is little.
func TestWhoDoesNotComeIsNotWaitedForMuchLonger(t *testing.T) {
	const think, takes = 21 * time.Millisecond, 2 * time.Millisecond
	d := gormstore.NewDatabase(t, takes, nil)
	var mu sync.Mutex
	var turns int
	var took time.Duration
	var failed error
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for client := range 6 {
			all.Go(func() {
				for turn := range 200 {
					time.Sleep(think + time.Duration((client*7+turn*3)%11)*time.Millisecond)
					started := time.Now()
					err := d.Go(t.Context(), fmt.Sprint("order ", client))
					mu.Lock()
					failed = errors.Join(failed, err)
					if turn >= 20 {
						turns, took = turns+1, took+time.Since(started)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
	})
	require.NoError(t, failed)
	require.Equal(t, 6*180, turns)
	assert.Less(t, took/time.Duration(turns), 27*takes/20)
}

func TestWaitingInVainIsSparedLongerEachTime(t *testing.T) {
	p, now := gormstore.NewPatience(), time.Now()
	spared := func() (n int) {
		for p.Expect(3, 1, now); !p.IsWorthwhile(3, 64, time.Millisecond, now); n++ {
			require.Less(t, n, 1000)
		}
		return n
	}
	assert.Zero(t, spared(), "at first it is tried")
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		p.Waited(true)
		assert.Equal(t, n, spared())
	}
	p.Waited(false)
	assert.Zero(t, spared(), "they have come")
	p.Waited(true)
	assert.Equal(t, 1, spared())
}

func TestHowManyAreWaitedForAndHowLong(t *testing.T) {
	p, now := gormstore.NewPatience(), time.Now()
	isWorthwhile := func(waiting, atMost int, later time.Duration) bool {
		return p.IsWorthwhile(waiting, atMost, 500*time.Microsecond, now.Add(later))
	}
	assert.False(t, isWorthwhile(1, 64, 0), "nobody has gone yet")
	p.Expect(1, 0, now)
	assert.False(t, isWorthwhile(1, 64, 0), "who came alone")
	p.Expect(5, 3, now)
	assert.True(t, isWorthwhile(7, 64, 0))
	assert.False(t, isWorthwhile(8, 64, 0), "all are here")
	assert.False(t, isWorthwhile(4, 4, 0), "no more can go together")
	assert.True(t, isWorthwhile(1, 64, 4*time.Millisecond-1), "as long as eight take")
	assert.False(t, isWorthwhile(1, 64, 4*time.Millisecond), "they went long ago")
	p.Expect(32, 0, now)
	assert.True(t, isWorthwhile(1, 64, 5*time.Millisecond-1))
	assert.False(t, isWorthwhile(1, 64, 5*time.Millisecond), "and no longer than that")
}

// One who comes when the others are long gone is alone.
func TestWhoComesLaterGoesAtOnce(t *testing.T) {
	d := gormstore.NewDatabase(t, 2*time.Millisecond, nil)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for client := range 8 {
			all.Go(func() {
				for range 3 {
					assert.NoError(t, d.Go(t.Context(), fmt.Sprint("order ", client)))
				}
			})
		}
		all.Wait()
		require.Contains(t, d.Companies(), 8)
		time.Sleep(time.Second)
		started := time.Now()
		require.NoError(t, d.Go(t.Context(), "order"))
		assert.Equal(t, 2*time.Millisecond, time.Since(started))
	})
}

// A bug in what a company sends ends neither the process nor anybody's wait: each starts anew, alone.
func TestAPanicOfWhoLeadsEndsTheCompany(t *testing.T) {
	d := gormstore.NewDatabase(t, 2*time.Millisecond, func(members int) {
		if members > 1 {
			panic("a bug")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		errs := make(chan error, 3)
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i) * time.Microsecond)
				errs <- d.Go(context.Background(), fmt.Sprint("order ", i))
			}()
		}
		require.NoError(t, <-errs, "who went first went alone")
		for range 2 {
			require.ErrorIs(t, <-errs, gormstore.ErrAlone)
		}
		assert.NoError(t, d.Go(t.Context(), "order 4"), "the lane is free again")
		assert.Zero(t, d.Held())
	})
}
