// Package order holds the Order aggregate and its payment state machine: what may happen to an order, and nothing of
// how it is stored, asked for or shown.
package order

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kakutei/domain/fault"
	"kakutei/domain/money"
	"kakutei/domain/payment"
)

var (
	// ErrNotFound says that there is no such order for this customer. Another customer's order is no different.
	ErrNotFound = fault.New("order_not_found", fault.AfterFix, "there is no such order")
	// ErrAmountMismatch says that the money asked for is not the order's.
	ErrAmountMismatch = fault.New("amount_mismatch", fault.NewKey, "the amount or currency differs from the order's")
	// ErrInvalidState says that the order's state does not allow this; the member orderStatus tells the state.
	ErrInvalidState = fault.New("invalid_state", fault.NewKey, "the order's state does not allow this")
	// ErrPaymentInProgress says that the order's payment is running, or its outcome unknown, under another key, or that
	// its row is busy for the moment.
	ErrPaymentInProgress = fault.New("payment_in_progress", fault.SameKey,
		"the order is being paid, or busy for the moment; its payment is not decided yet")
	// ErrOtherAttempt says that a provider's answer is for an attempt that does not run any more: an accident, never an
	// outcome, and no client's business.
	ErrOtherAttempt = errors.New("order: this attempt does not run any more")
	// ErrTotalChanged says that the order's total is not what its attempt asks for: a hand has changed it meanwhile. No
	// client's business either: a person makes the total good, or has the charge refunded.
	ErrTotalChanged = errors.New("order: its total was changed while it was being paid")
	// ErrChargeTaken says that another order is PAID by this charge: one charge pays one order.
	ErrChargeTaken = errors.New("order: another order is paid by this charge")
)

// ID names an order: a UUID in its canonical lower-case text.
type ID string

// NewID is a fresh id, ordered by time (UUID version 7, RFC 9562).
func NewID() ID { return ID(uuid.Must(uuid.NewV7()).String()) }

// ParseID reads an id from outside. A text that cannot be an id names no order: ErrNotFound.
func ParseID(text string) (ID, error) {
	parsed, err := uuid.Parse(text)
	if err != nil || parsed.String() != text {
		return "", ErrNotFound
	}
	return ID(text), nil
}

// State is the order as it is stored and shown. It is a copy: changing it changes no order.
type State struct {
	ID       ID
	Customer string
	Status   Status
	Total    money.Money
	Lines    []Line
	PlacedAt time.Time

	Attempt   payment.Attempt // the running or the last one; number 0 before the first
	PayingKey string          // of the request that runs the attempt; empty unless PAYMENT_PENDING

	PaymentID string // the service's own
	ChargeID  string // the provider's
	PaidAt    time.Time

	CancelledAt  time.Time
	CancelReason string

	Version int // of the stored row, 0 before it is stored
}

// Order is the aggregate. Its verbs change it or refuse, and a refusal leaves it as it was.
type Order struct{ s State }

// Place is a new order of what is in the cart.
func Place(customer string, cart Cart, now time.Time) *Order {
	return &Order{State{
		ID: NewID(), Customer: customer, Status: Placed, Total: cart.total, Lines: cart.Lines(), PlacedAt: now,
	}}
}

// Rehydrate is the order as it was stored. It checks nothing: what was legal then may not be now.
func Rehydrate(s State) *Order {
	s.Lines = append([]Line(nil), s.Lines...)
	return &Order{s}
}

// Pays tells whether the request under this key, over this money, is the one that runs the order's attempt.
func (s State) Pays(key string, m money.Money) bool {
	return s.Status == PaymentPending && s.PayingKey == key && s.Attempt.Money == m
}

// State is the one way out.
func (o *Order) State() State {
	s := o.s
	s.Lines = append([]Line(nil), s.Lines...)
	return s
}

// PaymentRequest is who wants to pay what, and how.
type PaymentRequest struct {
	Key    string // the request's idempotency key
	Money  money.Money
	Method string
	// Provider is whom a new attempt is asked of.
	Provider string
	// Resumed says that an earlier run of this request has begun the payment and may have charged it. An order that is
	// PLACED all the same was made so by a hand, or by a failover that lost what that run had marked.
	Resumed bool
}

