package order

import "context"

// Repository is the port to stored orders, bound to one transaction. Id and customer are both part of every look-up:
// a stranger finds nothing and locks nothing.
type Repository interface {
	// Find reads the order and locks nothing. Error: ErrNotFound.
	Find(ctx context.Context, id ID, customer string) (*Order, error)

	// Lock reads the order and keeps others from changing it until the transaction ends. Errors: ErrNotFound;
	// ErrPaymentInProgress when another transaction holds it for longer than this one waits.
	Lock(ctx context.Context, id ID, customer string) (*Order, error)

	// LockIfOpen locks the order if the request under this key could change it: if it is PLACED, or PAYMENT_PENDING
	// under the key. Any other order is only read, so that nobody queues for what is decided. Errors as Lock.
	LockIfOpen(ctx context.Context, id ID, customer, key string) (*Order, error)

	// Add stores a new order.
	Add(ctx context.Context, o *Order) error

	// Save stores what the verbs changed on an order that this transaction has locked. An order whose stored version is
	// another one is not overwritten: the transaction fails and starts anew.
	Save(ctx context.Context, o *Order) error
}

// Open tells whether the request under this key could change the order: the condition of LockIfOpen.
func (s State) Open(key string) bool {
	return s.Status == Placed || s.Status == PaymentPending && s.PayingKey == key
}
