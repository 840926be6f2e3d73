package gormstore_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
)

// queueOf is a queue in which so many wait.
func queueOf(waiting, lanes int, each time.Duration) *gormstore.Queue {
	q := gormstore.NewQueue(lanes, each)
	for range waiting {
		q.Come()
	}
	return q
}

func TestHowManyGoTogether(t *testing.T) {
	for name, c := range map[string]struct {
		waiting, lanes int
		each           time.Duration
		together       int
	}{
		"all who wait":                                          {40, 1, time.Millisecond, 40},
		"nobody if nobody waits":                                {0, 1, time.Millisecond, 0},
		"on two lanes as on one":                                {40, 2, time.Millisecond, 40},
		"on many lanes what falls to each, but one":             {40, 9, time.Millisecond, 5},
		"a rest goes along":                                     {41, 9, time.Millisecond, 6},
		"no more than are through in 50 ms":                     {40, 1, 5 * time.Millisecond, 10},
		"no more than that on many lanes, either":               {40, 3, 5 * time.Millisecond, 10},
		"one, however long it takes":                            {40, 1, time.Minute, 1},
		"no more than 64, however fast they are":                {100, 1, 0, 64},
		"no more than 64, though more of them are through soon": {100, 1, 500 * time.Microsecond, 64},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, queueOf(c.waiting, c.lanes, c.each).Next(), c.together)
		})
	}
}

func TestEverybodyGoesOnceInTheOrderOfComing(t *testing.T) {
	for _, lanes := range []int{1, 4, 16} {
		q := queueOf(100, lanes, 2*time.Millisecond)
		gone := q.Next()
		q.Come() // whoever comes meanwhile goes last
		for next := q.Next(); len(next) > 0; next = q.Next() {
			gone = append(gone, next...)
		}
		require.Len(t, gone, 101)
		for i, who := range gone {
			assert.Equal(t, i, who)
		}
	}
}

func TestWhoFinishesGoesBeforeAllWhoBegin(t *testing.T) {
	q := gormstore.NewQueue(1, 25*time.Millisecond)
	for range 3 {
		q.Come()
	}
	for range 3 {
		q.Return()
	}
	q.Come()
	assert.True(t, q.Withdraw(4))
	assert.Equal(t, []int{3, 5}, q.Next())
	q.Return()
	assert.Equal(t, []int{7, 0}, q.Next())
	assert.Equal(t, []int{1, 2}, q.Next())
	assert.True(t, q.Withdraw(6))
	q.Return()
	q.Come()
	assert.Equal(t, []int{8, 9}, q.Next())
}

// parting is a queue that so many have just left, in which some wait who finish and some who begin.
func parting(lanes, left, finish, begin int) *gormstore.Queue {
	q := gormstore.NewQueue(lanes, time.Millisecond)
	q.Pass(left)
	for range finish {
		q.Return()
	}
	for range begin {
		q.Come()
	}
	return q
}

func TestWhoFinishesGoesWithoutWhoBeginsWhenAllAreThere(t *testing.T) {
	for name, c := range map[string]struct {
		lanes, left, finish, begin int
		together                   int
	}{
		"all of the last company":                {1, 8, 3, 5, 3},
		"more than them":                         {1, 8, 3, 9, 3},
		"one is elsewhere":                       {1, 8, 3, 4, 7},
		"nobody finishes":                        {1, 8, 0, 8, 8},
		"nobody begins":                          {1, 8, 8, 0, 8},
		"nobody is known":                        {1, 0, 3, 5, 8},
		"as many as can go together, of more":    {1, 90, 3, 47, 50},
		"more who finish than can go together":   {1, 90, 60, 20, 50},
		"more lanes than one: others can go now": {2, 8, 3, 5, 8},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, parting(c.lanes, c.left, c.finish, c.begin).Next(), c.together)
		})
	}
}

func TestWhoBeginsIsNotPassedOverTwice(t *testing.T) {
	q := parting(1, 8, 4, 4)
	assert.Equal(t, []int{0, 1, 2, 3}, q.Next())
	q.Pass(4)
	for range 8 {
		q.Return()
	}
	assert.Len(t, q.Next(), 12)
	q.Pass(12)
	q.Return()
	for range 11 {
		q.Come()
	}
	assert.Len(t, q.Next(), 1, "the next ones are")
}

func TestHowManyWereThereIsForgottenByAndBy(t *testing.T) {
	q := gormstore.NewQueue(1, time.Millisecond)
	q.Pass(10)
	companies := 0
	for gone := 0; gone != 1; companies++ {
		q.Return()
		for range 7 {
			q.Come()
		}
		gone = len(q.Next())
		q.Pass(8)
	}
	assert.Equal(t, 6, companies, "ten are eight after five of them")
}

func TestOneGathersThoseWhoWait(t *testing.T) {
	q := gormstore.NewQueue(1, time.Millisecond)
	assert.Equal(t, gormstore.First, q.Come())
	for range 3 {
		assert.Equal(t, gormstore.Waits, q.Come())
	}
}