// BeginPayment marks the order as being paid by the request and returns the attempt to charge. The request that runs
// the attempt finds it again, however often it is taken over. Nothing is due when the same money is paid already. A payment
// that is resumed begins no second attempt: the first may have been charged.
//
// Errors: ErrPaymentInProgress, ErrInvalidState, ErrAmountMismatch.
func (o *Order) BeginPayment(r PaymentRequest, now time.Time) (attempt payment.Attempt, due bool, err error) {
	if o.s.Status == PaymentPending {
		if !o.s.Pays(r.Key, r.Money) {
			return payment.Attempt{}, false, ErrPaymentInProgress
		}
		return o.s.Attempt, true, nil
	}
	if o.s.Status == Cancelled || o.s.Status == Placed && r.Resumed {
		return payment.Attempt{}, false, o.refuse(beginPayment)
	}
	if r.Money != o.s.Total {
		return payment.Attempt{}, false, ErrAmountMismatch.Saying("the order is over %s, not %s", o.s.Total, r.Money)
	}
	if o.s.Status == Paid {
		return payment.Attempt{}, false, nil
	}
	if err := o.move(beginPayment); err != nil {
		return payment.Attempt{}, false, err
	}
	o.s.PayingKey = r.Key
	o.s.Attempt = payment.Attempt{
		OrderID: string(o.s.ID), Number: o.s.Attempt.Number + 1, Money: r.Money, Method: r.Method, BegunAt: now,
		WrittenOff: o.s.Attempt.WrittenOff, Provider: r.Provider,
	}
	return o.s.Attempt, true, nil
}

// ConfirmPayment records the charge of the running attempt. Errors: ErrOtherAttempt, payment.ErrAmountConflict,
// ErrTotalChanged.
func (o *Order) ConfirmPayment(attempt int, charge payment.Charge, now time.Time) error {
	if !o.runs(attempt) {
		return ErrOtherAttempt
	}
	if err := o.s.Attempt.Check(charge); err != nil {
		return err
	}
	if o.TotalChanged() {
		return fmt.Errorf("%w: it is over %s, and charge %s took %s", ErrTotalChanged, o.s.Total, charge.ID, charge.Money)
	}
	if err := o.move(confirmPayment); err != nil {
		return err
	}
	o.s.PayingKey = ""
	o.s.PaymentID, o.s.ChargeID, o.s.PaidAt = uuid.Must(uuid.NewV7()).String(), charge.ID, now
	return nil
}

// TotalChanged tells whether a hand has changed the order's total in the store while its payment runs: no charge of the
// attempt pays it then.
func (o *Order) TotalChanged() bool {
	return o.s.Status == PaymentPending && o.s.Attempt.Money != o.s.Total
}

// DeclinePayment ends the running attempt without money and leaves the order open for the next. Error: ErrOtherAttempt.
func (o *Order) DeclinePayment(attempt int, d payment.Decline) error {
	if !o.runs(attempt) {
		return ErrOtherAttempt
	}
	if err := o.move(declinePayment); err != nil {
		return err
	}
	o.s.PayingKey = ""
	if d.WriteOff {
		o.s.Attempt.WrittenOff = attempt
	}
	return nil
}

// WriteOff ends the last attempt by a person's word after a hand has made the order PLACED while it ran: nobody has told
// the provider, so whoever comes after it looks for its charge first. Of any other order there is nothing to write off.
func (o *Order) WriteOff() (changed bool) {
	if o.s.Status != Placed || o.s.Attempt.WrittenOff == o.s.Attempt.Number {
		return false
	}
	o.s.Attempt.WrittenOff = o.s.Attempt.Number
	return true
}

// Cancel ends an order that nobody has paid or is paying. One that is cancelled stays as it was, with its first reason:
// changed is false. Errors: ErrPaymentInProgress, ErrInvalidState.
func (o *Order) Cancel(reason string, now time.Time) (changed bool, err error) {
	if o.s.Status == Cancelled {
		return false, nil
	}
	if err := o.move(cancel); err != nil {
		return false, err
	}
	o.s.CancelledAt, o.s.CancelReason = now, reason
	return true, nil
}

func (o *Order) runs(attempt int) bool {
	return o.s.Status == PaymentPending && o.s.Attempt.Number == attempt
}
