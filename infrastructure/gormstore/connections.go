package gormstore

import (
	"context"
	"sync/atomic"
	"time"

	"kakutei/application/port"
)

// Connections is how a store's connections stand.
type Connections struct {
	Max      int // at most, SQLite's writer among them
	InUse    int // on which a transaction is open
	Acquired int64
	Refused  int64         // transactions that got none in time
	Waited   time.Duration // for all of them, SQLite's turns to write included
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

// open takes a connection, and counts it until its end.
func (s *Store) open(ctx context.Context, wait port.Wait, readOnly bool) (link, error) {
	started := time.Now()
	s.line.join(started)
	l, err := s.engine.open(ctx, wait, readOnly)
	s.usage.waiting.Add(int64(time.Since(started)))
	if err != nil {
		s.line.leave()
		s.usage.none.Add(1)
		return nil, err
	}
	s.usage.got.Add(1)
	s.usage.inUse.Add(1)
	return countedLink{s.watched(ctx, l), &s.usage, s.line}, nil
}

type countedLink struct {
	link
	usage *usage
	line  *line
}

func (l countedLink) end() {
	l.link.end()
	l.usage.inUse.Add(-1)
	l.line.leave()
}
