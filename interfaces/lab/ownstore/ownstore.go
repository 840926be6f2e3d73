// Package ownstore keeps the keys in a store of their own: a record per operation, actor and key, with what was asked, who
// holds it, and the answer. It knows no order, and is swept when nobody can come back any more.
package ownstore

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"kakutei/interfaces/lab/world"
)

// Retention is how long an answer is kept.
const Retention = 24 * time.Hour

// Shop is the place.
type Shop struct {
	orders  world.Orders
	numbers map[string]int // of each order's last attempt
	records map[scope]record
}

type scope struct {
	operation  world.Operation
	actor, key string
}

type record struct {
	fingerprint string
	holder      string
	ends        time.Time // of the lease, then of the retention
	answer      world.Answer
}

// New is the place over the shop's orders.
func New(orders world.Orders) *Shop {
	return &Shop{orders: orders, numbers: map[string]int{}, records: map[scope]record{}}
}

// Serve runs any operation under its record.
func (s *Shop) Serve(p *world.Process, r world.Request) (answer world.Answer) {
	name, mine, due, gatewayKey := scope{r.Operation, r.Actor, r.Key}, false, false, ""
	p.Commit(func() (done world.Step) {
		answer, mine, done = s.claim(p, r, name)
		if !mine {
			return done
		}
		if answer, due = s.begin(r, done == world.KeyTakenOver); !due {
			done = s.settle(p, name, answer)
		}
		gatewayKey = fmt.Sprintf("%s:%d", r.Order, s.numbers[r.Order])
		return done
	})
	if !due {
		return answer
	}
	line := p.Ask(gatewayKey)
	p.Commit(func() world.Step {
		if s.records[name].holder != p.Name {
			answer = world.TryAgain
			return world.Fenced
		}
		answer = s.finish(r, line)
		return s.settle(p, name, answer)
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
	s.records[name] = record{r.Fingerprint(), p.Name, p.Now().Add(world.Lease), answer}
	if found {
		return answer, true, world.KeyTakenOver
	}
	return answer, true, world.KeyClaimed
}

// settle puts the answer on record. What the client shall send again is no answer: it leaves no record.
func (s *Shop) settle(p *world.Process, name scope, answer world.Answer) world.Step {
	if answer.Again {
		delete(s.records, name)
		return world.PaymentRuns
	}
	held := s.records[name]
	held.answer, held.ends = answer, p.Now().Add(Retention)
	s.records[name] = held
	if answer.Status == http.StatusOK && name.operation == world.Confirm {
		return world.PaidWithAnswer
	}
	return world.DecidedWithAnswer
}

// begin is the operation itself, which knows nothing of keys: its answer, or that a charge is due. A request that was
// begun before finds the attempt that it has left.
func (s *Shop) begin(r world.Request, before bool) (answer world.Answer, due bool) {
	o := s.orders[r.Order]
	switch {
	case o.Customer != r.Actor:
		return world.NotFound, false
	case r.Operation == world.Cancel && o.Status == world.Placed:
		s.orders.Set(r.Order, world.Cancelled)
		return s.orders[r.Order].View(), false
	case o.Status == world.Pending && !before:
		return world.InProgress, false
	case r.Operation == world.Cancel, o.Status == world.Cancelled:
		return world.WrongState, false
	case o.Total != r.Amount:
		return world.AmountDiffers, false
	case o.Status == world.Paid:
		return o.Receipt(), false
	case o.Status == world.Placed:
		s.numbers[r.Order]++
		s.orders.Set(r.Order, world.Pending)
	}
	return answer, true
}

func (s *Shop) finish(r world.Request, line world.Line) world.Answer {
	if line.Declined {
		s.orders.Set(r.Order, world.Placed)
		return world.NoMoney
	}
	return s.orders.Pay(r.Order, line.Charge)
}

// Size is what the keys take: a row for each, beside the order.
func (s *Shop) Size(order string) world.Size {
	stored, _ := json.Marshal(s.orders[order]) // texts and numbers
	return world.Size{OrderBytes: len(stored), Rows: len(s.records)}
}

// Sweep takes away what is past its retention.
func (s *Shop) Sweep(now time.Time) {
	for name, r := range s.records {
		if r.answer.Status != 0 && !now.Before(r.ends) {
			delete(s.records, name)
		}
	}
}
