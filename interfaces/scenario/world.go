package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"kakutei/interfaces/client"
)

// world is what one scenario has come to so far. Steps change it one after the other; what they send at once is
// gathered before the step ends.
type world struct {
	against Against
	under   http.RoundTripper
	run     string // makes the names of this scenario its own

	people map[string]*person
	who    *person // who acted last: "she"
	order  *placed // the order that the talk is of
	method string  // how the provider will treat the next payment
	paper  *document

	deed    *deed      // what was sent last, and can be sent again
	last    exchange   // the last answer, or that none came
	all     []exchange // everything that was sent for the scenario's deeds, in the order of the answers
	running chan error // a request under way, until it has ended
	loses   bool       // the next answer is lost
	// whenEnded takes the answer of what is under way.
	whenEnded func()
}

// person is somebody in a scenario.
type person struct {
	name string
	Caller
}

// placed is an order.
type placed struct {
	id    string
	owner *person
	money amount
}

// amount is money as a step tells it.
type amount struct {
	units    int64
	currency string
}

// deed is a request that can be sent again: the same key, the same bytes.
type deed struct {
	who       *person
	operation client.Operation // of what has an outcome to look up, else empty
	order     *placed          // of a payment
	key       client.Intent
	send      func(context.Context, *client.Client) error
	answers   []exchange
}

// company is for whose books people post, unless a scenario says otherwise.
const company = "company-1"

// person finds somebody by name. A pronoun is who acted last.
func (w *world) person(name string) (*person, error) {
	if name == pronoun {
		if w.who == nil {
			return nil, errors.New("nobody has done anything yet")
		}
		return w.who, nil
	}
	p, known := w.people[name]
	if !known {
		caller, err := w.against.Callers.Caller(name, company)
		if err != nil {
			return nil, err
		}
		p = &person{name: name, Caller: caller}
		w.people[name] = p
	}
	w.who = p
	return p, nil
}

// clientOf is the client of somebody, over a wire of its own. It sends once unless told otherwise.
func (w *world) clientOf(p *person, options ...client.Option) (*client.Client, *wire, error) {
	over := &wire{under: w.under, loses: w.loses}
	options = append([]client.Option{
		client.WithToken(p.Token), client.WithHTTPClient(&http.Client{Transport: over}), client.WithTries(1),
	}, options...)
	c, err := client.New(w.against.URL(), options...)
	return c, over, err
}

// perform sends a deed, n times at once, and keeps the answers. What the service answers is for later steps to judge:
// an error is the runner's own.
func (w *world) perform(ctx context.Context, d *deed, n int, options ...client.Option) error {
	w.deed = d
	return w.performAll(ctx, repeat(d, n), options...)
}

func repeat(d *deed, n int) []*deed {
	all := make([]*deed, n)
	for i := range all {
		all[i] = d
	}
	return all
}

// performAll sends deeds at once.
func (w *world) performAll(ctx context.Context, deeds []*deed, options ...client.Option) error {
	var (
		mu      sync.Mutex
		sending sync.WaitGroup
		failed  error
	)
	start := make(chan struct{})
	for _, d := range deeds {
		c, over, err := w.clientOf(d.who, options...)
		if err != nil {
			return err
		}
		sending.Go(func() {
			<-start
			err := d.send(ctx, c)
			went, sent := over.last()
			mu.Lock()
			defer mu.Unlock()
			if !sent {
				failed = errors.Join(failed, fmt.Errorf("nothing was sent: %w", err))
				return
			}
			d.answers, w.all, w.last = append(d.answers, went), append(w.all, went), went
		})
	}
	close(start)
	sending.Wait()
	w.loses = false
	return failed
}

// newKey is a key that no other scenario has.
func (w *world) newKey() client.Intent { return client.NewIntent() }

// named is the key that the scenario calls by this name.
func (w *world) named(name string) client.Intent { return client.Intent(name + "-" + w.run) }

