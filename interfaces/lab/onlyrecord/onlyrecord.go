// Package onlyrecord has all of a record, and passes its key on to the provider. Nobody asks the order. A page that makes
// a new key after an error, or is loaded again, has a new record and a new charge for the same order.
package onlyrecord

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

// Confirm charges once per key.
func (s *Shop) Confirm(p *world.Process, r world.Request) (answer world.Answer) {
	mine := false
	p.Commit(func() (done world.Step) {
		answer, mine, done = s.claim(p, r)
		return done
	})
	if !mine {
		return answer
	}
	charge := p.Charge(r.Actor + ":" + r.Key) // WRONG: the charge is named after the request, not after what is paid
	p.Commit(func() world.Step {
		held := s.records[scope{r.Actor, r.Key}]
		if held.holder != p.Name {
			answer = world.TryAgain
			return world.Fenced
		}
		answer = s.orders.Pay(r.Order, charge)
		held.answer = answer
		s.records[scope{r.Actor, r.Key}] = held
		return world.PaidWithAnswer
	})
	return answer
}

func (s *Shop) claim(p *world.Process, r world.Request) (answer world.Answer, mine bool, done world.Step) {
	stands, found := s.records[scope{r.Actor, r.Key}]
	switch {
	case found && stands.fingerprint != r.Fingerprint():
		return world.KeyReused, false, world.KeyMismatch
	case found && stands.answer.Status != 0:
		return stands.answer, false, world.AnswerFound
	case found && p.Now().Before(stands.ends):
		return world.InProgress, false, world.KeyBusy
	}
	if refusal, refused := s.orders.Refusal(r); refused { // WRONG: whether it is paid already is not asked
		return refusal, false, world.OrderRefuses
	}
	done = world.KeyClaimed
	if found {
		done = world.KeyTakenOver
	}
	s.records[scope{r.Actor, r.Key}] = record{r.Fingerprint(), p.Name, p.Now().Add(world.Lease), answer}
	return answer, true, done
}
