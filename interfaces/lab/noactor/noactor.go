// Package noactor keeps a record per key, whoever sends it. A key that a stranger has seen, or has happened to choose,
// opens its owner's answer to him.
package noactor

import (
	"time"

	"kakutei/interfaces/lab/world"
)

// Shop is the design.
type Shop struct {
	orders  world.Orders
	records map[string]record // WRONG: by the key alone
}

type record struct {
	fingerprint string
	holder      string
	ends        time.Time // of the holder's lease
	answer      world.Answer
}

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders, records: map[string]record{}} }

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
	charge := p.Charge(r.Order + ":1")
	p.Commit(func() world.Step {
		held := s.records[r.Key]
		if held.holder != p.Name {
			answer = world.TryAgain
			return world.Fenced
		}
		answer = s.orders.Pay(r.Order, charge)
		held.answer = answer
		s.records[r.Key] = held
		return world.PaidWithAnswer
	})
	return answer
}

func (s *Shop) claim(p *world.Process, r world.Request) (answer world.Answer, mine bool, done world.Step) {
	stands, found := s.records[r.Key]
	switch {
	case found && stands.fingerprint != r.Fingerprint():
		return world.KeyReused, false, world.KeyMismatch
	case found && stands.answer.Status != 0:
		return stands.answer, false, world.AnswerFound // WRONG: given to whoever asks, before anybody asks whose order it is
	case found && p.Now().Before(stands.ends):
		return world.InProgress, false, world.KeyBusy
	}
	if refusal, refused := s.orders.Refusal(r); refused {
		return refusal, false, world.OrderRefuses
	}
	if o := s.orders[r.Order]; o.Status == world.Paid {
		return o.Receipt(), false, world.OrderPaidAlready
	}
	done = world.KeyClaimed
	if found {
		done = world.KeyTakenOver
	}
	s.records[r.Key] = record{fingerprint: r.Fingerprint(), holder: p.Name, ends: p.Now().Add(world.Lease)}
	return answer, true, done
}
