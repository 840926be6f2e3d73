package gateway

import (
	"context"
	"time"
)

// dated books one line at a time and dates each when its turn has come: so the list's order is that of its times, too.
// It is for the book of one process, which has one writer anyway.
type dated struct {
	Book
	clock func() time.Time
	turn  chan time.Time // holds the time of the last line while nobody books
}

func newDated(book Book, clock func() time.Time) *dated {
	d := &dated{Book: book, clock: clock, turn: make(chan time.Time, 1)}
	d.turn <- time.Time{}
	return d
}

// Enter implements Book.
func (d *dated) Enter(ctx context.Context, line Line) (stands Line, entered bool, err error) {
	return d.next(ctx, line, d.Book.Enter)
}

// Settle implements Book.
func (d *dated) Settle(ctx context.Context, line Line) (stands Line, settled bool, err error) {
	return d.next(ctx, line, d.Book.Settle)
}

func (d *dated) next(
	ctx context.Context, line Line, write func(context.Context, Line) (Line, bool, error),
) (stands Line, wrote bool, err error) {
	select {
	case last := <-d.turn:
		line.BookedAt = d.clock().UTC().Truncate(time.Microsecond)
		if !line.BookedAt.After(last) { // the clock stands still, or was set back
			line.BookedAt = last.Add(time.Microsecond)
		}
		defer func() { d.turn <- line.BookedAt }()
		return write(ctx, line)
	case <-ctx.Done():
		return Line{}, false, ctx.Err()
	}
}
