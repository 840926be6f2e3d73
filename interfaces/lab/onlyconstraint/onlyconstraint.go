// Package onlyconstraint trusts the database: a payment is a row, and an order can have one. The constraint holds, for
// rows. It says nothing to the provider.
package onlyconstraint

import "kakutei/interfaces/lab/world"

// Shop is the design.
type Shop struct {
	orders   world.Orders
	payments map[string]string // charge by order: PRIMARY KEY (order_id)
}

// New is the design over the shop's orders.
func New(orders world.Orders) *Shop { return &Shop{orders: orders, payments: map[string]string{}} }

// Confirm charges, and then inserts the payment.
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
	charge := p.Charge("") // WRONG: before the row that would have said no
	p.Commit(func() world.Step {
		if _, exists := s.payments[r.Order]; exists { // WRONG: one payment in the table, two in the provider's book
			answer = world.Conflict
			return world.PaymentExists
		}
		s.payments[r.Order] = charge
		answer = s.orders.Pay(r.Order, charge)
		return world.OrderPaid
	})
	return answer
}
