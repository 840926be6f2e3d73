// Package inattempt makes the key a required part of the payment attempt, its natural key. The attempt says what was asked
// and what came of it. What is no payment has no attempt.
package inattempt

import (
	"encoding/json"
	"fmt"
	"time"

	"kakutei/interfaces/lab/world"
)

// Shop is the place.
type Shop struct {
	orders   world.Orders
	attempts map[natural]attempt // PRIMARY KEY (order_id, idempotency_key)
	numbers  map[string]int      // of each order's last attempt
}

type natural struct{ order, key string }

type attempt struct {
	amount  int64
	number  int
	outcome world.Answer // without a status while it runs
}

// New is the place over the shop's orders.
func New(orders world.Orders) *Shop {
	return &Shop{orders: orders, attempts: map[natural]attempt{}, numbers: map[string]int{}}
}

// Serve confirms and cancels.
func (s *Shop) Serve(p *world.Process, r world.Request) (answer world.Answer) {
	if r.Operation == world.Cancel {
		p.Commit(func() (done world.Step) {
			answer, done = s.cancel(r)
			return done
		})
		return answer
	}
	var a attempt
	var due bool
	p.Commit(func() (done world.Step) {
		a, due, done = s.begin(r)
		return done
	})
	if !due {
		return a.outcome
	}
	line := p.Ask(fmt.Sprintf("%s:%d", r.Order, a.number))
	p.Commit(func() (done world.Step) {
		answer, done = s.finish(r, line)
		return done
	})
	return answer
}

func (s *Shop) begin(r world.Request) (a attempt, due bool, done world.Step) {
	o := s.orders[r.Order]
	a, repeat := s.attempts[natural{r.Order, r.Key}]
	refuse := func(with world.Answer, done world.Step) (attempt, bool, world.Step) {
		return attempt{outcome: with}, false, done
	}
	switch {
	case o.Customer != r.Actor:
		return refuse(world.NotFound, world.OrderRefuses)
	case repeat && a.amount != r.Amount:
		return refuse(world.KeyReused, world.KeyMismatch)
	case repeat:
		return a, a.outcome.Status == 0, world.KeyProcessed
	case o.Status == world.Pending:
		return refuse(world.InProgress, world.PaymentRuns)
	case o.Status == world.Cancelled:
		return refuse(world.WrongState, world.OrderRefuses)
	case o.Total != r.Amount:
		return refuse(world.AmountDiffers, world.OrderRefuses)
	case o.Status == world.Paid:
		return refuse(o.Receipt(), world.OrderPaidAlready)
	}
	s.numbers[r.Order]++
	a = attempt{amount: r.Amount, number: s.numbers[r.Order]}
	s.attempts[natural{r.Order, r.Key}] = a
	s.orders.Set(r.Order, world.Pending)
	return a, true, world.PaymentBegun
}

func (s *Shop) finish(r world.Request, line world.Line) (world.Answer, world.Step) {
	a := s.attempts[natural{r.Order, r.Key}]
	if a.outcome.Status != 0 { // another repeat was here first
		return a.outcome, world.AnswerFound
	}
	done := world.PaidWithAnswer
	if line.Declined {
		s.orders.Set(r.Order, world.Placed)
		a.outcome, done = world.NoMoney, world.OrderDeclined
	} else {
		a.outcome = s.orders.Pay(r.Order, line.Charge)
	}
	s.attempts[natural{r.Order, r.Key}] = a
	return a.outcome, done
}

// cancel has nowhere to keep its key: a repeat meets an order that is cancelled.
func (s *Shop) cancel(r world.Request) (world.Answer, world.Step) {
	o := s.orders[r.Order]
	switch {
	case o.Customer != r.Actor:
		return world.NotFound, world.OrderRefuses
	case o.Status != world.Placed:
		return world.WrongState, world.OrderRefuses
	}
	s.orders.Set(r.Order, world.Cancelled)
	return s.orders[r.Order].View(), world.OrderCancelled
}

// Size is what the keys take: a row for each attempt.
func (s *Shop) Size(order string) world.Size {
	stored, _ := json.Marshal(s.orders[order]) // texts and numbers
	return world.Size{OrderBytes: len(stored), Rows: len(s.attempts)}
}

// Sweep takes nothing away: an attempt is what the shop knows of its money, not only a key.
func (s *Shop) Sweep(time.Time) {}
