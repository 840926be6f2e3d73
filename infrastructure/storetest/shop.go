package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
)

// Shop is the shop's use cases over a store, with everything else of the test's own.
type Shop struct {
	*checkout.Till
	Store    *Unreliable
	Provider *Provider
	Seen     *Seen
}

// Times is the executor's configuration in a Shop.
var Times = idempotent.Config{
	Lease: 30 * time.Second, Retention: 24 * time.Hour, CallTimeout: 10 * time.Second, LockTimeout: time.Second,
	Now: time.Now,
}

// KeyRetention is how long the Provider of a Shop is trusted to know a gateway key.
const KeyRetention = 12 * time.Hour

// Company is whose books a Shop's payments enter.
const Company = "shop"

// Zone is where a Shop's day ends.
var Zone = time.FixedZone("Asia/Tokyo", 9*60*60)

// OpenShop opens a shop over a store. Shops over one database share the provider, as instances of the service do.
func OpenShop(w port.UnitOfWork, p *Provider) Shop {
	store, seen := NewUnreliable(w), &Seen{}
	return Shop{
		Till: &checkout.Till{
			Executor: idempotent.New(store, Documents{}, seen, Times),
			Work:     store, Gateway: p, Observer: seen, KeyRetention: KeyRetention, Lease: Times.Lease,
			Books: checkout.Books{Company: Company, Zone: Zone},
		},
		Store: store, Provider: p, Seen: seen,
	}
}

// Beside is another instance of the service, which shares all but what an instance remembers. An instance keeps duplicates of
// what it is executing from the store: whoever wants to see what the store makes of them sends each to one of its own.
func (s Shop) Beside() Shop {
	till := *s.Till
	till.Executor = idempotent.New(s.Store, Documents{}, s.Seen, Times)
	s.Till = &till
	return s
}

// alice is who pays here.
const alice = "alice"

// Place has alice order tea for 1000 yen.
func (s Shop) Place(ctx context.Context) (order.ID, error) {
	cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}})
	if err != nil {
		return "", err
	}
	answer, err := s.PlaceOrder(ctx, checkout.PlaceOrder{
		Customer: alice, Key: idempotency.Key(order.NewID()), Cart: cart,
	})
	return order.ID(answer.Created), err
}

// Payment is alice's request to pay the 1000 yen of a placed order.
func Payment(id order.ID, key string) checkout.ConfirmPayment {
	return checkout.ConfirmPayment{
		Customer: alice, Key: idempotency.Key(key), OrderID: string(id), Money: money.Of(1000, money.JPY),
	}
}

// ScopeOf is where the record of a payment is.
func ScopeOf(c checkout.ConfirmPayment) idempotency.Scope {
	return idempotency.Scope{Operation: checkout.OpConfirmPayment, Actor: c.Customer, Key: c.Key}
}

// twoShops are two instances of the service on one database and one provider.
func twoShops(s Opened) (here, there Shop, p *Provider) {
	p = NewProvider()
	return OpenShop(s.Work, p), OpenShop(s.Beside, p), p
}

// paymentOf is the same payment for everyone.
func paymentOf(id order.ID, key string) func(int) checkout.ConfirmPayment {
	return func(int) checkout.ConfirmPayment { return Payment(id, key) }
}

func placed(t *testing.T, s Shop) order.ID {
	t.Helper()
	id, err := s.Place(t.Context())
	require.NoError(t, err)
	return id
}

// confirmed is how a confirmation ended.
type confirmed struct {
	answer idempotent.Answer
	err    error
}

// confirmAtOnce sends n confirmations together, each to an instance of its own, turn by turn on the two shops' stores.
func confirmAtOnce(
	t *testing.T, n int, here, there Shop, request func(i int) checkout.ConfirmPayment,
) (answers []idempotent.Answer, refused []error) {
	t.Helper()
	var mu sync.Mutex
	atOnce(n, func(i int) {
		shop := here
		if i%2 == 1 {
			shop = there
		}
		a, err := shop.Beside().ConfirmPayment(t.Context(), request(i))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			refused = append(refused, err)
			return
		}
		answers = append(answers, a)
	})
	return answers, refused
}

// confirmHeld sends a confirmation and returns while the provider's call is held.
func confirmHeld(t *testing.T, s Shop, request checkout.ConfirmPayment, play Call) (*Held, <-chan confirmed) {
	t.Helper()
	held, call := Holding(play)
	s.Provider.Next(call)
	ended := make(chan confirmed, 1)
	go func() {
		answer, err := s.ConfirmPayment(t.Context(), request)
		ended <- confirmed{answer, err}
	}()
	select {
	case <-held.Reached:
	case early := <-ended:
		require.Fail(t, "the confirmation ended before its call", "%v", early.err)
	}
	return held, ended
}

// leaseEnds lets the lease of a payment's record run out.
func leaseEnds(t *testing.T, s Opened, c checkout.ConfirmPayment) {
	t.Helper()
	require.NoError(t, Age(t.Context(), s.Beside, ScopeOf(c), Times.Lease+time.Second))
}
