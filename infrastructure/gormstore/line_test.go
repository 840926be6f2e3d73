package gormstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
)

// The line of these tests stands before 16 connections, all of which are at work, with a lock timeout of a second: 24 who
// wait are a long line, and a crowd is taken for as long as that. Then for two seconds only 20 are let in, four of whom
// wait, and for four seconds a long line is too long at once.
func lineOf16(at time.Time) gormstore.Line {
	l := gormstore.NewLine(gormstore.Config{Pool: 16, LockTimeout: time.Second})
	join(l, 16, at)
	return l
}

func join(l gormstore.Line, n int, at time.Time) {
	for range n {
		l.Join(at)
	}
}

func leave(l gormstore.Line, n int) {
	for range n {
		l.Leave()
	}
}

const moment = time.Millisecond

func TestACrowdThatComesAtOnceIsTakenHoweverLargeItIs(t *testing.T) {
	start := time.Now()
	l := lineOf16(start)
	for n := range 500 {
		assert.False(t, l.IsTooLong(start.Add(999*moment)), "%d wait", n)
		l.Join(start)
	}
	leave(l, 500)
	for range 500 { // the next one, as soon as nobody waits any more
		assert.False(t, l.IsTooLong(start.Add(2099*moment)))
		l.Join(start.Add(1100 * moment))
	}
}

func TestALongLineThatStandsIsTooLongAndAShortOneNever(t *testing.T) {
	start := time.Now()
	l := lineOf16(start)
	join(l, 23, start)
	assert.False(t, l.IsTooLong(start.Add(time.Hour)), "thirty-nine clients that never pause are served by sixteen connections")
	l.Join(start.Add(time.Hour))
	assert.True(t, l.IsTooLong(start.Add(time.Hour)), "somebody has been waiting all the time")
}

func TestALineStandsFromWhenSomebodyCameAndFoundNobodyWaiting(t *testing.T) {
	start := time.Now()
	l := lineOf16(start)
	join(l, 24, start)
	assert.False(t, l.IsTooLong(start.Add(999*moment)))
	assert.True(t, l.IsTooLong(start.Add(1000*moment)), "at least a lock timeout")

	l = lineOf16(start)
	join(l, 24, start)
	leave(l, 24) // sixteen are at work all the time
	join(l, 24, start.Add(500*moment))
	assert.False(t, l.IsTooLong(start.Add(1499*moment)), "nobody waited in between")
	assert.True(t, l.IsTooLong(start.Add(1500*moment)))
}

// overloaded is a line that has just turned somebody away, and is as long as before.
func overloaded(t *testing.T) (l gormstore.Line, at time.Time) {
	t.Helper()
	start := time.Now()
	l = lineOf16(start)
	join(l, 24, start)
	require.True(t, l.IsTooLong(start.Add(time.Second)))
	return l, start.Add(time.Second)
}

// Who has been let in does not wait for all the others who want to be.
func TestAfterALongLineHasTurnedSomebodyAwayOnlyAFewAreLetInForTwoLockTimeouts(t *testing.T) {
	l, then := overloaded(t)
	leave(l, 20)
	assert.True(t, l.IsTooLong(then), "twenty are at work or wait")
	l.Leave()
	assert.False(t, l.IsTooLong(then), "they are the few, with one more")
	l.Join(then)
	assert.True(t, l.IsTooLong(then.Add(1999*moment)))
	assert.False(t, l.IsTooLong(then.Add(2000*moment)), "a long line is tried again")
	join(l, 19, then.Add(2000*moment))
	assert.False(t, l.IsTooLong(then.Add(2000*moment)), "twenty-three wait")
}

// All of them come again, as long as they are turned away: they would never be let in.
func TestWhoIsTurnedAwayAsOneTooManyForAFewExtendsNothing(t *testing.T) {
	l, then := overloaded(t)
	leave(l, 20)
	for after := range 2000 {
		require.True(t, l.IsTooLong(then.Add(time.Duration(after)*moment)))
	}
	assert.False(t, l.IsTooLong(then.Add(2000*moment)))
	leave(l, 4)
	join(l, 24, then.Add(4000*moment))
	assert.False(t, l.IsTooLong(then.Add(4000*moment)), "nor how long the next crowd is taken for none")
}

