// Package live passes on what happens to a customer's records to whoever is looking: the page's live view. It is told
// by the executor and never asks a table what is new.
package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"kakutei/application/checkout"
	"kakutei/application/port"
)

const (
	// MaxStreams is how many can look at the same time.
	MaxStreams = 64
	// backlog is how many moments may wait for somebody to look. Who is slower is dropped, and may come again.
	backlog = 64
	// maxOrders is how many orders a stream remembers as its customer's.
	maxOrders = 256
)

var (
	// ErrFull says that MaxStreams are open.
	ErrFull = errors.New("live: as many as can look do")
	// ErrClosed says that the service is about to end.
	ErrClosed = errors.New("live: closed")
)

// Feed is a port.Observer. Nobody who works waits for it, and while nobody looks it does nothing at all.
type Feed struct {
	clock   func() time.Time
	looking atomic.Int32

	mu      sync.Mutex
	streams map[*Stream]struct{}
	closed  bool
}

var _ port.Observer = (*Feed)(nil)

// NewFeed makes a feed. Its clock dates the moments.
func NewFeed(clock func() time.Time) *Feed {
	return &Feed{clock: clock, streams: map[*Stream]struct{}{}}
}

// Observe implements port.Observer.
func (f *Feed) Observe(_ context.Context, e port.Event) {
	if f.looking.Load() == 0 {
		return
	}
	at := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		if s.actor == e.Scope.Actor {
			f.offer(s, Moment{At: at, Event: e, OrderID: s.orderOf(e)})
		}
	}
}

// Booked tells that the provider has written something about the order into its book.
func (f *Feed) Booked(orderID string) {
	if f.looking.Load() == 0 {
		return
	}
	at := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		if s.orders[orderID] {
			f.offer(s, Moment{At: at, OrderID: orderID})
		}
	}
}

// offer gives a stream the next moment, or drops the stream: a gap would show what never was.
func (f *Feed) offer(s *Stream, m Moment) {
	select {
	case s.moments <- m:
	default:
		f.drop(s)
	}
}

// drop ends a stream behind what it has already.
func (f *Feed) drop(s *Stream) {
	if _, open := f.streams[s]; open {
		delete(f.streams, s)
		close(s.moments)
		f.looking.Store(int32(len(f.streams))) //nolint:gosec // MaxStreams at most
	}
}

// Close ends all streams; from now on nobody can look.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for s := range f.streams {
		f.drop(s)
	}
}

// Look opens a stream of what happens to the actor's records from now on. Errors: ErrFull, ErrClosed.
func (f *Feed) Look(actor string) (*Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case len(f.streams) >= MaxStreams:
		return nil, ErrFull
	}
	s := &Stream{feed: f, actor: actor, moments: make(chan Moment, backlog), orders: map[string]bool{}}
	f.streams[s] = struct{}{}
	f.looking.Store(int32(len(f.streams))) //nolint:gosec // MaxStreams at most
	return s, nil
}

// Moment is something that happened: to a record, or, with no event, in the provider's book.
type Moment struct {
	At      time.Time // by this service's clock
	Event   port.Event
	OrderID string // empty where it is not known
}

// Stream is what one onlooker gets to see.
type Stream struct {
	feed    *Feed
	actor   string
	moments chan Moment
	orders  map[string]bool // of this actor; guarded by the feed
}

// Moments come in their order. The channel is closed when the onlooker was too slow, and when the service ends.
func (s *Stream) Moments() <-chan Moment { return s.moments }

// End is when nobody looks any more. It may come twice.
func (s *Stream) End() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.drop(s)
}

// orderOf is the order that is being paid, which the stream remembers for what the provider will say.
func (s *Stream) orderOf(e port.Event) string {
	id := checkout.OrderOf(e.Record)
	if id == "" {
		return ""
	}
	if len(s.orders) >= maxOrders {
		clear(s.orders)
	}
	s.orders[id] = true
	return id
}