func TestWhoAsksForWhatAnotherHoldsGoesByAWayOfItsOwn(t *testing.T) {
	q := gormstore.NewQueue(1, time.Millisecond)
	q.Come("order 1", "key 1")
	assert.Equal(t, gormstore.OfItsOwn, q.Come("order 1", "key 2"))
	assert.Equal(t, gormstore.Waits, q.Come("order 2", "key 3"))
	assert.Equal(t, gormstore.OfItsOwn, q.Come("order 3", "key 2"), "one that goes by itself holds it")
	assert.Equal(t, []int{0, 2}, q.Next())

	q.Drop(0)
	assert.Equal(t, gormstore.OfItsOwn, q.Come("order 1"), "two held it, one does still")
	q.Drop(1)
	q.Drop(4)
	assert.NotEqual(t, gormstore.OfItsOwn, q.Come("order 1"))
	for _, who := range []int{2, 3, 5} {
		q.Drop(who)
	}
	assert.Zero(t, q.Held())
}

func TestWhoWithdrawsWaitsNoMoreAndHoldsWhatItHeld(t *testing.T) {
	q := gormstore.NewQueue(1, 25*time.Millisecond)
	for i := range 5 {
		q.Come(fmt.Sprint("order ", i))
	}
	assert.Equal(t, []int{0, 1}, q.Next())
	assert.True(t, q.Withdraw(3))
	assert.False(t, q.Withdraw(3), "only once")
	assert.Equal(t, gormstore.OfItsOwn, q.Come("order 3"), "it goes on, or lets go of it")
	q.Drop(5)
	q.Drop(3)
	assert.Equal(t, 4, q.Held())
	assert.Equal(t, gormstore.Waits, q.Come("order 3"))
	assert.Equal(t, []int{2, 4}, q.Next(), "nobody else has lost his place")
	assert.Equal(t, []int{6}, q.Next())
}

// However few lanes there are, and whatever they wait for: a payment that has waited for one as long as it may goes on a
// connection of its own.
func TestNobodyIsRefusedForWantOfALane(t *testing.T) {
	const takes = 800 * time.Millisecond
	d := gormstore.NewDatabase(t, takes, nil)
	d.Together(1)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var longest time.Duration
		ended, refused := 0, 0
		started := time.Now()
		for client := range 40 {
			all.Go(func() {
				err := d.Go(t.Context(), fmt.Sprint("order ", client))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused++
				}
				longest = max(longest, time.Since(started))
				ended++
			})
		}
		time.Sleep(gormtest.LockTimeout + takes/2)
		synctest.Wait()
		mu.Lock()
		assert.Less(t, ended, 20)
		assert.Equal(t, 40-ended, d.Held(), "who goes on holds what it held")
		mu.Unlock()
		all.Wait()
		assert.Zero(t, refused)
		assert.Equal(t, gormtest.LockTimeout+takes, longest)
		assert.Zero(t, d.Held())
	})
}

// Who has waited for a lane does not wait for a connection, too.
func TestWhoHasWaitedForALaneTakesAConnectionThatIsFree(t *testing.T) {
	const lockTimeout = 10 * time.Second // however slow the machine is
	s := gormtest.PostgreSQL(t).OpenWaiting(t, 1, lockTimeout)
	require.NoError(t, s.ConnectBesideLanes(t.Context()))
	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		tx.Now() // this one has the connection
		started := time.Now()
		require.ErrorIs(t, s.ConnectBesideLanes(t.Context()), port.ErrUnavailable)
		assert.Less(t, time.Since(started), lockTimeout/2)
		return nil
	}))
	require.NoError(t, s.ConnectBesideLanes(t.Context()))
}

func TestWhoHasHisTurnCannotWithdraw(t *testing.T) {
	q := gormstore.NewQueue(1, time.Millisecond)
	q.Come("order 1")
	assert.Equal(t, []int{0}, q.Next())
	assert.False(t, q.Withdraw(0))
	assert.Equal(t, 1, q.Held(), "what he takes hold of is his until he ends")
	q.Drop(0)
	assert.Zero(t, q.Held())
}

func TestOneThingIsTakenByOne(t *testing.T) {
	q := gormstore.NewQueue(1, time.Millisecond)
	q.Come("key 1")
	q.Come("key 2")
	assert.True(t, q.Take(0, "order"))
	assert.True(t, q.Take(0, "order"), "it has it")
	assert.False(t, q.Take(1, "order"), "another one has it")
	assert.False(t, q.Take(1, "key 1"))
	assert.Equal(t, 3, q.Held())
	q.Drop(1)
	assert.Equal(t, 2, q.Held(), "what it did not get it does not let go of")
	q.Drop(0)
	assert.Zero(t, q.Held(), "what it took twice it let go of at once")
	q.Come()
	assert.True(t, q.Take(2, "order"))
}
