package order

import (
	"context"
	"time"
)

// Repository is the port to stored orders, bound to one transaction. Id and customer are both part of every look-up on
// a customer's behalf: a stranger finds nothing and locks nothing.
type Repository interface {
	// Find reads the order and locks nothing. Error: ErrNotFound.
	Find(ctx context.Context, id ID, customer string) (*Order, error)

	// Lock reads the order and keeps others from changing it until the transaction ends. A store that knows how the order was
	// left or last seen may presume that instead, if the transaction fails where it has been changed meanwhile: it starts
	// anew then. Errors: ErrNotFound; ErrPaymentInProgress when another transaction holds it for longer than this one
	// waits, told by the commit if it is presumed.
	Lock(ctx context.Context, id ID, customer string) (*Order, error)

	// LockIfOpen locks the order if the request under this key could change it: if it is PLACED, or PAYMENT_PENDING
	// under the key. Any other order is only read, so that nobody queues for what is decided. What may be presumed is as with
	// Lock, and so are the errors.
	LockIfOpen(ctx context.Context, id ID, customer, key string) (*Order, error)

	// Announce says that a LockIfOpen with the same arguments follows the reservation that comes next, and only if that is
	// granted. A store may fetch both in one exchange, or presume both. It changes nothing, and nothing may depend on it.
	Announce(id ID, customer, key string)

	// Add stores a new order.
	Add(ctx context.Context, o *Order) error

	// Save stores what the verbs changed on an order that this transaction has locked. An order whose stored version is
	// another one is not overwritten: the transaction fails and starts anew. Error, at the latest from the commit:
	// ErrChargeTaken when another order has its charge.
	Save(ctx context.Context, o *Order) error

	// FindAll reads those of the orders that there are, whoever's, in any order, and locks nothing. It is for comparing,
	// never for a customer. Error: Unreadable, beside those that can be read.
	FindAll(ctx context.Context, ids []ID) ([]*Order, error)

	// PaidAfter lists PAID orders behind a mark, whoever's, in the order of their marks, limit at most. Orders whose
	// payment is committed while somebody pages through may come to stand before his mark. Error: Unreadable, beside
	// those of the page that can be read.
	PaidAfter(ctx context.Context, m Mark, limit int) ([]*Order, error)
}

// Mark is a PAID order's place in the order of payments. One without an id stands before all payments of its time.
type Mark struct {
	PaidAt time.Time
	ID     ID
}

// Mark is where the order stands once it is PAID.
func (s State) Mark() Mark { return Mark{PaidAt: s.PaidAt, ID: s.ID} }

// Before tells which of two payments is listed first.
func (m Mark) Before(o Mark) bool {
	return m.PaidAt.Before(o.PaidAt) || m.PaidAt.Equal(o.PaidAt) && m.ID < o.ID
}

// Open tells whether the request under this key could change the order: the condition of LockIfOpen.
func (s State) Open(key string) bool {
	return s.Status == Placed || s.Status == PaymentPending && s.PayingKey == key
}
