package checkout

import (
	"context"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// CancelOrder asks to end an order that is not paid.
type CancelOrder struct {
	Customer string
	Key      idempotency.Key
	OrderID  string // as the path has it
	Reason   string // may be empty
}

// CancelOrder cancels the order. Nothing outside is touched: one commit.
func (t *Till) CancelOrder(ctx context.Context, c CancelOrder) (idempotent.Answer, error) {
	prepare := func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
		id, err := order.ParseID(c.OrderID)
		if err != nil {
			return idempotent.Next{}, err
		}
		o, err := tx.Orders().LockIfOpen(ctx, id, c.Customer, "")
		if err != nil {
			return idempotent.Next{}, err
		}
		changed, err := o.Cancel(c.Reason, tx.Now())
		if err != nil {
			return idempotent.Next{}, err
		}
		if changed {
			err = tx.Orders().Save(ctx, o)
		}
		return idempotent.Result(viewOf(o)), err
	}
	return t.execute(ctx, OpCancelOrder, c.Customer, c.Key, c.request(), prepare)
}

func (c CancelOrder) request() idempotency.Request {
	request := idempotency.Request("").With("order", c.OrderID)
	if c.Reason != "" {
		request = request.With("reason", c.Reason)
	}
	return request
}
