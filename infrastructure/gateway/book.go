// Package gateway is the way to the payment provider: a simulated one with a durable book, and one over HTTP. Whatever
// is not a definite answer is an error, which means unknown.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Status is what a line of the book says about the money.
type Status string

const (
	// Approved says that the money was taken.
	Approved Status = "approved"
	// Declined says that no money was taken and none will be under this gateway key.
	Declined Status = "declined"
	// Failed says that the first call under this gateway key failed before any effect. Such a line is no charge; it
	// keeps the request, and that its first call is over.
	Failed Status = "failed"
)

// Line is what the provider knows of one gateway key: the request as it first came, and what became of it.
type Line struct {
	GatewayKey string

	OrderID  string
	Attempt  int
	Amount   int64  // minor units
	Currency string // ISO 4217
	Method   string // as asked; empty when the request named none

	Status      Status
	ChargeID    string    // of an approved line, else empty
	DeclineCode string    // of a declined line, else empty
	BookedAt    time.Time // when the status was booked, UTC in whole microseconds
}

var (
	// ErrNoLine says that the book has no line under a gateway key.
	ErrNoLine = errors.New("gateway: the book has no line under this key")
	// ErrCursor says that no page of the book ever ended there.
	ErrCursor = errors.New("gateway: no page ever ended at this cursor")
)

// Book is the provider's durable memory: one line per gateway key, for ever, whoever asks, at the same time and from
// several processes. It stands for the outside world: its transactions are its own, never an order's. After an error
// nobody knows whether the line was written; the same call again tells.
type Book interface {
	// Enter writes the line unless its gateway key has one, and returns the line that stands now. Of all calls under one
	// key, exactly one has entered.
	Enter(ctx context.Context, line Line) (stands Line, entered bool, err error)

	// Settle gives the failed line under the gateway key this line's status, charge id, decline code and time of
	// booking; the request stays as it is. A line that is approved or declined stays whole. It returns the line that
	// stands now; of all calls under one key, at most one has settled. Error: ErrNoLine.
	Settle(ctx context.Context, line Line) (stands Line, settled bool, err error)

	// OfOrder lists the order's lines by BookedAt, then Attempt, without the failed ones.
	OfOrder(ctx context.Context, orderID string) ([]Line, error)

	// Since lists the lines with a BookedAt at or after a time, without the failed ones, limit at most, in the order in
	// which they were booked: who is booked later stands later, whatever his BookedAt. after is the next of the page
	// before, empty for the first; next is empty on the last. Whoever follows it to the end has met each line that stood
	// at that moment once, also one that was written early and committed late. Error: ErrCursor.
	Since(ctx context.Context, since time.Time, after string, limit int) (lines []Line, next string, err error)
}

// MemoryBook is a Book that lives as long as the process.
type MemoryBook struct {
	mu     sync.Mutex
	lines  map[string]Line // by gateway key
	booked []string        // the gateway keys of all lines but the failed ones, in the order of booking
}

// NewMemoryBook is an empty book.
func NewMemoryBook() *MemoryBook { return &MemoryBook{lines: map[string]Line{}} }

// Enter implements Book. Its only error is the context's.
func (b *MemoryBook) Enter(ctx context.Context, line Line) (stands Line, entered bool, err error) {
	if err := ctx.Err(); err != nil {
		return Line{}, false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if stands, found := b.lines[line.GatewayKey]; found {
		return stands, false, nil
	}
	b.write(line)
	return line, true, nil
}

// Settle implements Book. Its errors are ErrNoLine and the context's.
func (b *MemoryBook) Settle(ctx context.Context, line Line) (stands Line, settled bool, err error) {
	if err := ctx.Err(); err != nil {
		return Line{}, false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	stands, found := b.lines[line.GatewayKey]
	if !found {
		return Line{}, false, ErrNoLine
	}
	if stands.Status != Failed {
		return stands, false, nil
	}
	stands.Status, stands.ChargeID, stands.DeclineCode = line.Status, line.ChargeID, line.DeclineCode
	stands.BookedAt = line.BookedAt
	b.write(stands)
	return stands, true, nil
}

// write keeps a line that has not been approved or declined before.
func (b *MemoryBook) write(line Line) {
	b.lines[line.GatewayKey] = line
	if line.Status != Failed {
		b.booked = append(b.booked, line.GatewayKey)
	}
}

// Since implements Book. A cursor is how many lines were booked up to there. Its errors are ErrCursor and the
// context's.
func (b *MemoryBook) Since(
	ctx context.Context, since time.Time, after string, limit int,
) (lines []Line, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	begin := 0
	if after != "" {
		if begin, err = strconv.Atoi(after); err != nil || begin < 1 || begin > len(b.booked) {
			return nil, "", ErrCursor
		}
	}
	for i, key := range b.booked[begin:] {
		line := b.lines[key]
		if line.BookedAt.Before(since) {
			continue
		}
		if len(lines) == limit {
			return lines, next, nil
		}
		lines, next = append(lines, line), strconv.Itoa(begin+i+1)
	}
	return lines, "", nil
}

// OfOrder implements Book. Its only error is the context's.
func (b *MemoryBook) OfOrder(ctx context.Context, orderID string) ([]Line, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []Line
	for _, line := range b.lines {
		if line.OrderID == orderID && line.Status != Failed {
			lines = append(lines, line)
		}
	}
	slices.SortFunc(lines, func(x, y Line) int {
		return cmp.Or(x.BookedAt.Compare(y.BookedAt), cmp.Compare(x.Attempt, y.Attempt))
	})
	return lines, nil
}
