package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Operation is a use case by its published name. Reads have a name here, too, for observers and errors.
type Operation string

// The operations, and the reads.
const (
	OpPlaceOrder       Operation = "PlaceOrder"
	OpConfirmPayment   Operation = "ConfirmPayment"
	OpCancelOrder      Operation = "CancelOrder"
	OpPostJournalEntry Operation = "PostJournalEntry"

	ReadOrder        Operation = "Order"
	ReadOutcome      Operation = "Outcome"
	ReadJournalEntry Operation = "JournalEntry"
)

// The states of an order.
const (
	StatusPlaced         = "PLACED"
	StatusPaymentPending = "PAYMENT_PENDING"
	StatusPaid           = "PAID"
	StatusCancelled      = "CANCELLED"
)

// NewOrder is what to order. Unit prices count the currency's minor units: for JPY yen, for EUR cents.
type NewOrder struct {
	Currency string `json:"currency"` // ISO 4217
	Lines    []Line `json:"lines"`
}

// Line is one line of an order.
type Line struct {
	SKU       string `json:"sku"`
	Name      string `json:"name"`
	Quantity  int64  `json:"quantity"`
	UnitPrice int64  `json:"unitPrice"` // minor units
}

// Order is an order as the service tells it. A time that has not come is zero.
type Order struct {
	OrderID      string    `json:"orderId"`
	CustomerID   string    `json:"customerId"`
	Status       string    `json:"status"`
	Amount       int64     `json:"amount"` // minor units
	Currency     string    `json:"currency"`
	Lines        []Line    `json:"lines"`
	PlacedAt     time.Time `json:"placedAt"`
	PaidAt       time.Time `json:"paidAt"`
	PaymentID    string    `json:"paymentId"`
	CancelledAt  time.Time `json:"cancelledAt"`
	CancelReason string    `json:"cancelReason"`

	Answer Answer `json:"-"`
}

// Payment is the money that the shopper confirms; it must be the order's.
type Payment struct {
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
	// Method is the provider's token, never card data. Empty: the provider's default. It is part of the request: a retry
	// has the same.
	Method string `json:"paymentMethod,omitempty"`
}

// Receipt is a confirmed payment.
type Receipt struct {
	OrderID   string    `json:"orderId"`
	Status    string    `json:"status"`
	PaidAt    time.Time `json:"paidAt"`
	Amount    int64     `json:"amount"` // minor units
	Currency  string    `json:"currency"`
	PaymentID string    `json:"paymentId"`

	Answer Answer `json:"-"`
}

// PlaceOrder places an order. Errors, of every operation: *Error if the service has refused it, *UnknownOutcome if
// nobody can tell here, others if it was never sent.
func (c *Client) PlaceOrder(ctx context.Context, intent Intent, order NewOrder) (Order, error) {
	texts := []string{order.Currency}
	for _, line := range order.Lines {
		texts = append(texts, line.SKU, line.Name)
	}
	var placed Order
	answer, err := c.operate(ctx, OpPlaceOrder, intent, "/api/orders", order, texts, placed.readFrom)
	if err != nil {
		return Order{}, err
	}
	placed.Answer = answer
	return placed, nil
}

// ConfirmPayment pays a placed order. A decline is an *Error with CodePaymentDeclined: the order can be paid under a new
// intent.
func (c *Client) ConfirmPayment(
	ctx context.Context, intent Intent, orderID string, payment Payment,
) (Receipt, error) {
	var paid Receipt
	answer, err := c.operate(ctx, OpConfirmPayment, intent, pathOfOrder(orderID)+"/confirm-payment",
		payment, []string{payment.Currency, payment.Method}, about(orderID, &paid.OrderID, paid.readFrom))
	if err != nil {
		return Receipt{}, err
	}
	paid.Answer = answer
	return paid, nil
}

// CancelOrder cancels an order that is not paid. The reason may be empty.
func (c *Client) CancelOrder(ctx context.Context, intent Intent, orderID, reason string) (Order, error) {
	body := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	var cancelled Order
	answer, err := c.operate(ctx, OpCancelOrder, intent, pathOfOrder(orderID)+"/cancel",
		body, []string{reason}, about(orderID, &cancelled.OrderID, cancelled.readFrom))
	if err != nil {
		return Order{}, err
	}
	cancelled.Answer = answer
	return cancelled, nil
}

// Order reads an order. Errors, of every read: *Error (CodeOrderNotFound, say), or *NoAnswer.
func (c *Client) Order(ctx context.Context, orderID string) (Order, error) {
	var order Order
	answer, err := c.do(ctx, call{
		operation: ReadOrder, method: http.MethodGet, path: pathOfOrder(orderID),
		read: about(orderID, &order.OrderID, order.readFrom),
	})
	if err != nil {
		return Order{}, err
	}
	order.Answer = answer
	return order, nil
}

func pathOfOrder(id string) string { return "/api/orders/" + url.PathEscape(id) }

// operate sends an operation under its key.
func (c *Client) operate(
	ctx context.Context, operation Operation, intent Intent, path string, request any, texts []string,
	read func(Answer) error,
) (Answer, error) {
	of := call{
		operation: operation, key: intent, method: http.MethodPost, path: path,
		header: http.Header{"Idempotency-Key": {string(intent)}}, read: read,
	}
	var err error
	if of.body, err = written(request, texts...); err == nil {
		err = intent.Check()
	}
	if err != nil {
		return Answer{}, notSent(of, err)
	}
	return c.do(ctx, of)
}

func (o *Order) readFrom(a Answer) error {
	return decoded(a.Body, o, func() bool { return o.OrderID != "" && o.Status != "" && o.Currency != "" })
}

func (r *Receipt) readFrom(a Answer) error {
	return decoded(a.Body, r, func() bool {
		return r.OrderID != "" && r.Status == StatusPaid && r.PaymentID != "" && !r.PaidAt.IsZero()
	})
}

// about takes only what is told of the order that was asked for: another one's receipt (a cache has mixed up two pages,
// say) is no answer of the service's.
func about(orderID string, told *string, read func(Answer) error) func(Answer) error {
	return func(a Answer) error {
		if err := read(a); err != nil {
			return err
		}
		if *told != orderID {
			return errIncomplete
		}
		return nil
	}
}

var (
	errIncomplete = errors.New("client: the document is not what was asked for")
	errNotText    = errors.New("client: a text is not valid UTF-8")
)

// decoded reads a document. Members that this client does not know are a later version's. Errors: encoding/json's,
// errIncomplete if whole says no.
func decoded(body []byte, into any, whole func() bool) error {
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	if !whole() {
		return errIncomplete
	}
	return nil
}
