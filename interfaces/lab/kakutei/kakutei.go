// Package kakutei puts the service's own use case into the lab's world: the executor, the order and the charge are those
// that customers meet, on a store that is handed in; only provider and clock are the world's.
package kakutei

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/lab/world"
)

// NewStore opens an empty store whose time is the clock's.
type NewStore func(clock func() time.Time) port.UnitOfWork

// The lab's lease is the world's. The call's own limit is the real clock's, on which nothing here depends.
var times = idempotent.Config{
	Lease: world.Lease, Retention: 24 * time.Hour, CallTimeout: world.Lease - time.Second, LockTimeout: 10 * time.Second,
}

// Shop is the service in a world.
type Shop struct{ till *checkout.Till }

// New puts the world's orders into a fresh store. Error: the store's.
func New(w *world.World, open NewStore) (*Shop, error) {
	store := open(w.Now)
	for _, o := range w.Orders {
		if err := add(store, o, w.Now()); err != nil {
			return nil, err
		}
	}
	work, times := mortal{store}, times
	times.Now = w.Now
	return &Shop{till: &checkout.Till{
		Executor: idempotent.New(work, httpapi.Documents{}, observer{}, times),
		Work:     work, Gateway: gateway{w}, Provider: "lab", Observer: observer{},
		KeyRetention: 24 * time.Hour, Lease: times.Lease,
		Books: checkout.Books{Company: "lab", Zone: time.UTC},
	}}, nil
}

func add(store port.UnitOfWork, o world.Order, now time.Time) error {
	ctx := context.Background()
	total := money.Of(o.Total, money.JPY)
	placed := order.Rehydrate(order.State{
		ID: order.ID(o.ID), Customer: o.Customer, Status: order.Placed, Total: total, PlacedAt: now,
		Lines: []order.Line{{SKU: "tea", Name: "煎茶", Quantity: 1, UnitPrice: o.Total}},
	})
	return store.Do(ctx, port.Fully, func(tx port.Tx) error { return tx.Orders().Add(ctx, placed) })
}

// Confirm has the use case answer, as the HTTP edge does.
func (s *Shop) Confirm(p *world.Process, r world.Request) world.Answer {
	answer, err := s.till.ConfirmPayment(within(p), checkout.ConfirmPayment{
		Customer: r.Actor, Key: idempotency.Key(r.Key), OrderID: r.Order, Money: money.Of(r.Amount, money.JPY),
	})
	if err != nil {
		f, ok := fault.From(err)
		if !ok {
			panic(err) // the executor's errors are faults
		}
		document, err := httpapi.Documents{}.Problem(f)
		if err != nil {
			panic(err)
		}
		return read(document, f.Advice() == fault.SameKey)
	}
	return read(answer.Document, false)
}

// read makes a document into the world's answer: a receipt is 200, a problem says its status and code.
func read(document []byte, again bool) world.Answer {
	said := struct {
		Status any
		Code   string
	}{}
	if err := json.Unmarshal(document, &said); err != nil {
		panic(err)
	}
	if status, isProblem := said.Status.(float64); isProblem {
		return world.Answer{Status: int(status), Body: said.Code, Again: again}
	}
	var receipt checkout.Receipt
	if err := json.Unmarshal(document, &receipt); err != nil {
		panic(err)
	}
	return world.Answer{Status: http.StatusOK, Body: fmt.Sprintf("%s %s %d, %s",
		receipt.Status, receipt.OrderID, receipt.Amount, receipt.PaidAt.Format(time.TimeOnly))}
}

// A process is its context's: the executor keeps a context's values, whatever else it changes about it.
type processKey struct{}

func within(p *world.Process) context.Context {
	return context.WithValue(context.Background(), processKey{}, p)
}

func processOf(ctx context.Context) *world.Process {
	p, _ := ctx.Value(processKey{}).(*world.Process)
	return p
}

// mortal is the store as a process reaches it: one that has died does not.
type mortal struct{ port.UnitOfWork }

func (m mortal) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	if processOf(ctx).Dead() {
		return port.ErrUnavailable
	}
	return m.UnitOfWork.Do(ctx, wait, fn)
}

// gateway is the world's provider behind the service's port.
type gateway struct{ world *world.World }

func (g gateway) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	line := processOf(ctx).AskFor(a.OrderID, a.Money.Units(), a.GatewayKey())
	if line.Declined {
		return payment.Decline{Code: "card_declined"}, nil
	}
	return payment.Charge{ID: line.Charge, Money: a.Money, ChargedAt: g.world.Now()}, nil
}

func (g gateway) Lookup(_ context.Context, orderID string) ([]payment.Booking, error) {
	var list []payment.Booking
	for i, line := range g.world.Provider.Book {
		if line.Order == orderID && !line.Declined {
			list = append(list, payment.Booking{
				OrderID: orderID, Attempt: i + 1, GatewayKey: line.Key,
				Answer: payment.Charge{ID: line.Charge, Money: money.Of(line.Amount, money.JPY), ChargedAt: g.world.Now()},
			})
		}
	}
	return list, nil
}

// observer puts what happens into the timeline: it is told when a transaction has ended, on the process's own goroutine.
type observer struct{}

func (observer) Observe(ctx context.Context, e port.Event) {
	p := processOf(ctx)
	if p.Dead() || e.What == port.Called {
		return
	}
	p.Note(Step(e.What), "")
	if e.What == port.Completed && e.Refusal == "" {
		p.Reach(world.Worked)
	}
}

// Step is how the timeline names what the executor's observer is told.
func Step(what port.Happening) world.Step { return world.Step("kakutei_" + what) }
