// Package onlyaggregate has the order decide alone: it is paid once, by its state and the version of its row. That keeps
// the order right, but the money is taken before the order is asked.
package onlyaggregate

import "kakutei/interfaces/lab/world"

// Shop is the design.
type Shop struct{ orders world.Orders }

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders} }

// Confirm charges an order that is not paid yet.
func (s *Shop) Confirm(p *world.Process, r world.Request) (answer world.Answer) {
	var read world.Order
	refused := false
	p.Commit(func() world.Step {
		if answer, refused = s.orders.Refusal(r); refused {
			return world.OrderRefuses
		}
		read = s.orders[r.Order] // WRONG: the order is not marked as being paid, so the next one reads the same
		if read.Status == world.Paid {
			answer, refused = world.PaidBefore, true // WRONG: a repeat is told no instead of its answer
			return world.OrderPaidAlready
		}
		return world.OrderRead
	})
	if refused {
		return answer
	}
	charge := p.Charge("")
	p.Commit(func() world.Step {
		if s.orders[r.Order].Version != read.Version { // WRONG: true, and too late: the money is gone
			answer = world.Conflict
			return world.OrderChanged
		}
		answer = s.orders.Pay(r.Order, charge)
		return world.OrderPaid
	})
	return answer
}
