package gormstore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/infrastructure/gormstore"
)

// takes is how long a database takes for a transaction, from when it comes to its end.
type takes func(lanes, clients int) time.Duration

// work is a database whose time is work: each client's own, and what a lane costs all of them.
func work(lanes, clients int) time.Duration {
	return time.Duration(clients)*10*time.Microsecond + time.Duration(lanes)*2*time.Millisecond
}

// waiting is a database whose time is waiting, for a disk or a standby: once for each, one after the other on each lane.
func waiting(lanes, clients int) time.Duration {
	return time.Duration(clients) * 10 * time.Millisecond / time.Duration(min(lanes, clients))
}

// crowd is clients that begin the next transaction as soon as one has ended, and are served in the order of coming: each is
// answered when those are who were there before. So a new number of lanes shows only to who comes after it.
type crowd struct {
	came []time.Time // of each who is under way
	next int         // who is answered next
	now  time.Time
}

func crowdOf(clients int) *crowd {
	c := &crowd{came: make([]time.Time, clients), now: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
	for i := range c.came {
		c.came[i] = c.now
	}
	return c
}

// pay has so many transactions made, and counts on how many lanes.
func (c *crowd) pay(w gormstore.Width, on takes, transactions int) map[int]int {
	lanes, clients := map[int]int{}, len(c.came)
	for range transactions {
		lanes[w.Lanes()]++
		c.now = c.now.Add(on(w.Lanes(), clients) / time.Duration(clients))
		w.Took(c.now.Sub(c.came[c.next]), c.now)
		c.came[c.next] = c.now
		c.next = (c.next + 1) % clients
	}
	return lanes
}

// assertGood says that most transactions go by a number of lanes with which they take little longer than with the best. The
// others are trials: one round in eleven, and those under way when the number changes.
func assertGood(t *testing.T, lanes map[int]int, isGood func(lanes int) bool, from string, clients, begun int) {
	t.Helper()
	good, all := 0, 0
	for n, transactions := range lanes {
		all += transactions
		if isGood(n) {
			good += transactions
		}
	}
	assert.Greater(t, good, all*7/10, "%s, %d clients, from %d: %v", from, clients, begun, lanes)
}

// These are enough to go all the way, from one lane to a hundred, also if each step is tried the wrong way first.
const longEnough = 120_000

func eachWidth(each func(most, clients, begun int)) {
	for _, most := range []int{1, 2, 16, 24, 100} {
		for _, clients := range []int{8, 40, 160, 600} {
			for begun := 1; begun <= most; begun += max(1, most/5) {
				each(most, clients, begun)
			}
		}
	}
}

func TestWhereTimeIsWorkThereIsOneLaneWhereverItBegins(t *testing.T) {
	eachWidth(func(most, clients, begun int) {
		w, c := gormstore.NewWidth(most, begun), crowdOf(clients)
		c.pay(w, work, longEnough)
		few := func(lanes int) bool { return lanes == 1 }
		assertGood(t, c.pay(w, work, 20_000), few, "work", clients, begun)
	})
}

func TestWhereTimeIsWaitingThereAreAsManyLanesAsHelp(t *testing.T) {
	eachWidth(func(most, clients, begun int) {
		w, c := gormstore.NewWidth(most, begun), crowdOf(clients)
		c.pay(w, waiting, longEnough)
		enough := func(lanes int) bool { return 10*lanes >= 9*min(most, clients) }
		assertGood(t, c.pay(w, waiting, 20_000), enough, "waiting", clients, begun)
	})
}

// A disk may become slow, and fast again.
func TestWhatIsBestIsFoundAgainWhenItChanges(t *testing.T) {
	w, c := gormstore.NewWidth(16, 1), crowdOf(40)
	for range 3 {
		c.pay(w, waiting, longEnough)
		assertGood(t, c.pay(w, waiting, 10_000), func(lanes int) bool { return lanes == 16 }, "waiting", 40, 2)
		c.pay(w, work, longEnough)
		assertGood(t, c.pay(w, work, 10_000), func(lanes int) bool { return lanes == 1 }, "work", 40, 16)
	}
}

// Whoever is under way says nothing of the new number: with more clients than a round has transactions, a trial would be
// judged by those alone who have waited before it.
func TestATrialIsJudgedByThoseWhoCameAfterItsBeginning(t *testing.T) {
	w, now := gormstore.NewWidth(16, 2), time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	took := func(d time.Duration) {
		now = now.Add(time.Millisecond)
		w.Took(d, now)
	}
	usual := func() (transactions int) {
		for ; w.Lanes() == 2; transactions++ {
			took(time.Second)
		}
		return transactions
	}
	for range 3 {
		usual()
		begun := now
		for range 500 { // they came before
			took(now.Sub(begun) + 2*time.Millisecond)
		}
		require.Equal(t, 4, w.Lanes(), "as long as it takes")
		for range 128 {
			took(500 * time.Millisecond)
		}
		require.Equal(t, 2, w.Lanes(), "for comparison")
	}
	assert.Less(t, usual(), 2000, "and then it stays at four, since each time it was better")
	for range 2000 {
		took(500 * time.Millisecond)
	}
	assert.GreaterOrEqual(t, w.Lanes(), 4)
}

// Every round is better or worse by chance. That does not add lanes, and takes them away where there are too many.
func TestChanceLeadsToFewLanes(t *testing.T) {
	chance, rounds := rand.New(rand.NewPCG(1, 2)), 0
	factor := 1.0
	noisy := func(lanes, clients int) time.Duration {
		if rounds++; rounds%100 == 0 {
			factor = 0.6 + 1.2*chance.Float64()
		}
		return time.Duration(factor * float64(work(lanes, clients)))
	}
	for _, begun := range []int{1, 16} {
		w, c := gormstore.NewWidth(16, begun), crowdOf(40)
		c.pay(w, noisy, longEnough)
		assertGood(t, c.pay(w, noisy, longEnough), func(lanes int) bool { return lanes <= 2 }, "work", 40, begun)
	}
}

// Where a transaction takes a second nobody waits for a thousand of them.
func TestWithFewTransactionsItIsFoundByFew(t *testing.T) {
	slowly := func(lanes, clients int) time.Duration { return 100 * waiting(lanes, clients) }
	w, c := gormstore.NewWidth(8, 2), crowdOf(8)
	assert.Equal(t, map[int]int{2: 79}, c.pay(w, slowly, 79), "nor is anything told by less than eight")
	c.pay(w, slowly, 370)
	assertGood(t, c.pay(w, slowly, 100), func(lanes int) bool { return lanes == 8 }, "waiting", 8, 1)
}

// Once everything stands still for some seconds, whenever that is: in a trial, before one, while one ends. What it looked
// like then is forgotten.
func TestAHiccupDoesNotChangeTheBestForGood(t *testing.T) {
	for name, on := range map[string]struct {
		takes takes
		best  int
	}{"work": {work, 1}, "waiting": {waiting, 16}} {
		isBest := func(lanes int) bool { return lanes == on.best }
		w, c := gormstore.NewWidth(16, on.best), crowdOf(40)
		for after := range 300 {
			c.pay(w, on.takes, 4_000+7*after)
			c.now = c.now.Add(5 * time.Second)
			c.pay(w, on.takes, 5_000)
			assertGood(t, c.pay(w, on.takes, 4_000), isBest, name, 40, on.best)
		}
	}
}

func TestWhoStaysForLongNowAndThenAddsNoLane(t *testing.T) {
	w, c := gormstore.NewWidth(24, 1), crowdOf(40)
	for range 20 {
		c.now = c.now.Add(400 * time.Millisecond)
		w.Widen(c.now)
		assert.Equal(t, map[int]int{1: 3}, c.pay(w, work, 3))
	}
}

// slowly is a database that takes so many times as long. Everybody stays for long there.
func slowly(times time.Duration, on takes) takes {
	return func(lanes, clients int) time.Duration { return times * on(lanes, clients) }
}

// payLate is pay where everybody stays for long on his lane.
func (c *crowd) payLate(w gormstore.Width, on takes, transactions int) map[int]int {
	lanes := map[int]int{}
	for range transactions {
		w.Widen(c.now)
		for n := range c.pay(w, on, 1) {
			lanes[n]++
		}
	}
	return lanes
}

// Where long is waiting, more lanes help, and nobody waits until each number of them has been tried three times.
func TestManyWhoStayForLongHaveLanesAddedWhileThatHelps(t *testing.T) {
	for _, most := range []int{2, 16, 24} {
		w, c := gormstore.NewWidth(most, 1), crowdOf(16)
		begun, transactions := c.now, 0
		for ; w.Lanes() < most && transactions < 1000; transactions++ {
			c.payLate(w, slowly(10, waiting), 1)
		}
		assert.LessOrEqual(t, transactions, 150, "to %d lanes", most)
		assert.Less(t, c.now.Sub(begun), 5*time.Second, "where a hundred take ten seconds on one lane")
		assertGood(t, c.payLate(w, slowly(10, waiting), 5000), func(lanes int) bool { return lanes >= min(most, 16) }, "waiting", 16, 1)
	}
}

// Those who go together end together: whatever their number and pace, lanes that change nothing are not kept.
func TestWhatEndsTogetherIsNoSignThatMoreLanesHelp(t *testing.T) {
	for _, members := range []int{8, 16, 32} {
		for _, every := range []time.Duration{150, 180, 210, 250, 300} {
			w, now := gormstore.NewWidth(16, 1), time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
			for range 2000 {
				w.Widen(now.Add(every * time.Millisecond * 7 / 10))
				now = now.Add(every * time.Millisecond)
				for range members {
					w.TookOnLane(every*time.Millisecond, every*time.Millisecond, now)
				}
				require.LessOrEqual(t, w.Lanes(), 2, "%d every %d ms", members, every)
			}
		}
	}
}

// Where each takes half a second on its lane, and leaves it to others meanwhile, nobody ends so soon who has begun on those
// that are tried.
func TestALaneIsJudgedByThoseWhoHaveBegunOnIt(t *testing.T) {
	const each, late, clients, most = 500 * time.Millisecond, 55 * time.Millisecond, 32, 16
	w, begun := gormstore.NewWidth(most, 1), time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	now, next := begun, begun
	var ends []time.Time // of those under way, in their order
	paid := 0
	for ; now.Sub(begun) < 20*time.Second; now = now.Add(time.Millisecond) {
		for len(ends) < most && !now.Before(next) {
			ends = append(ends, now.Add(each))
			next = now.Add(late / time.Duration(w.Lanes()))
			w.Widen(now)
		}
		for len(ends) > 0 && !now.Before(ends[0]) {
			ends, paid = ends[1:], paid+1
			w.TookOnLane(clients*each/time.Duration(min(most, 10*w.Lanes())), each, now)
		}
	}
	assert.Greater(t, paid, 450, "of 640 that there can be; one lane has 360")
}

// onASlowDisk has sixteen clients pay for so long where a transaction takes 105 ms on its lane, which it leaves to others after
// 55 ms, and counts the payments: there can be 150 a second, and one lane has 18. Something else happens besides.
func onASlowDisk(w gormstore.Width, lasting time.Duration, besides func(at time.Duration) (standstill bool)) (paid int) {
	const each, late, clients = 105 * time.Millisecond, 55 * time.Millisecond, 16
	begun := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	now, next := begun, begun
	var ends []time.Time // of those under way, in their order
	for ; now.Sub(begun) < lasting; now = now.Add(time.Millisecond) {
		for len(ends) < clients && !now.Before(next) {
			ends = append(ends, now.Add(each))
			next = now.Add(late / time.Duration(w.Lanes()))
			w.Widen(now)
		}
		if besides(now.Sub(begun)) {
			continue
		}
		for len(ends) > 0 && !now.Before(ends[0]) {
			ends, paid = ends[1:], paid+1
			w.TookOnLane(clients*late/time.Duration(w.Lanes()), each, now)
		}
	}
	return paid
}

// A company that has begun on the lanes there were, and has left its own to others, may end among those that are tried: that
// they were many for so few lanes says nothing of what comes next.
func TestWhoHasBegunOnOtherLanesSaysNothingOfThose(t *testing.T) {
	for company := 400 * time.Millisecond; company < 2*time.Second; company += 50 * time.Millisecond {
		w := gormstore.NewWidth(16, 1)
		paid := onASlowDisk(w, 4*time.Second, func(at time.Duration) bool {
			for range 8 {
				if at == company {
					w.TookOnLane(company, company, time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC).Add(at))
				}
			}
			return false
		})
		assert.Greater(t, paid, 300, "beside a company that took %s", company)
	}
}

