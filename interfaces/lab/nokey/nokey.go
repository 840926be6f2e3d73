// Package nokey has no idempotency key. Each request is a new wish to pay, whether it was clicked twice or sent again
// because its answer was lost.
package nokey

import "kakutei/interfaces/lab/world"

// Shop is the design.
type Shop struct{ orders world.Orders }

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders} }

// Confirm charges whoever asks.
func (s *Shop) Confirm(p *world.Process, r world.Request) (answer world.Answer) {
	refused := false
	p.Commit(func() world.Step {
		if answer, refused = s.orders.Refusal(r); refused {
			return world.OrderRefuses
		}
		return world.OrderRead
	})
	if refused {
		return answer
	}
	charge := p.Charge("") // WRONG: nothing tells this request from its repeat, neither here nor at the provider
	p.Commit(func() world.Step {
		answer = s.orders.Pay(r.Order, charge)
		return world.OrderPaid
	})
	return answer
}
