package checkout

import (
	"context"
	"strconv"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// PlaceOrder asks for a new order of what is in the cart.
type PlaceOrder struct {
	Customer string
	Key      idempotency.Key
	Cart     order.Cart
}

// PlaceOrder places the order, once per key. Nothing outside is touched: one commit.
func (t *Till) PlaceOrder(ctx context.Context, c PlaceOrder) (idempotent.Answer, error) {
	prepare := func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
		o := order.Place(c.Customer, c.Cart, tx.Now())
		return idempotent.Result(viewOf(o)).Creating(string(o.State().ID)), tx.Orders().Add(ctx, o)
	}
	return t.execute(ctx, OpPlaceOrder, c.Customer, c.Key, c.request(), prepare)
}

func (c PlaceOrder) request() idempotency.Request {
	request := idempotency.Request("").With("currency", c.Cart.Total().Currency().Code())
	for _, l := range c.Cart.Lines() {
		request = request.
			With("sku", l.SKU).
			With("name", l.Name).
			With("quantity", strconv.FormatInt(l.Quantity, 10)).
			With("unitPrice", strconv.FormatInt(l.UnitPrice, 10))
	}
	return request
}