// Once everything stands still for a second, while there is one lane. If more were tried just then, they are tried again soon.
func TestLanesThatAHiccupSpokeAgainstAreTriedAgainSoon(t *testing.T) {
	for hiccup := time.Duration(0); hiccup < 750*time.Millisecond; hiccup += 50 * time.Millisecond {
		paid := onASlowDisk(gormstore.NewWidth(16, 1), 12*time.Second, func(at time.Duration) bool {
			return at > hiccup && at < hiccup+time.Second
		})
		assert.Greater(t, paid, 900, "everything stood still from %s", hiccup)
	}
}

// Where long is work, more lanes are more work: then everybody stays for still longer, which adds none either.
func TestWhereLongIsWorkNoLaneIsAdded(t *testing.T) {
	for _, clients := range []int{16, 40, 160} {
		for _, begun := range []int{1, 2, 16} {
			w, c := gormstore.NewWidth(16, begun), crowdOf(clients)
			if begun > 1 {
				c.payLate(w, slowly(50, work), 20_000)
			}
			one := func(lanes int) bool { return lanes == 1 }
			assertGood(t, c.payLate(w, slowly(50, work), 10_000), one, "work", clients, begun)
		}
	}
}

// A database that has nothing in its memory is slow, and less so with each transaction: whatever is tried meanwhile seems to
// help. It is compared again.
func TestLanesThatWereAddedWhileADatabaseWarmsUpAreTakenAwayAgain(t *testing.T) {
	lightWork := func(lanes, clients int) time.Duration {
		return time.Duration(clients)*100*time.Microsecond + time.Duration(lanes)*300*time.Microsecond
	}
	w, c := gormstore.NewWidth(16, 1), crowdOf(32)
	most := 1
	for times := time.Duration(1000); times > 1; times = times * 4 / 5 {
		for lanes := range c.payLate(w, slowly(times, lightWork), 5) {
			most = max(most, lanes)
		}
	}
	require.Greater(t, most, 2, "they were added")
	c.pay(w, lightWork, 4000)
	assertGood(t, c.pay(w, lightWork, 2000), func(lanes int) bool { return lanes == 1 }, "work", 32, most)
}

func TestThereIsAlwaysALaneAndNeverMoreThanThereCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 100).Draw(t, "most")
		w := gormstore.NewWidth(most, rapid.IntRange(1, most).Draw(t, "begun"))
		now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 50).Draw(t, "turns") {
			d := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "each takes"))
			pause := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "between them"))
			for range rapid.IntRange(0, 200).Draw(t, "transactions") {
				now = now.Add(pause)
				w.Took(d, now)
				if w.Lanes() < 1 || w.Lanes() > most {
					t.Fatalf("%d lanes", w.Lanes())
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "one stays for long") == 0 {
				w.Widen(now)
			}
			if w.Lanes() < 1 || w.Lanes() > most {
				t.Fatalf("%d lanes", w.Lanes())
			}
		}
	})
}
