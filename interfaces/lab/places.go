package lab

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"kakutei/interfaces/lab/inattempt"
	"kakutei/interfaces/lab/inorder"
	"kakutei/interfaces/lab/ownstore"
	"kakutei/interfaces/lab/world"
)

// place is where keys are kept.
type place interface {
	Serve(p *world.Process, r world.Request) world.Answer
	Size(order string) world.Size
	Sweep(now time.Time)
}

// Place is one of the three places for a key.
type Place struct {
	Name string // of its package
	open func(orders world.Orders) place
}

// Places are from the nearest to the order to the one that is independent of it.
var Places = []Place{
	{"inorder", func(o world.Orders) place { return inorder.New(o) }},
	{"inattempt", func(o world.Orders) place { return inattempt.New(o) }},
	{"ownstore", func(o world.Orders) place { return ownstore.New(o) }},
}

// Situation is what each place has to hold in.
type Situation struct {
	Name string
	play func(w *world.World) (held bool)
}

// Situations are the first four of five; the fifth is measured by Grown.
var Situations = []Situation{
	{"double_click", func(w *world.World) bool {
		a, b := w.Send(pay), w.Send(pay)
		a.Until(world.Asking)
		b.Finish()
		a.Finish()
		insist(w, pay)
		return w.Provider.Charges(first.ID) == 1 && len(faults(w)) == 0
	}},
	{"lost_answer", func(w *world.World) bool {
		a := w.Send(pay)
		a.FinishUnheard()
		again := w.Send(pay)
		return again.Finish() == a.Finish() && w.Provider.Charges(first.ID) == 1
	}},
	{"other_amount", func(w *world.World) bool {
		other := pay
		other.Amount *= 2
		w.Send(pay).Finish()
		return w.Send(other).Finish().Status != http.StatusOK
	}},
	{"second_operation", func(w *world.World) bool {
		cancel := pay
		cancel.Operation, cancel.Key, cancel.Amount = world.Cancel, "key-2", 0
		w.Provider.Declining = true
		paying, cancelling := w.Send(pay), w.Send(cancel)
		paying.Finish()
		cancelling.FinishUnheard()
		cancelled, paidLate := w.Send(cancel).Finish(), w.Send(pay).Finish()
		return cancelled == cancelling.Finish() && paidLate == paying.Finish()
	}},
}

// Held is what a situation has come to in a place.
type Held struct {
	Situation string
	Held      bool
	Charges   int
	Answers   []int // statuses, in the order in which the requests were sent; lost ones too
	Timeline  []world.Event
}

// Run plays the situation.
func (p Place) Run(s Situation) Held {
	w := world.New(first, second)
	defer w.Close()
	w.Serve(p.open(w.Orders).Serve)
	held := Held{Situation: s.Name, Held: s.play(w)}
	held.Charges, held.Timeline, held.Answers = w.Provider.Charges(first.ID), w.Timeline(), w.Statuses()
	return held
}

// Storm sends one of the designs' storms over the place.
func (p Place) Storm(s Storm) Run {
	run, _ := play(s, func(w *world.World) (world.Service, error) { return p.open(w.Orders).Serve, nil })
	return run
}

// Keys is how many the last situation brings.
const Keys = 10_000

// Growth is what so many keys leave behind. The place holds if the order does not grow with them.
type Growth struct {
	Before, After world.Size
	// Swept is what is left when nobody can come back any more and the place was swept.
	Swept world.Size
}

// Held tells whether one more payment costs what the first one did.
func (g Growth) Held() bool { return g.After.OrderBytes <= g.Before.OrderBytes+digits }

// digits is what a counter in the order's row may grow by.
const digits = 8

// Grown is how the places have grown, each in its turn. It is measured once: so many requests take a while, and come to
// the same each time.
var Grown = sync.OnceValue(func() (all []Growth) {
	for _, p := range Places {
		all = append(all, p.grow())
	}
	return all
})

// grow has the provider decline as many requests, each under a key of its own, and looks at what is kept.
func (p Place) grow() (g Growth) {
	w := world.New(first, second)
	defer w.Close()
	kept := p.open(w.Orders)
	w.Serve(kept.Serve)
	w.Provider.Declining = true
	r := pay
	for n := range Keys {
		r.Key = fmt.Sprintf("key-%d", n)
		w.Send(r).Finish()
		if n == 0 {
			g.Before = kept.Size(first.ID)
		}
	}
	g.After = kept.Size(first.ID)
	kept.Sweep(w.Now().Add(ownstore.Retention))
	g.Swept = kept.Size(first.ID)
	return g
}
