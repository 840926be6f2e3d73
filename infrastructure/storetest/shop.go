package storetest

import (
	"context"
	"time"

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