// place has somebody place an order, and fails if it cannot be.
func (w *world) place(ctx context.Context, p *person, money amount) (*placed, error) {
	c, over, err := w.clientOf(p)
	if err != nil {
		return nil, err
	}
	order, err := c.PlaceOrder(ctx, w.newKey(), orderOver(money))
	if err != nil {
		went, _ := over.last()
		w.last = went
		return nil, fmt.Errorf("no order was placed: %w", err)
	}
	return &placed{id: order.OrderID, owner: p, money: money}, nil
}

func orderOver(money amount) client.NewOrder {
	return client.NewOrder{
		Currency: money.currency,
		Lines:    []client.Line{{SKU: "tea", Name: "煎茶", Quantity: 1, UnitPrice: money.units}},
	}
}

// placing is the deed of an order. The order that it comes to is the one that the talk is of afterwards.
func (w *world) placing(p *person, key client.Intent, money amount) *deed {
	return &deed{
		who: p, operation: client.OpPlaceOrder, key: key,
		send: func(ctx context.Context, c *client.Client) error {
			order, err := c.PlaceOrder(ctx, key, orderOver(money))
			if err == nil {
				w.order = &placed{id: order.OrderID, owner: p, money: money}
			}
			return err
		},
	}
}

// confirming is the deed of a payment.
func (w *world) confirming(p *person, order *placed, key client.Intent, money amount) *deed {
	method := w.method
	return &deed{
		who: p, operation: client.OpConfirmPayment, order: order, key: key,
		send: func(ctx context.Context, c *client.Client) error {
			_, err := c.ConfirmPayment(ctx, key, order.id,
				client.Payment{Amount: money.units, Currency: money.currency, Method: method})
			return err
		},
	}
}

// cancelling is the deed of a cancellation.
func cancelling(p *person, order *placed, key client.Intent, reason string) *deed {
	return &deed{
		who: p, operation: client.OpCancelOrder, key: key,
		send: func(ctx context.Context, c *client.Client) error {
			_, err := c.CancelOrder(ctx, key, order.id, reason)
			return err
		},
	}
}

// raw is a request that the client would not send, or not so.
type raw struct {
	method, path string
	header       http.Header
	body         string
}

// request sends a raw request once.
func (w *world) request(ctx context.Context, p *person, r raw) error {
	over := &wire{under: w.under}
	h := &http.Client{Transport: over, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	request, err := http.NewRequestWithContext(ctx, r.method, w.against.URL()+r.path, strings.NewReader(r.body))
	if err != nil {
		return err
	}
	for name, values := range r.header {
		request.Header[name] = values
	}
	request.GetBody = nil // else the transport may send it again by itself
	if p != nil {
		request.Header.Set("Authorization", "Bearer "+p.Token)
	}
	response, err := h.Do(request)
	if err == nil {
		err = response.Body.Close()
	}
	went, sent := over.last()
	if !sent {
		return fmt.Errorf("nothing was sent: %w", err)
	}
	w.last, w.all = went, append(w.all, went)
	return nil
}

// document is what is posted.
type document struct{ posting client.Posting }

// problem is what steps read of a problem document.
type problem struct {
	Code  string `json:"code"`
	Retry string `json:"retry"`
}

func problemIn(e exchange) (p problem) {
	_ = json.Unmarshal(e.answer, &p) // what is no problem document has no code
	return p
}

// settled tells whether an answer is one to stay: neither lost nor one that asks to come again.
func settled(e exchange) bool {
	return e.status != 0 && e.status < 500 && e.status != http.StatusTooManyRequests && problemIn(e).Retry != "same-key"
}

func replayed(e exchange) bool { return e.received.Get("Idempotent-Replayed") == "true" }

// await asks until what is asked for is there, or patience is over.
func await(ctx context.Context, there func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := there()
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.New("it did not come about in time")
		}
	}
}

// How long something is waited for that comes about by itself, and how often it is looked at.
const (
	patience = 15 * time.Second
	pause    = 10 * time.Millisecond
)
