// Package inorder keeps the keys in the order: a list of those that it has processed, inside the aggregate. What was done
// under a key, and what was answered, the list does not say.
package inorder

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"kakutei/interfaces/lab/world"
)

// Shop is the place.
type Shop struct{ rows map[string]row }

type row struct {
	world.Order
	Declines  int
	Processed []string // grows with every key, and is read and written with every change of the order
}

// New is the place over the shop's orders.
func New(orders world.Orders) *Shop {
	s := &Shop{rows: map[string]row{}}
	for id, o := range orders {
		s.rows[id] = row{Order: o}
	}
	return s
}

// Serve confirms and cancels.
func (s *Shop) Serve(p *world.Process, r world.Request) (answer world.Answer) {
	var o row
	var due bool
	p.Commit(func() (done world.Step) {
		o, answer, due, done = s.begin(r)
		return done
	})
	if !due {
		return answer
	}
	attempt := o.Declines + 1
	line := p.Ask(fmt.Sprintf("%s:%d", r.Order, attempt))
	p.Commit(func() (done world.Step) {
		answer, done = s.finish(r.Order, attempt, line)
		return done
	})
	return answer
}

func (s *Shop) begin(r world.Request) (o row, answer world.Answer, due bool, done world.Step) {
	o = s.rows[r.Order]
	repeat := slices.Contains(o.Processed, r.Key)
	switch {
	case o.Customer != r.Actor:
		return o, world.NotFound, false, world.OrderRefuses
	case repeat && o.Status == world.Pending:
		return o, answer, true, world.KeyProcessed
	case repeat: // whatever was asked and answered under this key, there is only the order to answer with
		return o, o.View(), false, world.KeyProcessed
	case o.Status == world.Pending:
		return o, world.InProgress, false, world.PaymentRuns
	case r.Operation == world.Cancel && o.Status == world.Placed:
		o.Status, done = world.Cancelled, world.OrderCancelled
	case o.Status == world.Cancelled, r.Operation == world.Cancel:
		return o, world.WrongState, false, world.OrderRefuses
	case o.Total != r.Amount:
		return o, world.AmountDiffers, false, world.OrderRefuses
	case o.Status == world.Placed:
		o.Status, due, done = world.Pending, true, world.KeyClaimed
	default:
		done = world.OrderPaidAlready
	}
	o.Processed = append(o.Processed, r.Key)
	s.rows[r.Order] = o
	return o, o.View(), due, done
}

func (s *Shop) finish(id string, attempt int, line world.Line) (world.Answer, world.Step) {
	o := s.rows[id]
	switch {
	case o.Status != world.Pending || o.Declines+1 != attempt: // another repeat was here first
		return o.View(), world.OrderPaidAlready
	case line.Declined:
		o.Status, o.Declines = world.Placed, attempt
		s.rows[id] = o
		return world.NoMoney, world.OrderDeclined
	default:
		o.Status, o.Charge = world.Paid, line.Charge
		s.rows[id] = o
		return o.View(), world.OrderPaid
	}
}

// Size is what the keys take: here it is the order that grows.
func (s *Shop) Size(order string) world.Size {
	stored, _ := json.Marshal(s.rows[order]) // texts and numbers
	return world.Size{OrderBytes: len(stored)}
}

// Sweep can take nothing away: the list does not say how old a key is, and whose key is gone is charged again.
func (s *Shop) Sweep(time.Time) {}
