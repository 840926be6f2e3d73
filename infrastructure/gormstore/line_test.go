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

// The line of these tests stands before 16 connections, with a lock timeout of a second: 24 who wait are a long line, a
// crowd is taken for as long, and remembered for twice that.
func lineOf16() gormstore.Line {
	return gormstore.NewLine(gormstore.Config{Pool: 16, LockTimeout: time.Second})
}

const moment = time.Millisecond

func TestACrowdThatComesAtOnceIsTakenHoweverLargeItIs(t *testing.T) {
	l, start := lineOf16(), time.Now()
	for n := range 500 {
		assert.False(t, l.IsTooLong(start.Add(999*moment)), "%d wait", n)
		l.Join(start)
	}
	for range 500 {
		l.Leave()
	}
	for range 500 { // the next one, as soon as nobody waits any more
		assert.False(t, l.IsTooLong(start.Add(300*moment)))
		l.Join(start.Add(1100 * moment))
	}
}

func TestALongLineThatStandsIsTooLongAndAShortOneNever(t *testing.T) {
	l, start := lineOf16(), time.Now()
	for range 23 {
		l.Join(start)
	}
	assert.False(t, l.IsTooLong(start.Add(time.Hour)), "thirty-nine clients that never pause are served by sixteen connections")
	l.Join(start.Add(time.Hour))
	assert.True(t, l.IsTooLong(start.Add(time.Hour)), "somebody has been waiting all the time")
	l.Leave()
	assert.False(t, l.IsTooLong(start.Add(time.Hour)), "it is short again")
}

// Whoever was turned away comes again, and all of them do: that is no crowd that will be gone in a moment.
func TestAfterSomebodyWasTurnedAwayALongLineIsTooLongAtOnce(t *testing.T) {
	l, now := lineOf16(), time.Now()
	fill := func() {
		for range 24 {
			l.Join(now)
		}
	}
	empty := func() {
		for range 24 {
			l.Leave()
		}
	}
	fill()
	now = now.Add(1000 * moment)
	require.True(t, l.IsTooLong(now))
	empty()

	now = now.Add(1999 * moment)
	fill()
	require.True(t, l.IsTooLong(now), "this is remembered, and is another reason to remember")
	empty()

	now = now.Add(2000 * moment)
	fill()
	assert.False(t, l.IsTooLong(now), "nobody has been turned away for so long: it is a new crowd")
}

func TestALineIsLongByItsConnections(t *testing.T) {
	for name, c := range map[string]struct {
		config gormstore.Config
		long   int
	}{
		"many connections":           {gormstore.Config{Pool: 100}, 150},
		"few connections":            {gormstore.Config{Pool: 2}, 24},
		"SQLite, which has a writer": {gormstore.Config{Pool: 16, URL: "sqlite:"}, 48},
	} {
		c.config.LockTimeout = time.Second
		l, start := gormstore.NewLine(c.config), time.Now()
		for range c.long - 1 {
			l.Join(start)
		}
		assert.False(t, l.IsTooLong(start.Add(time.Second)), name)
		l.Join(start)
		assert.True(t, l.IsTooLong(start.Add(time.Second)), name)
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
				do(func(port.Tx) error { return nil })
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
			s := database(t).Open(t, 16)
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
