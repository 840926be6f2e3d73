package checkout

import (
	"time"

	"kakutei/domain/order"
)

// OrderView is an order as published (docs/contract.md, Orders). Amounts count minor units.
type OrderView struct {
	OrderID      order.ID     `json:"orderId"`
	CustomerID   string       `json:"customerId"`
	Status       order.Status `json:"status"`
	Amount       int64        `json:"amount"`
	Currency     string       `json:"currency"`
	Lines        []LineView   `json:"lines"`
	PlacedAt     time.Time    `json:"placedAt"`
	PaidAt       *time.Time   `json:"paidAt,omitempty"`
	PaymentID    string       `json:"paymentId,omitempty"`
	CancelledAt  *time.Time   `json:"cancelledAt,omitempty"`
	CancelReason string       `json:"cancelReason,omitempty"`
}

// LineView is an order's line as published.
type LineView struct {
	SKU       string `json:"sku"`
	Name      string `json:"name"`
	Quantity  int64  `json:"quantity"`
	UnitPrice int64  `json:"unitPrice"`
}

// Receipt is a confirmed payment as published.
type Receipt struct {
	OrderID   order.ID     `json:"orderId"`
	Status    order.Status `json:"status"`
	PaidAt    time.Time    `json:"paidAt"`
	Amount    int64        `json:"amount"`
	Currency  string       `json:"currency"`
	PaymentID string       `json:"paymentId"`
}

func viewOf(o *order.Order) OrderView {
	s := o.State()
	v := OrderView{
		OrderID: s.ID, CustomerID: s.Customer, Status: s.Status,
		Amount: s.Total.Units(), Currency: s.Total.Currency().Code(), Lines: make([]LineView, len(s.Lines)),
		PlacedAt: s.PlacedAt, PaidAt: happened(s.PaidAt), PaymentID: s.PaymentID,
		CancelledAt: happened(s.CancelledAt), CancelReason: s.CancelReason,
	}
	for i, l := range s.Lines {
		v.Lines[i] = LineView(l)
	}
	return v
}

func receiptOf(o *order.Order) Receipt {
	s := o.State()
	return Receipt{
		OrderID: s.ID, Status: s.Status, PaidAt: s.PaidAt,
		Amount: s.Total.Units(), Currency: s.Total.Currency().Code(), PaymentID: s.PaymentID,
	}
}

// happened leaves out what has no time yet.
func happened(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
