package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// Two customers, three orders, six keys, all operations, in any interleaving: requests stop at the provider until it is
// told what to answer, leases run out, commits lose their answers, days pass. Whatever happens, no order is charged
// twice, one key has one answer, and in the end every order stands where the provider's book says.
func TestNoInterleavingChargesTwiceOrAnswersTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := openWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"place":            w.place,
			"confirm":          w.confirm,
			"cancel":           w.cancel,
			"look up":          w.lookUp,
			"provider answers": w.providerAnswers,
			"time passes":      w.timePasses,
			"a day passes":     w.dayPasses,
			"commit is lost":   w.commitIsLost,
			"":                 w.holds,
		})
		w.settles(t)
	})
}

// world is the shop, and everything that a test can know of it from outside.
type world struct {
	shop   storetest.Shop
	shops  []storetest.Shop // it, and other instances beside it
	stage  stage
	clock  *movingClock
	orders []placedOrder

	waiting []*call // at the provider, in the order in which they came
	sent    []request
	first   map[idempotency.Scope]answered // first final answer under each key that is not forgotten yet
	meant   map[idempotency.Scope]map[string]bool
}

type placedOrder struct {
	id       order.ID
	customer string
}

type answered struct {
	meaning, document string
}

// request is one request that was sent: it can be sent again, just the same.
type request struct {
	scope   idempotency.Scope
	meaning string
	run     func() (idempotent.Answer, error)
	ended   chan struct{}
	answer  idempotent.Answer
	err     error
}

// stage is a provider whose every call waits for its answer to be chosen.
type stage struct {
	*storetest.Provider
	arrived chan *call
}

type call struct {
	play    chan storetest.Call
	request *request
}

func (s stage) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	c := &call{play: make(chan storetest.Call)}
	s.arrived <- c
	s.Next(<-c.play)
	return s.Provider.Charge(ctx, a)
}

type movingClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *movingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

func (c *movingClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func openWorld(t *rapid.T) *world {
	clock := &movingClock{now: time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)}
	var work port.UnitOfWork = memory.New(clock.Now)
	if rapid.Bool().Draw(t, "writes are deferred") {
		work = memory.NewDeferring(memory.New(clock.Now))
	}
	shop := storetest.OpenShop(work, storetest.NewProvider())
	w := &world{
		shop: shop, clock: clock, stage: stage{shop.Provider, make(chan *call)},
		first: map[idempotency.Scope]answered{}, meant: map[idempotency.Scope]map[string]bool{},
	}
	w.shop.Gateway = w.stage
	w.shops = []storetest.Shop{w.shop, w.shop.Beside(), w.shop.Beside()}
	for _, customer := range []string{"alice", "alice", "bob"} {
		cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "tea", Quantity: 2, UnitPrice: 500}})
		require.NoError(t, err)
		answer, err := shop.PlaceOrder(context.Background(), checkout.PlaceOrder{
			Customer: customer, Key: idempotency.Key(order.NewID()), Cart: cart,
		})
		require.NoError(t, err)
		w.orders = append(w.orders, placedOrder{order.ID(answer.Created), customer})
	}
	return w
}

var (
	customers = rapid.SampledFrom([]string{"alice", "bob"})
	keys      = rapid.SampledFrom([]idempotency.Key{"k1", "k2", "k3", "k4", "k5", "k6"})
)

// instance is where a request goes: a duplicate meets the gate of the one that executes, or another one and the store.
func (w *world) instance(t *rapid.T) storetest.Shop {
	return rapid.SampledFrom(w.shops).Draw(t, "instance")
}

func (w *world) place(t *rapid.T) {
	shop, customer, key := w.instance(t), customers.Draw(t, "customer"), keys.Draw(t, "key")
	quantity := rapid.Int64Range(1, 2).Draw(t, "quantity")
	cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "tea", Quantity: quantity, UnitPrice: 500}})
	require.NoError(t, err)
	w.send(t, checkout.OpPlaceOrder, customer, key, fmt.Sprint(quantity), func() (idempotent.Answer, error) {
		return shop.PlaceOrder(context.Background(), checkout.PlaceOrder{Customer: customer, Key: key, Cart: cart})
	})
}

