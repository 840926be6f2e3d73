package gormstore

import (
	"sync/atomic"
	"time"
)

// line is the transactions that wait for the database, and when it is too long for more.
//
// A crowd that comes all at once may be as large as it is: it is gone again in a moment. So nobody is turned away until
// there has been a line for some time; from then on everybody who finds a long one. Time, and not the length alone: what a
// line takes is not known before. And for a while only so many are let in as work without a line, or nearly: who has been
// accepted does not wait for the others. Then a long line is tried again: if it forms at once, nothing has changed.
type line struct {
	served   int64         // so many are at work, whoever comes on top of that waits
	long     int64         // so many that wait are a long line
	few      int64         // so many, at work or waiting, are let in when others are turned away
	burst    time.Duration // a line that is no older is not too long
	strictly time.Duration // how long only a few are let in
	since    time.Time     // what times are counted from
	count    atomic.Int64  // who waits or is at work: so who has just been served is not taken for one who waits
	formed   atomic.Int64  // when somebody last came and found nobody waiting
	strict   atomic.Int64  // until when only a few are let in
	warned   atomic.Int64  // until when a long line is too long at once
}

// newLine makes a line before so many that are served at once. It is long with so many, or with half as many again as there
// are connections: who is last in that waits for two transactions to end. A few are a quarter more than the connections.
func newLine(served, long int, c Config) *line {
	return &line{
		served: int64(served), long: int64(max(long, c.Pool+c.Pool/2)), few: int64(max(few, c.Pool+c.Pool/4)),
		burst: c.LockTimeout, strictly: twice(c.LockTimeout), since: time.Now(),
	}
}

// What is no long line, however few connections there are. Turns with SQLite's one writer are short: there is no server
// to ask.
const (
	longForOne  = 48
	longForMany = 24
)

// few is how many are always let in.
const few = 8

func (l *line) join(now time.Time) {
	if l.count.Add(1) == l.served+1 {
		l.formed.Store(int64(now.Sub(l.since)))
	}
}

func (l *line) leave() { l.count.Add(-1) }

// isTooLong is asked for somebody who would join. True turns him away.
func (l *line) isTooLong(now time.Time) bool {
	count, at := l.count.Load(), now.Sub(l.since)
	stands := at < time.Duration(l.warned.Load()) || at-time.Duration(l.formed.Load()) >= l.burst
	if count-l.served >= l.long && stands {
		l.strict.Store(int64(at + l.strictly))
		l.warned.Store(int64(at + twice(l.strictly)))
		return true
	}
	return count >= l.few && at < time.Duration(l.strict.Load())
}

// Crowded tells that more transactions wait for the database than are served soon, and not for a moment only, or that they
// did just now: who has not begun had better not begin. Nobody in the line is turned away by it.
func (s *Store) Crowded() bool { return s.line.isTooLong(time.Now()) }
