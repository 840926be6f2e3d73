// Package world is what the lab's designs live in: a clock that is set, a provider with a book, a table of orders, and
// processes that run one at a time, as far as somebody lets them. So an interleaving happens the same way every time.
package world

import (
	"fmt"
	"strings"
	"time"
)

// Lease is how long a design lets a holder keep a key before others may take it over.
const Lease = time.Minute

// World is one experiment. It is not for use by several goroutines: its processes take turns.
type World struct {
	Orders   Orders
	Provider *Provider

	now       time.Time
	service   Service
	processes []*Process
	timeline  []Event
	told      []Told
	names     *strings.Replacer
}

// Service is a design: it answers one request, and may be running several times at once.
type Service func(p *Process, r Request) Answer

// New is a world with these orders, a provider that has charged nothing, and no service yet.
func New(orders ...Order) *World {
	w := &World{
		Orders: Orders{}, Provider: &Provider{keys: map[string]Line{}}, names: strings.NewReplacer(),
		now: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
	}
	var names []string
	for _, o := range orders {
		w.Orders[o.ID] = o
		names = append(names, o.ID, o.Name)
	}
	w.names = strings.NewReplacer(names...)
	return w
}

// Serve says which design answers from now on.
func (w *World) Serve(s Service) { w.service = s }

// Now is the one clock of the world.
func (w *World) Now() time.Time { return w.now }

// Pass lets time pass, and nothing else.
func (w *World) Pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.timeline = append(w.timeline, Event{Lane: Clock, What: TimePasses, Detail: fmt.Sprintf("%.0f s", d.Seconds())})
}

// Timeline is what has happened, in order.
func (w *World) Timeline() []Event { return w.timeline }

// Told is what clients have been told, in order. A lost answer is not among it.
func (w *World) Told() []Told { return w.told }

// Told is an answer that has reached its client.
type Told struct {
	Request Request
	Answer  Answer
}

// Lane is whose part of the timeline an event belongs to.
type Lane string

// The lanes, from left to right.
const (
	Client  Lane = "client"
	Shop    Lane = "service"
	Gateway Lane = "provider"
	Clock   Lane = "clock"
)

// Event is a line of the timeline.
type Event struct {
	Process string // "A" for the first request that was sent; empty for the clock
	Lane    Lane
	What    Step
	Detail  string // what stands beside the step's text: a key, an amount, a status
}

func (w *World) note(process string, lane Lane, what Step, detail string) {
	w.timeline = append(w.timeline, Event{Process: process, Lane: lane, What: what, Detail: w.names.Replace(detail)})
}
