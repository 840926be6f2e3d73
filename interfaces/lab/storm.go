package lab

import (
	"time"

	"kakutei/interfaces/lab/world"
)

// Storm is one interleaving: who sends what, and how far each process comes before another one's turn.
type Storm struct {
	Name string
	play func(w *world.World)
}

// The orders of every storm. The second one is for a key that is used again.
var (
	first  = world.Order{ID: "01900000-0000-7000-8000-000000000001", Name: "order-1", Customer: "alice", Total: 1000, Status: world.Placed}
	second = world.Order{ID: "01900000-0000-7000-8000-000000000002", Name: "order-2", Customer: "alice", Total: 2500, Status: world.Placed}
)

// pay is alice's request for her first order's payment.
var pay = world.Request{Actor: "alice", Key: "key-1", Order: first.ID, Amount: first.Total}

// whileLater is longer than any lease.
const whileLater = world.Lease + time.Second

// Storms are what every design goes through. Each names the least that makes a fault show.
var Storms = []Storm{
	{"double_click", func(w *world.World) {
		a, b := w.Send(pay), w.Send(pay)
		a.Until(world.Asking)
		b.Finish()
		a.Finish()
		insist(w, pay)
	}},
	{"lost_answer", func(w *world.World) {
		w.Send(pay).FinishUnheard()
		insist(w, pay)
	}},
	{"crash_after_charge", func(w *world.World) {
		a := w.Send(pay)
		a.Until(world.Taken)
		a.Kill()
		insist(w, pay)
	}},
	{"crash_after_commit", func(w *world.World) {
		a := w.Send(pay)
		a.Until(world.Worked)
		a.Kill()
		insist(w, pay)
	}},
	{"slow_holder", func(w *world.World) {
		a := w.Send(pay)
		a.Until(world.Asking)
		w.Pass(whileLater)
		w.Send(pay).Finish()
		a.Finish()
		insist(w, pay)
	}},
	{"new_key", func(w *world.World) {
		again := pay
		again.Key = "key-2"
		w.Send(pay).FinishUnheard()
		insist(w, again)
	}},
	{"key_reused", func(w *world.World) {
		other := pay
		other.Order, other.Amount = second.ID, second.Total
		w.Send(pay).Finish()
		insist(w, other)
	}},
	{"stranger", func(w *world.World) {
		seen := pay
		seen.Actor = "mallory"
		w.Send(pay).Finish()
		insist(w, seen)
	}},
}

// tries is how often a client comes again at most.
const tries = 4

// insist is what a client does that has got no answer yet: it sends the request, and the same again as long as it is told
// to. One that has its answer sends nothing.
func insist(w *world.World, r world.Request) {
	for _, told := range w.Told() {
		if told.Request == r && !told.Answer.Again {
			return
		}
	}
	for range tries {
		if !w.Send(r).Finish().Again {
			return
		}
		w.Pass(whileLater)
	}
}
