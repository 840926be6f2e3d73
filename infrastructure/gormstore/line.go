package gormstore

import (
	"sync/atomic"
	"time"
)

// line is the transactions that wait for a connection, or for SQLite's turn to write, and when it is too long for more.
//
// A crowd that comes all at once may be as large as it is: it is gone again in a moment. So nobody is turned away until
// there has been a line for some time; from then on everybody who finds a long one, until nobody has found one for longer
// than those who were turned away stay away. Time, and not the length alone: what a line takes is not known before.
type line struct {
	served int64         // so many are at work, whoever comes on top of that waits
	long   int64         // so many that wait are a long line
	burst  time.Duration // a line that is no older is not too long
	memory time.Duration // how long after the last one was turned away the next crowd is not taken for one
	since  time.Time     // what times are counted from
	count  atomic.Int64  // who waits or is at work: so who has just been served is not taken for one who waits
	formed atomic.Int64  // when somebody last came and found nobody waiting
	strict atomic.Int64  // until when a long line is too long at once
}

// newLine makes a line before so many that are served at once. It is long with so many, or with half as many again as there
// are connections: who is last in that waits for two transactions to end.
func newLine(served, long int, c Config) *line {
	return &line{
		served: int64(served), long: int64(max(long, c.Pool+c.Pool/2)), burst: c.LockTimeout, memory: twice(c.LockTimeout), since: time.Now(),
	}
}

// What is no long line, however few connections there are. Turns with SQLite's one writer are short: there is no server
// to ask.
const (
	longForOne  = 48
	longForMany = 24
)

func (l *line) join(now time.Time) {
	if l.count.Add(1) == l.served+1 {
		l.formed.Store(int64(now.Sub(l.since)))
	}
}

func (l *line) leave() { l.count.Add(-1) }

// isTooLong is asked for somebody who would join. True turns him away.
func (l *line) isTooLong(now time.Time) bool {
	if l.count.Load()-l.served < l.long {
		return false
	}
	at := now.Sub(l.since)
	if at < time.Duration(l.strict.Load()) || at-time.Duration(l.formed.Load()) >= l.burst {
		l.strict.Store(int64(at + l.memory))
		return true
	}
	return false
}

// Crowded tells that more transactions wait for connections than are served soon, and not for a moment only: who has not
// begun had better not begin. Nobody in the line is turned away by it.
func (s *Store) Crowded() bool { return s.line.isTooLong(time.Now()) }
