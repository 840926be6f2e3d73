package live

import (
	"encoding/json"
	"time"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/payment"
)

// EventView is something that happened to a record, as published (docs/contract.md, Service).
type EventView struct {
	At             time.Time             `json:"at"`
	What           port.Happening        `json:"what"`
	Operation      idempotency.Operation `json:"operation"`
	IdempotencyKey idempotency.Key       `json:"idempotencyKey"`
	OrderID        string                `json:"orderId,omitempty"`
	Refusal        fault.Code            `json:"refusal,omitempty"`
	Unanswered     bool                  `json:"unanswered,omitempty"` // of called: the provider gave no answer
	Unattended     bool                  `json:"unattended,omitempty"` // no client was waiting
	Record         *RecordView           `json:"record,omitempty"`     // none where nobody can tell
}

// RecordView is how the record stands.
type RecordView struct {
	Status     idempotency.Status `json:"status"`
	Executions int                `json:"executions"`
	LeaseEnds  *time.Time         `json:"leaseEndsAt,omitempty"` // while IN_PROGRESS
	Answer     json.RawMessage    `json:"answer,omitempty"`      // what is stored, and sent at every replay
}

// View is the event as published.
func (m Moment) View() EventView {
	e := m.Event
	view := EventView{
		At: m.At.UTC().Truncate(time.Microsecond), What: e.What, Operation: e.Scope.Operation, IdempotencyKey: e.Scope.Key, OrderID: m.OrderID,
		Refusal: e.Refusal, Unanswered: e.What == port.Called && e.Err != nil, Unattended: e.Unattended,
	}
	if r := e.Record; r.Executions > 0 {
		view.Record = &RecordView{Status: r.Status, Executions: r.Executions, Answer: r.Outcome.Document}
		if r.Status == idempotency.InProgress {
			view.Record.LeaseEnds = &r.LeaseEnds
		}
	}
	return view
}

// BookView is what the provider's book says about an order, as published.
type BookView struct {
	OrderID string     `json:"orderId"`
	Lines   []LineView `json:"lines"`
}

// LineView is a line of the provider's book.
type LineView struct {
	GatewayKey  string     `json:"gatewayKey"`
	Attempt     int        `json:"attempt"`
	Status      string     `json:"status"` // approved, declined or unreadable
	ChargeID    string     `json:"chargeId,omitempty"`
	Amount      int64      `json:"amount,omitempty"`
	Currency    string     `json:"currency,omitempty"`
	ChargedAt   *time.Time `json:"chargedAt,omitempty"`
	DeclineCode string     `json:"declineCode,omitempty"`
}

// BookOf is the provider's list as published.
func BookOf(orderID string, list []payment.Booking) BookView {
	view := BookView{OrderID: orderID, Lines: make([]LineView, 0, len(list))}
	for _, b := range list {
		line := LineView{GatewayKey: b.GatewayKey, Attempt: b.Attempt, Status: "unreadable"}
		switch answer := b.Answer.(type) {
		case payment.Charge:
			line.Status, line.ChargeID, line.ChargedAt = "approved", answer.ID, &answer.ChargedAt
			line.Amount, line.Currency = answer.Money.Units(), answer.Money.Currency().Code()
		case payment.Decline:
			line.Status, line.DeclineCode = "declined", answer.Code
		}
		view.Lines = append(view.Lines, line)
	}
	return view
}
