package gormstore

import (
	"context"
	"sync/atomic"
	"time"
)

// Connections is how a store's connections stand. A transaction has one for itself, or transactions that go together share
// one.
type Connections struct {
	Max      int           // at most, SQLite's writer among them
	InUse    int           // on which a transaction is open, or one for several
	Acquired int64         // how often one was taken, SQLite's turns to write included
	Refused  int64         // transactions that got none in time, nor a share in one
	Waited   time.Duration // how long transactions waited for one or for a lane, each by itself, SQLite's turns included
}

// usage counts connections for one kind of database as for the other.
type usage struct {
	max                       int
	inUse, got, none, waiting atomic.Int64
}

// Connections is how they stand now.
func (s *Store) Connections() Connections {
	u := &s.usage
	return Connections{
		Max: u.max, InUse: int(u.inUse.Load()), Acquired: u.got.Load(), Refused: u.none.Load(),
		Waited: time.Duration(u.waiting.Load()),
	}
}

// open finds a way to the database for a transaction, by what it asks first.
func (s *Store) open(ctx context.Context, tx *session, writes []write, questions []question) (l link, err error) {
	started := time.Now()
	s.line.join(started)
	watching := s.watching(ctx)
	w := way{wait: tx.wait, reads: tx.reads, whole: tx.whole}
	if watching != nil && tx.whole {
		w.sends = func() { watching.sends(textsOf(writes), true) }
	}
	if s.lanes != nil && sociable(writes, questions) {
		l, err = s.lanes.open(ctx, w, tx.alone, writes, questions)
	} else {
		l, err = s.connect(ctx, w)
	}
	waited := time.Since(started)
	if m, ok := l.(memberLink); ok { // who may have his turn when the group has made its move
		waited = m.group.started.Sub(started)
	}
	s.usage.waiting.Add(int64(waited))
	if err != nil {
		s.line.leave()
		s.usage.none.Add(1)
		return nil, err
	}
	return linedLink{watching.over(l), s.line}, nil
}

// linedLink counts as at work until its end.
type linedLink struct {
	link
	line *line
}

func (l linedLink) end() {
	l.link.end()
	l.line.leave()
}

// connect takes a connection, and counts it until its end. Those who share it have been let go by open before, and wait here.
func (s *Store) connect(ctx context.Context, w way) (link, error) {
	started := time.Now()
	l, err := s.engine.open(ctx, w)
	s.usage.waiting.Add(int64(w.together) * int64(time.Since(started)))
	if err != nil {
		s.usage.none.Add(int64(w.together))
		return nil, err
	}
	s.usage.got.Add(1)
	s.usage.inUse.Add(1)
	return countedLink{l, &s.usage}, nil
}

type countedLink struct {
	link
	usage *usage
}

func (l countedLink) end() {
	l.link.end()
	l.usage.inUse.Add(-1)
}
