// Package nofence takes over whatever claim is old enough, and gives the holder nothing that could be taken from him. A
// holder who was only slow comes back and goes on, beside the one who took over.
package nofence

import (
	"time"

	"kakutei/interfaces/lab/world"
)

// Shop is the design.
type Shop struct {
	orders world.Orders
	claims map[scope]claim
}

type scope struct{ actor, key string }

type claim struct { // WRONG: it does not say whose it is
	fingerprint string
	since       time.Time
	answer      world.Answer
}

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders, claims: map[scope]claim{}} }

// Confirm charges once per claim.
func (s *Shop) Confirm(p *world.Process, r world.Request) (answer world.Answer) {
	mine := false
	p.Commit(func() (done world.Step) {
		answer, mine, done = s.claim(p, r)
		return done
	})
	if !mine {
		return answer
	}
	charge := p.Charge("") // WRONG: who has slept until here does not know it, and the provider cannot tell either
	p.Commit(func() world.Step {
		held := s.claims[scope{r.Actor, r.Key}] // WRONG: by its name, whoever holds it by now
		answer = s.orders.Pay(r.Order, charge)
		held.answer = answer
		s.claims[scope{r.Actor, r.Key}] = held
		return world.PaidWithAnswer
	})
	return answer
}

func (s *Shop) claim(p *world.Process, r world.Request) (answer world.Answer, mine bool, done world.Step) {
	stands, found := s.claims[scope{r.Actor, r.Key}]
	switch {
	case found && stands.fingerprint != r.Fingerprint():
		return world.KeyReused, false, world.KeyMismatch
	case found && stands.answer.Status != 0:
		return stands.answer, false, world.AnswerFound
	case found && p.Now().Before(stands.since.Add(world.Lease)):
		return world.InProgress, false, world.KeyBusy
	}
	if refusal, refused := s.orders.Refusal(r); refused {
		return refusal, false, world.OrderRefuses
	}
	done = world.KeyClaimed
	if found {
		done = world.KeyTakenOver
	}
	s.claims[scope{r.Actor, r.Key}] = claim{fingerprint: r.Fingerprint(), since: p.Now()}
	return answer, true, done
}
