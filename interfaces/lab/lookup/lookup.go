// Package lookup looks the key up, and then acts. Between the two there is room for everybody who looked before anybody
// had acted.
package lookup

import "kakutei/interfaces/lab/world"

// Shop is the design.
type Shop struct {
	orders  world.Orders
	answers map[scope]answered
}

type scope struct{ actor, key string }

type answered struct {
	fingerprint string
	answer      world.Answer
}

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders, answers: map[scope]answered{}} }

// Confirm answers from memory what it remembers, and charges for everything else.
func (s *Shop) Confirm(p *world.Process, r world.Request) (answer world.Answer) {
	known := false
	p.Commit(func() world.Step {
		answer, known = s.find(r) // WRONG: the look leaves no trace, so the next one finds nothing either
		switch {
		case known && answer == world.KeyReused:
			return world.KeyMismatch
		case known:
			return world.AnswerFound
		}
		if answer, known = s.orders.Refusal(r); known {
			return world.OrderRefuses
		}
		return world.KeyUnknown
	})
	if known {
		return answer
	}
	charge := p.Charge("")
	p.Commit(func() world.Step {
		answer = s.orders.Pay(r.Order, charge)
		s.answers[scope{r.Actor, r.Key}] = answered{r.Fingerprint(), answer} // WRONG: the first trace comes after the money
		return world.PaidWithAnswer
	})
	return answer
}

func (s *Shop) find(r world.Request) (world.Answer, bool) {
	before, found := s.answers[scope{r.Actor, r.Key}]
	if found && before.fingerprint != r.Fingerprint() {
		return world.KeyReused, true
	}
	return before.answer, found
}