// Whoever was turned away comes again, and all of them do: that is no crowd that will be gone in a moment.
func TestForFourLockTimeoutsAfterSomebodyWasTurnedAwayALongLineIsTooLongAtOnce(t *testing.T) {
	l, then := overloaded(t)
	leave(l, 24)
	then = then.Add(3999 * moment)
	join(l, 23, then)
	require.False(t, l.IsTooLong(then), "a short one is not")
	l.Join(then)
	require.True(t, l.IsTooLong(then))

	leave(l, 20)
	then = then.Add(1999 * moment)
	assert.True(t, l.IsTooLong(then), "again only a few are let in")
	leave(l, 4)
	then = then.Add(2000 * moment)
	join(l, 24, then)
	require.True(t, l.IsTooLong(then), "and again a long line is too long at once")

	leave(l, 24)
	then = then.Add(4000 * moment)
	join(l, 24, then)
	assert.False(t, l.IsTooLong(then), "nobody has found a long line for so long: it is a new crowd")
}

func TestALineIsLongByItsConnections(t *testing.T) {
	for name, c := range map[string]struct {
		config            gormstore.Config
		served, long, few int
	}{
		"many connections":           {gormstore.Config{Pool: 100}, 100, 150, 125},
		"few connections":            {gormstore.Config{Pool: 2}, 2, 24, 8},
		"SQLite, which has a writer": {gormstore.Config{Pool: 16, URL: "sqlite:"}, 1, 48, 20},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.LockTimeout = time.Second
			l, start := gormstore.NewLine(c.config), time.Now()
			join(l, c.served+c.long-1, start)
			now := start.Add(time.Second)
			assert.False(t, l.IsTooLong(now))
			l.Join(start)
			assert.True(t, l.IsTooLong(now))
			leave(l, c.served+c.long-c.few)
			assert.True(t, l.IsTooLong(now), "more than a few")
			l.Leave()
			assert.False(t, l.IsTooLong(now), "a few")
		})
	}
}

func TestAStoreIsCrowdedWhileTransactionsWaitAndNoneOfThemIsTurnedAway(t *testing.T) {
	const lockTimeout = time.Minute // that would be long for a test: the line has been turning away before
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
				URL: database(t).URL, Pool: 1, LockTimeout: lockTimeout,
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			s.TurnsAway()
			require.False(t, s.Crowded())
			held, release := make(chan struct{}), make(chan struct{})
			var working sync.WaitGroup
			do := func(fn func(port.Tx) error) {
				working.Go(func() { assert.NoError(t, s.Do(t.Context(), port.Fully, fn)) })
			}
			do(func(tx port.Tx) error {
				tx.Now()
				close(held)
				<-release
				return nil
			})
			<-held
			for range 48 {
				do(func(tx port.Tx) error {
					tx.Now()
					return nil
				})
			}
			require.Eventually(t, s.Crowded, time.Minute, time.Millisecond)
			close(release)
			working.Wait()
			assert.False(t, s.Crowded())
		})
	}
}

// As many as are served at once are no line, and who has just been served is in none: thirty-nine clients of sixteen
// connections are never turned away, in whatever order they are woken.
func TestWhoIsServedIsInNoLine(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			s := database(t).OpenWaiting(t, 16, 10*time.Second) // however slow the machine is: this is about the line
			s.TurnsAway()
			over, end := context.WithTimeout(t.Context(), time.Second)
			defer end()
			var clients sync.WaitGroup
			for range 39 {
				clients.Go(func() {
					for over.Err() == nil {
						assert.False(t, s.Crowded())
						assert.NoError(t, s.Do(context.WithoutCancel(over), port.Fully, func(tx port.Tx) error {
							tx.Now()
							return nil
						}))
					}
				})
			}
			clients.Wait()
			assert.False(t, s.Crowded())
		})
	}
}

// A crowd is no broken store: readiness waits once more before it says so.
func TestAStoreWhoseConnectionsAreTakenForAMomentIsReady(t *testing.T) {
	const lockTimeout = 500 * time.Millisecond
	s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
		URL: gormtest.PostgreSQL(t).URL, Pool: 1, LockTimeout: lockTimeout,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	held, release := make(chan struct{}), make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		assert.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			tx.Now()
			close(held)
			<-release
			return nil
		}))
	})
	<-held
	time.AfterFunc(lockTimeout*5/4, func() { close(release) })
	err = s.Ready(t.Context())
	working.Wait()
	require.NoError(t, err)
}