func (w *world) confirm(t *rapid.T) {
	shop := w.instance(t)
	c := checkout.ConfirmPayment{
		Customer: customers.Draw(t, "customer"), Key: keys.Draw(t, "key"),
		OrderID: string(rapid.SampledFrom(w.orders).Draw(t, "order").id),
		Money:   money.Of(rapid.SampledFrom([]int64{1000, 1000, 1000, 999}).Draw(t, "amount"), money.JPY),
		Method:  rapid.SampledFrom([]string{"", "pm_ok"}).Draw(t, "method"),
	}
	w.send(t, checkout.OpConfirmPayment, c.Customer, c.Key, fmt.Sprint(c), func() (idempotent.Answer, error) {
		return shop.ConfirmPayment(context.Background(), c)
	})
}

func (w *world) cancel(t *rapid.T) {
	shop := w.instance(t)
	c := checkout.CancelOrder{
		Customer: customers.Draw(t, "customer"), Key: keys.Draw(t, "key"),
		OrderID: string(rapid.SampledFrom(w.orders).Draw(t, "order").id),
	}
	w.send(t, checkout.OpCancelOrder, c.Customer, c.Key, fmt.Sprint(c), func() (idempotent.Answer, error) {
		return shop.CancelOrder(context.Background(), c)
	})
}

func (w *world) lookUp(t *rapid.T) {
	scope := idempotency.Scope{
		Operation: rapid.SampledFrom([]idempotency.Operation{
			checkout.OpPlaceOrder, checkout.OpConfirmPayment, checkout.OpCancelOrder,
		}).Draw(t, "operation"),
		Actor: customers.Draw(t, "customer"), Key: keys.Draw(t, "key"),
	}
	view, err := w.shop.Outcome(context.Background(), scope)
	if errors.Is(err, port.ErrUnavailable) {
		return
	}
	known, answeredBefore := w.first[scope]
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		require.False(t, answeredBefore, "an answer was given and is not on record")
	case view.Status != idempotency.InProgress:
		require.NoError(t, err)
		document := string(view.Response) + string(view.Problem)
		if answeredBefore {
			require.Equal(t, known.document, document)
		}
	default:
		require.NoError(t, err)
		require.False(t, answeredBefore, "an answer was given and the record is in progress")
	}
}

// providerAnswers lets one of the waiting calls go on.
func (w *world) providerAnswers(t *rapid.T) {
	if len(w.waiting) == 0 {
		t.Skip("no call is waiting")
	}
	i := rapid.IntRange(0, len(w.waiting)-1).Draw(t, "call")
	name := rapid.SampledFrom([]string{
		"approves", "approves", "declines", "loses its approval", "loses its decline", "is unreachable",
	}).Draw(t, "the provider")
	w.answer(t, i, map[string]storetest.Call{
		"approves": storetest.Approving, "declines": storetest.Declining("card_declined"),
		"loses its approval": storetest.Losing(storetest.Approving),
		"loses its decline":  storetest.Losing(storetest.Declining("card_declined")),
		"is unreachable":     storetest.Unreachable,
	}[name])
}

func (w *world) answer(t *rapid.T, i int, play storetest.Call) {
	c := w.waiting[i]
	w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
	c.play <- play
	w.follow(t, c.request)
}

func (w *world) timePasses(t *rapid.T) {
	w.clock.pass(rapid.SampledFrom([]time.Duration{time.Second, storetest.Times.Lease}).Draw(t, "time"))
}

// dayPasses ends retentions, and the provider's memory of keys. No call is under way for that long.
func (w *world) dayPasses(t *rapid.T) {
	if len(w.waiting) > 0 {
		t.Skip("a call is waiting")
	}
	w.clock.pass(storetest.Times.Retention)
	w.shop.Provider.ForgetKeys()
	clear(w.first)
}

func (w *world) commitIsLost(t *rapid.T) {
	fate := rapid.SampledFrom([]storetest.Fate{storetest.Applied, storetest.Undone}).Draw(t, "fate")
	w.shop.Store.LoseCommit(rapid.IntRange(1, 2).Draw(t, "which"), fate)
}

