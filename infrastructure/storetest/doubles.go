package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"kakutei/application/port"
	"kakutei/domain/fault"
)

// Clock is a store's time that stands still until it is told to go on.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock shows a time with all its microseconds.
func NewClock() *Clock { return &Clock{now: instant(0)} }

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Seen is an observer that remembers.
type Seen struct {
	mu     sync.Mutex
	events []port.Event
	when   map[port.Happening]func()
}

// Observe implements port.Observer.
func (s *Seen) Observe(_ context.Context, e port.Event) {
	s.mu.Lock()
	s.events = append(s.events, e)
	do := s.when[e.What]
	s.mu.Unlock()
	if do != nil {
		do()
	}
}

// When has something done each time that this happens, before the work goes on.
func (s *Seen) When(what port.Happening, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.when == nil {
		s.when = map[port.Happening]func(){}
	}
	s.when[what] = do
}

// Of are the events of one kind, in their order.
func (s *Seen) Of(what port.Happening) (found []port.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.What == what {
			found = append(found, e)
		}
	}
	return found
}

// Count is how often this happened.
func (s *Seen) Count(what port.Happening) int { return len(s.Of(what)) }

// Documents writes views as plain JSON, and a refusal as its code, its detail and its members.
type Documents struct{}

// Result implements port.Documents.
func (Documents) Result(view any) ([]byte, error) {
	document, err := json.Marshal(view)
	if err != nil {
		return nil, fmt.Errorf("storetest: write a result: %w", err)
	}
	return document, nil
}

// Problem implements port.Documents.
func (Documents) Problem(refusal *fault.Fault) ([]byte, error) {
	problem := map[string]any{"code": refusal.Code(), "detail": refusal.Detail()}
	for _, m := range refusal.Members() {
		problem[m.Name] = m.Value
	}
	document, err := json.Marshal(problem)
	if err != nil {
		return nil, fmt.Errorf("storetest: write a refusal: %w", err)
	}
	return document, nil
}
