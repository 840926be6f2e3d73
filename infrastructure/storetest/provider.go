package storetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"kakutei/domain/money"
	"kakutei/domain/payment"
)

// ErrNoAnswer is how a Provider's lost or refused call looks from here.
var ErrNoAnswer = errors.New("storetest: the provider gave no answer")

// DeclinedMethod is the payment method that a Provider declines by itself; it approves every other.
const DeclinedMethod = "pm_declined"

// Provider is a payment provider of the test's own. It is idempotent by gateway key, keeps a book, counts, and plays
// the next calls as it is told.
type Provider struct {
	mu      sync.Mutex
	script  []Call
	keys    map[string]payment.Answer // what it remembers
	book    []payment.Booking         // what it has done
	calls   map[string]int            // by gateway key
	lookups int
	unread  error // why the list cannot be read
}

// NewProvider is a provider that has booked nothing yet.
func NewProvider() *Provider {
	return &Provider{keys: map[string]payment.Answer{}, calls: map[string]int{}}
}

// Call plays the provider for one call. What it hands to book is booked, unless the gateway key is booked already; book
// tells what stands there now.
type Call func(ctx context.Context, a payment.Attempt, book Book) (payment.Answer, error)

// Book is the provider's book, open at the call's gateway key.
type Book func(payment.Answer) payment.Answer

// Approving takes the money that was asked for.
func Approving(ctx context.Context, a payment.Attempt, book Book) (payment.Answer, error) {
	return Taking(a.Money)(ctx, a, book)
}

// Taking takes this much, whatever was asked for.
func Taking(m money.Money) Call {
	return func(_ context.Context, _ payment.Attempt, book Book) (payment.Answer, error) {
		return book(payment.Charge{Money: m}), nil
	}
}

// Declining takes nothing, and says why.
func Declining(code string) Call {
	return func(_ context.Context, _ payment.Attempt, book Book) (payment.Answer, error) {
		return book(payment.Decline{Code: code}), nil
	}
}

// Losing plays the call, and its answer is lost.
func Losing(call Call) Call {
	return func(ctx context.Context, a payment.Attempt, book Book) (payment.Answer, error) {
		if _, err := call(ctx, a, book); err != nil {
			return nil, err
		}
		return nil, ErrNoAnswer
	}
}

// Unreachable fails before any effect.
func Unreachable(context.Context, payment.Attempt, Book) (payment.Answer, error) {
	return nil, ErrNoAnswer
}

// Panicking is a bug in the adapter, after the money was taken.
func Panicking(ctx context.Context, a payment.Attempt, book Book) (payment.Answer, error) {
	_, _ = Approving(ctx, a, book)
	panic("storetest: the provider's adapter has a bug")
}

// Held is a call that waits until it is told to go on, or until its context ends.
type Held struct {
	// Reached is closed once the call is waiting.
	Reached  chan struct{}
	released chan struct{}
}

// Holding makes a call wait before it plays.
func Holding(call Call) (*Held, Call) {
	h := &Held{Reached: make(chan struct{}), released: make(chan struct{})}
	return h, func(ctx context.Context, a payment.Attempt, book Book) (payment.Answer, error) {
		close(h.Reached)
		select {
		case <-h.released:
			return call(ctx, a, book)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Release lets the call go on; once.
func (h *Held) Release() { close(h.released) }

// Next tells how the next calls are played, in turn. Those after them are played by their method again.
func (p *Provider) Next(calls ...Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = append(p.script, calls...)
}

// ForgetKeys makes the same gateway key a new charge, as a provider does one day. The book stays.
func (p *Provider) ForgetKeys() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.keys)
}

// HideList makes every Lookup fail, or none any more if err is nil.
func (p *Provider) HideList(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread = err
}

// Charge implements payment.Gateway.
func (p *Provider) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	return p.play(a)(ctx, a, func(answer payment.Answer) payment.Answer { return p.enter(a, answer) })
}

func (p *Provider) play(a payment.Attempt) Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[a.GatewayKey()]++
	switch {
	case len(p.script) > 0:
		call := p.script[0]
		p.script = p.script[1:]
		return call
	case a.Method == DeclinedMethod:
		return Declining("card_declined")
	default:
		return Approving
	}
}

func (p *Provider) enter(a payment.Attempt, answer payment.Answer) payment.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stands, booked := p.keys[a.GatewayKey()]; booked {
		return stands
	}
	if charge, ok := answer.(payment.Charge); ok {
		charge.ID = a.GatewayKey() + "/" + strconv.Itoa(len(p.book)+1)
		charge.ChargedAt = time.Now().UTC().Truncate(time.Microsecond)
		answer = charge
	}
	p.keys[a.GatewayKey()] = answer
	p.book = append(p.book, payment.Booking{
		OrderID: a.OrderID, Attempt: a.Number, GatewayKey: a.GatewayKey(), Answer: answer,
	})
	return answer
}

// Lookup implements payment.Gateway.
func (p *Provider) Lookup(_ context.Context, orderID string) ([]payment.Booking, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookups++
	if p.unread != nil {
		return nil, p.unread
	}
	return slices.DeleteFunc(slices.Clone(p.book), func(b payment.Booking) bool { return b.OrderID != orderID }), nil
}

// Calls counts the charges asked for, under all gateway keys.
func (p *Provider) Calls() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, calls := range p.calls {
		n += calls
	}
	return n
}

// CallsUnder counts the charges asked for under one gateway key.
func (p *Provider) CallsUnder(gatewayKey string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[gatewayKey]
}

// Lookups counts the times that the list was asked for.
func (p *Provider) Lookups() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lookups
}

// Charges counts the times that money was taken.
func (p *Provider) Charges() int { return len(p.charges()) }

// ChargesUnder counts the times that money was taken under one gateway key.
func (p *Provider) ChargesUnder(gatewayKey string) (n int) {
	for _, b := range p.charges() {
		if b.GatewayKey == gatewayKey {
			n++
		}
	}
	return n
}

func (p *Provider) charges() []payment.Booking {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.book), func(b payment.Booking) bool {
		_, charged := b.Answer.(payment.Charge)
		return !charged
	})
}