// send starts a request and follows it until it ends or waits for the provider: only one is ever on its way.
func (w *world) send(
	t *rapid.T, op idempotency.Operation, customer string, key idempotency.Key, meaning string,
	run func() (idempotent.Answer, error),
) {
	scope := idempotency.Scope{Operation: op, Actor: customer, Key: key}
	if w.meant[scope] == nil {
		w.meant[scope] = map[string]bool{}
	}
	w.meant[scope][meaning] = true
	r := request{scope: scope, meaning: meaning, run: run}
	w.sent = append(w.sent, r)
	w.start(t, &r)
}

func (w *world) start(t *rapid.T, r *request) {
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		r.answer, r.err = r.run()
	}()
	w.follow(t, r)
}

func (w *world) follow(t *rapid.T, r *request) {
	select {
	case c := <-w.stage.arrived:
		c.request = r
		w.waiting = append(w.waiting, c)
	case <-r.ended:
		w.check(t, r)
	}
}

// check compares an answer with the first one under its key.
func (w *world) check(t *rapid.T, r *request) {
	if r.err != nil {
		expected := errors.Is(r.err, idempotency.ErrInProgress) || errors.Is(r.err, order.ErrPaymentInProgress) ||
			errors.Is(r.err, order.ErrNotFound) || errors.Is(r.err, idempotency.ErrOutcomeUnknown) ||
			errors.Is(r.err, port.ErrUnavailable)
		if errors.Is(r.err, idempotency.ErrKeyReused) {
			expected = len(w.meant[r.scope]) > 1
		}
		require.True(t, expected, "%v: %v", r.scope, r.err)
		return
	}
	now := answered{r.meaning, string(r.answer.Document)}
	if first, known := w.first[r.scope]; known {
		require.Equal(t, first, now, "%v was answered before", r.scope)
		return
	}
	w.first[r.scope] = now
}

// holds is what is true after every step.
func (w *world) holds(t *rapid.T) {
	for _, o := range w.orders {
		state, charges := w.order(t, o), w.charges(t, o.id)
		require.LessOrEqual(t, len(charges), 1, "charged twice: %v", charges)
		switch state.Status {
		case order.Paid:
			require.Len(t, charges, 1)
			require.Equal(t, charges[0].ID, state.ChargeID)
		case order.Placed, order.Cancelled:
			require.Empty(t, charges)
		case order.PaymentPending:
		}
	}
}

// settles lets everything come to its end: the provider answers whatever waits, every request is sent once more. Then an
// order is pending only if the provider has forgotten its key and lists no charge.
func (w *world) settles(t *rapid.T) {
	for len(w.waiting) > 0 {
		w.answer(t, 0, storetest.Approving)
	}
	w.shop.Store.Settle()
	for _, r := range w.sent {
		w.clock.pass(storetest.Times.Lease)
		w.start(t, &r)
		for len(w.waiting) > 0 {
			w.answer(t, 0, storetest.Approving)
		}
		w.holds(t)
	}
	for _, o := range w.orders {
		state := w.order(t, o)
		if state.Status == order.PaymentPending {
			require.True(t, state.Attempt.ForgottenAt(w.clock.Now(), storetest.KeyRetention), "%+v", state)
			require.Empty(t, w.charges(t, o.id))
		}
	}
}

func (w *world) order(t *rapid.T, o placedOrder) (state order.State) {
	require.NoError(t, w.shop.Work.Read(context.Background(), func(tx port.Tx) error {
		found, err := tx.Orders().Find(context.Background(), o.id, o.customer)
		if err == nil {
			state = found.State()
		}
		return err
	}))
	return state
}

func (w *world) charges(t *rapid.T, id order.ID) (charges []payment.Charge) {
	list, err := w.shop.Provider.Lookup(context.Background(), string(id))
	require.NoError(t, err)
	for _, b := range list {
		if charge, ok := b.Answer.(payment.Charge); ok {
			charges = append(charges, charge)
		}
	}
	return charges
}
