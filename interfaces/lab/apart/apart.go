// Package apart stores the answer after the work, in a transaction or even a store of its own, as a layer around the
// handlers does. A process that dies between the two has worked, and nobody knows.
package apart

import (
	"time"

	"kakutei/interfaces/lab/world"
)

// Shop is the design.
type Shop struct {
	orders  world.Orders
	records map[scope]record
}

type scope struct{ actor, key string }

type record struct {
	fingerprint string
	holder      string
	ends        time.Time // of the holder's lease
	answer      world.Answer
}

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders, records: map[scope]record{}} }

// Confirm wraps the work.
func (s *Shop) Confirm(p *world.Process, r world.Request) (answer world.Answer) {
	mine, name := false, scope{r.Actor, r.Key}
	p.Commit(func() (done world.Step) {
		answer, mine, done = s.claim(p, r, name)
		return done
	})
	if !mine {
		return answer
	}
	answer = s.work(p, r)
	p.Commit(func() world.Step { // WRONG: a second commit, to which the process may not come
		if held := s.records[name]; held.holder == p.Name {
			held.answer = answer
			s.records[name] = held
		}
		return world.AnswerStored
	})
	return answer
}

func (s *Shop) work(p *world.Process, r world.Request) (answer world.Answer) {
	charge := p.Charge("")
	p.Commit(func() world.Step {
		answer = s.orders.Pay(r.Order, charge) // WRONG: the work is done, and the record still says that it is not
		return world.OrderPaid
	})
	return answer
}

func (s *Shop) claim(p *world.Process, r world.Request, name scope) (answer world.Answer, mine bool, done world.Step) {
	stands, found := s.records[name]
	switch {
	case found && stands.fingerprint != r.Fingerprint():
		return world.KeyReused, false, world.KeyMismatch
	case found && stands.answer.Status != 0:
		return stands.answer, false, world.AnswerFound
	case found && p.Now().Before(stands.ends):
		return world.InProgress, false, world.KeyBusy
	}
	if refusal, refused := s.orders.Refusal(r); refused {
		return refusal, false, world.OrderRefuses
	}
	done = world.KeyClaimed
	if found {
		done = world.KeyTakenOver
	}
	s.records[name] = record{fingerprint: r.Fingerprint(), holder: p.Name, ends: p.Now().Add(world.Lease)}
	return answer, true, done
}
