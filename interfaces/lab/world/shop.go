package world

import (
	"fmt"
	"net/http"
	"strconv"
)

// Order is a row of the shop's table.
type Order struct {
	ID       string // a UUID, as Kakutei has it
	Name     string // how the timeline calls it
	Customer string
	Total    int64 // in minor units
	Status   Status
	Charge   string // the provider's id
	Version  int    // counts changes
}

// Status is where an order stands.
type Status string

// The order's states, as far as the lab needs them.
const (
	Placed    Status = "PLACED"
	Pending   Status = "PAYMENT_PENDING"
	Paid      Status = "PAID"
	Cancelled Status = "CANCELLED"
)

// Orders is the table. It is read and written inside Process.Commit.
type Orders map[string]Order

// Refusal is why the request cannot have the order's payment: it is another customer's, or over another amount.
func (t Orders) Refusal(r Request) (refusal Answer, refused bool) {
	o := t[r.Order]
	switch {
	case o.Customer != r.Actor:
		return NotFound, true
	case o.Total != r.Amount:
		return AmountDiffers, true
	default:
		return Answer{}, false
	}
}

// Pay makes the order PAID and returns its receipt.
func (t Orders) Pay(id, charge string) Answer {
	o := t[id]
	o.Status, o.Charge, o.Version = Paid, charge, o.Version+1
	t[id] = o
	return o.Receipt()
}

// Set moves the order to a state.
func (t Orders) Set(id string, s Status) {
	o := t[id]
	o.Status, o.Version = s, o.Version+1
	t[id] = o
}

// Receipt is what the customer reads of a paid order.
func (o Order) Receipt() Answer {
	return Answer{Status: http.StatusOK, Body: fmt.Sprintf("PAID %s %d %s", o.ID, o.Total, o.Charge)}
}

// View is what the customer reads of the order as it stands.
func (o Order) View() Answer {
	return Answer{Status: http.StatusOK, Body: fmt.Sprintf("%s %s %d", o.Status, o.ID, o.Total)}
}

// Size is what a place for keys takes.
type Size struct {
	OrderBytes int // of the order, which each change of it reads and writes
	Rows       int // beside the order
}

// Operation is what a request asks for.
type Operation string

// The operations. The empty one is Confirm.
const (
	Confirm Operation = ""
	Cancel  Operation = "cancel"
)

// Request is one HTTP request as the service reads it.
type Request struct {
	Operation Operation
	Actor     string
	Key       string
	Order     string
	Amount    int64
}

// Fingerprint is the request's meaning; who asks and under which key is no part of it.
func (r Request) Fingerprint() string {
	return string(r.Operation) + " " + r.Order + " " + strconv.FormatInt(r.Amount, 10)
}

// Answer is one HTTP answer.
type Answer struct {
	Status int
	Body   string
	Again  bool // the client shall send the same request again
}

// The answers that are no receipt.
var (
	NotFound      = Answer{Status: http.StatusNotFound, Body: "order_not_found"}
	AmountDiffers = Answer{Status: http.StatusUnprocessableEntity, Body: "amount_mismatch"}
	KeyReused     = Answer{Status: http.StatusUnprocessableEntity, Body: "idempotency_key_reused"}
	PaidBefore    = Answer{Status: http.StatusConflict, Body: "already_paid"}
	Conflict      = Answer{Status: http.StatusConflict, Body: "conflict"}
	WrongState    = Answer{Status: http.StatusConflict, Body: "invalid_state"}
	NoMoney       = Answer{Status: http.StatusPaymentRequired, Body: "payment_declined"}
	InProgress    = Answer{Status: http.StatusConflict, Body: "in_progress", Again: true}
	TryAgain      = Answer{Status: http.StatusServiceUnavailable, Body: "try_again", Again: true}
)

// Provider is whoever takes the money. It charges once per gateway key, and each time when there is none.
type Provider struct {
	Book []Line // in the order of booking
	// Declining has it answer new keys with a decline.
	Declining bool

	keys map[string]Line
}

// Line is a line of the provider's book.
type Line struct {
	Order    string
	Amount   int64
	Key      string
	Charge   string // the provider's id; empty when it was declined
	Declined bool
}

// Take is the charge under the key, and whether this call had it booked.
func (b *Provider) Take(order string, amount int64, key string) (line Line, booked bool) {
	if line, known := b.keys[key]; known {
		return line, false
	}
	line = Line{Order: order, Amount: amount, Key: key, Declined: b.Declining}
	if !line.Declined {
		line.Charge = fmt.Sprintf("ch_%d", b.charges()+1)
	}
	if key != "" {
		b.keys[key] = line
	}
	b.Book = append(b.Book, line)
	return line, true
}

func (b *Provider) charges() (n int) {
	for _, line := range b.Book {
		if !line.Declined {
			n++
		}
	}
	return n
}

// Charges counts how often money was taken for the order.
func (b *Provider) Charges(order string) (n int) {
	for _, line := range b.Book {
		if line.Order == order && !line.Declined {
			n++
		}
	}
	return n
}
