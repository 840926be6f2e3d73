package gateway

import "context"

// Telling is a book that tells of which order it has just written something, once that stands: so a customer's money is
// seen to be taken although the answer is late, or lost.
type Telling struct {
	Book
	Tell func(orderID string)
}

// Enter implements Book.
func (b Telling) Enter(ctx context.Context, line Line) (stands Line, entered bool, err error) {
	stands, entered, err = b.Book.Enter(ctx, line)
	if entered && err == nil {
		b.Tell(line.OrderID)
	}
	return stands, entered, err
}

// Settle implements Book.
func (b Telling) Settle(ctx context.Context, line Line) (stands Line, settled bool, err error) {
	stands, settled, err = b.Book.Settle(ctx, line)
	if settled && err == nil {
		b.Tell(line.OrderID)
	}
	return stands, settled, err
}
