package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"kakutei/domain/money"
	"kakutei/domain/payment"
)

// Why the simulator gives no answer. To its caller each means unknown.
var (
	// ErrOtherRequest says that the gateway key belongs to another request: other order, attempt, money or method. This
	// one has had no effect.
	ErrOtherRequest = errors.New("gateway: this key was used for another request")
	// ErrLostAnswer says that the request is booked and its answer lost on the way.
	ErrLostAnswer = errors.New("gateway: the answer was lost")
	// ErrUnavailable says that the call failed before any effect.
	ErrUnavailable = errors.New("gateway: the provider is not available")
)

// Simulator is a little payment provider with a book of its own. What it does with the money follows from the payment
// method (docs/contract.md, Orders). It books first and answers then: whatever delays, loses or fails an answer concerns the
// first call per gateway key, as its book says; later calls are answered from the book at once.
type Simulator struct {
	book  Book
	clock func() time.Time
}

// NewSimulator is a provider with this book. Its clock dates what it books.
func NewSimulator(book Book, clock func() time.Time) *Simulator {
	return &Simulator{book: book, clock: clock}
}

// Charge implements payment.Gateway.
func (s *Simulator) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	reply, err := s.Ask(ctx, a.GatewayKey(), a)
	return reply.Answer, err
}

// Reply is a definite answer, and whether this very call had it booked.
type Reply struct {
	payment.Answer
	Repeat bool // answered from what an earlier or a concurrent call has booked
}

// Ask asks for the attempt's money under a gateway key of the caller's choice: as Charge, for those who serve the
// simulator to others. When the context ends while the answer is late, the money stays taken.
//
// Errors: ErrOtherRequest, ErrLostAnswer, ErrUnavailable, the book's and the context's.
func (s *Simulator) Ask(ctx context.Context, gatewayKey string, a payment.Attempt) (Reply, error) {
	m := mannerOf(a.Method)
	line := s.lineOf(gatewayKey, a, m)
	stands, entered, err := s.book.Enter(ctx, m.first(line))
	if err != nil {
		return Reply{}, fmt.Errorf("gateway: entering %s: %w", gatewayKey, err)
	}
	if !stands.asksTheSame(line) {
		return Reply{}, ErrOtherRequest
	}
	if err := m.hinder(ctx, entered); err != nil {
		return Reply{}, err
	}
	booked := entered
	if stands.Status == Failed {
		if stands, booked, err = s.book.Settle(ctx, line); err != nil {
			return Reply{}, fmt.Errorf("gateway: settling %s: %w", gatewayKey, err)
		}
	}
	answer, err := stands.answer()
	return Reply{Answer: answer, Repeat: !booked}, err
}

// Lookup implements payment.Gateway: what the book says of the order, oldest first.
func (s *Simulator) Lookup(ctx context.Context, orderID string) ([]payment.Booking, error) {
	lines, err := s.book.OfOrder(ctx, orderID)
	if err != nil {
		return nil, fmt.Errorf("gateway: looking up order %s: %w", orderID, err)
	}
	bookings := bookingsOf(lines)
	for _, b := range bookings {
		if b.Unreadable != nil {
			return nil, b.Unreadable
		}
	}
	return bookings, nil
}

// Charges implements payment.Statement. Error: ErrCursor.
func (s *Simulator) Charges(
	ctx context.Context, since time.Time, after string, limit int,
) (page []payment.Booking, next string, err error) {
	lines, next, err := s.book.Since(ctx, since, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("gateway: listing charges: %w", err)
	}
	return bookingsOf(lines), next, nil
}

func bookingsOf(lines []Line) []payment.Booking {
	bookings := make([]payment.Booking, len(lines))
	for i, l := range lines {
		b := payment.Booking{OrderID: l.OrderID, Attempt: l.Attempt, GatewayKey: l.GatewayKey}
		if answer, err := l.answer(); err != nil {
			b.Unreadable = fmt.Errorf("%w: %w", payment.ErrUnreadable, err)
		} else {
			b.Answer = answer
		}
		bookings[i] = b
	}
	return bookings
}

// lineOf is what the request comes to when nothing hinders it.
func (s *Simulator) lineOf(gatewayKey string, a payment.Attempt, m manner) Line {
	line := Line{
		GatewayKey: gatewayKey,
		OrderID:    a.OrderID, Attempt: a.Number, Method: a.Method,
		Amount: a.Money.Units(), Currency: a.Money.Currency().Code(),
		BookedAt: s.clock().UTC().Truncate(time.Microsecond),
	}
	if m.declineCode != "" {
		line.Status, line.DeclineCode = Declined, m.declineCode
		return line
	}
	line.Status, line.ChargeID = Approved, "ch_"+strings.ReplaceAll(uuid.NewString(), "-", "")
	return line
}

func (l Line) asksTheSame(o Line) bool {
	return l.OrderID == o.OrderID && l.Attempt == o.Attempt && l.Amount == o.Amount && l.Currency == o.Currency &&
		l.Method == o.Method
}

// answer is the line in the words of the port. A failed line has none.
func (l Line) answer() (payment.Answer, error) {
	switch l.Status {
	case Approved:
		currency, err := money.ParseCurrency(l.Currency)
		if err != nil {
			return nil, fmt.Errorf("gateway: the book's line %s: %w", l.GatewayKey, err)
		}
		return payment.Charge{ID: l.ChargeID, Money: money.Of(l.Amount, currency), ChargedAt: l.BookedAt}, nil
	case Declined:
		return payment.Decline{Code: l.DeclineCode, Message: declineMessages[l.DeclineCode]}, nil
	case Failed:
	}
	return nil, fmt.Errorf("gateway: the book's line %s has no answer: %q", l.GatewayKey, l.Status)
}
