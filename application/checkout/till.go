// Package checkout is the shop's use cases: place an order, confirm its payment, cancel it, look at it, and ask what
// became of a request.
package checkout

import (
	"context"
	"time"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/payment"
)

// The operations that run under a client's key. Their names are published and stored.
const (
	OpPlaceOrder     idempotency.Operation = "PlaceOrder"
	OpConfirmPayment idempotency.Operation = "ConfirmPayment"
	OpCancelOrder    idempotency.Operation = "CancelOrder"
)

// Till is where the shop's use cases are called.
type Till struct {
	Executor *idempotent.Executor
	Work     port.UnitOfWork
	Gateway  payment.Gateway
	// Provider names the one behind the gateway. An attempt remembers whom it was asked of: no other is asked about it.
	Provider string
	Observer port.Observer
	// KeyRetention is how long the provider certainly knows a gateway key. An attempt that is older is looked up.
	KeyRetention time.Duration
	// Lease is the executor's: nobody is advised to wait longer for a request in progress.
	Lease time.Duration
	// Books says where a confirmed payment is booked.
	Books Books
}

// execute runs a use case under the caller's key.
func (t *Till) execute(
	ctx context.Context, op idempotency.Operation, customer string, key idempotency.Key,
	request idempotency.Request, prepare idempotent.Prepare,
) (idempotent.Answer, error) {
	scope := idempotency.Scope{Operation: op, Actor: customer, Key: key}
	return t.Executor.Execute(ctx, idempotent.Intent{Scope: scope, Request: request}, prepare)
}
