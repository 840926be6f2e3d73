// Package booktest is the contract of the simulator's book: every Book passes this suite.
package booktest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
)

// Run runs the suite. open gives a book that works until the test ends; it may be the same one each time, and others
// may write to it.
func Run(t *testing.T, open func(t *testing.T) gateway.Book) {
	for name, test := range map[string]func(t *testing.T, book gateway.Book){
		"a line is kept whole":                         aLineIsKeptWhole,
		"a request without a method stays without one": aRequestWithoutAMethodStaysWithoutOne,
		"the first line under a key stands":            theFirstLineUnderAKeyStands,
		"a failed line is settled once":                aFailedLineIsSettledOnce,
		"a settled request stays as it first came":     aSettledRequestStaysAsItFirstCame,
		"what is booked cannot be settled":             whatIsBookedCannotBeSettled,
		"nothing settles a key without a line":         nothingSettlesAKeyWithoutALine,
		"an order's lines are its own, as booked":      anOrdersLinesAreItsOwnAsBooked,
		"a failed line is not listed":                  aFailedLineIsNotListed,
		"the list since a time is whole and in order":  theListSinceATimeIsWholeAndInOrder,
		"a line that is settled is listed as of then":  aLineThatIsSettledIsListedAsOfThen,
		"lines of one instant are each listed once":    linesOfOneInstantAreEachListedOnce,
		"a page that has all lines is the last":        aPageThatHasAllLinesIsTheLast,
		"paging misses nothing that is booked":         pagingMissesNothingThatIsBooked,
		"a cursor of no page is refused":               aCursorOfNoPageIsRefused,
		"fifty at once enter one line":                 fiftyAtOnceEnterOneLine,
		"fifty at once settle one line":                fiftyAtOnceSettleOneLine,
		"a context that is over is an error":           aContextThatIsOverIsAnError,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// racers is how many goroutines ask for one key at the same time.
const racers = 50

var booked = time.Date(2026, 11, 30, 1, 2, 3, 123456000, time.UTC)

// approved is a line of an order that no other test has.
func approved() gateway.Line {
	orderID := uuid.NewString()
	return gateway.Line{
		GatewayKey: orderID + ":1", OrderID: orderID, Attempt: 1, Amount: 9007199254740991, Currency: "JPY",
		Method: "pm_ok", Status: gateway.Approved, ChargeID: "ch_" + uuid.NewString(), BookedAt: booked,
	}
}

func failed(l gateway.Line) gateway.Line {
	l.Method, l.Status, l.ChargeID, l.DeclineCode = "pm_unavailable", gateway.Failed, "", ""
	return l
}

func declined(l gateway.Line) gateway.Line {
	l.Method, l.Status, l.ChargeID, l.DeclineCode = "pm_declined", gateway.Declined, "", "card_declined"
	return l
}

func aLineIsKeptWhole(t *testing.T, book gateway.Book) {
	for _, line := range []gateway.Line{approved(), declined(approved()), failed(approved())} {
		stands, entered, err := book.Enter(t.Context(), line)
		require.NoError(t, err)
		assert.True(t, entered, line.Status)
		assert.Equal(t, line, stands)

		stands, entered, err = book.Enter(t.Context(), line)
		require.NoError(t, err)
		assert.False(t, entered, line.Status)
		assert.Equal(t, line, stands)
	}
}

func aRequestWithoutAMethodStaysWithoutOne(t *testing.T, book gateway.Book) {
	line := approved()
	line.Method = ""
	_, _, err := book.Enter(t.Context(), line)
	require.NoError(t, err)
	assertListed(t, book, line.OrderID, line)
}

func theFirstLineUnderAKeyStands(t *testing.T, book gateway.Book) {
	first, second := approved(), declined(approved())
	second.GatewayKey = first.GatewayKey
	_, _, err := book.Enter(t.Context(), first)
	require.NoError(t, err)

	stands, entered, err := book.Enter(t.Context(), second)
	require.NoError(t, err)
	assert.False(t, entered)
	assert.Equal(t, first, stands)
	assertListed(t, book, first.OrderID, first)
	assertListed(t, book, second.OrderID)
}

func aFailedLineIsSettledOnce(t *testing.T, book gateway.Book) {
	for _, become := range []func(gateway.Line) gateway.Line{
		func(l gateway.Line) gateway.Line { return l }, declined,
	} {
		settling := become(approved())
		line := failed(settling)
		_, _, err := book.Enter(t.Context(), line)
		require.NoError(t, err)
		want := line
		want.Status, want.ChargeID, want.DeclineCode = settling.Status, settling.ChargeID, settling.DeclineCode
		want.BookedAt = booked.Add(time.Microsecond)

		stands, settled, err := book.Settle(t.Context(), want)
		require.NoError(t, err)
		assert.True(t, settled)
		assert.Equal(t, want, stands)

		stands, settled, err = book.Settle(t.Context(), want)
		require.NoError(t, err)
		assert.False(t, settled)
		assert.Equal(t, want, stands)
		assertListed(t, book, line.OrderID, want)
	}
}

func aSettledRequestStaysAsItFirstCame(t *testing.T, book gateway.Book) {
	line := failed(approved())
	_, _, err := book.Enter(t.Context(), line)
	require.NoError(t, err)
	settling := approved()
	settling.GatewayKey = line.GatewayKey
	settling.Attempt, settling.Amount, settling.Currency = 2, 7, "EUR"
	want := line
	want.Status, want.ChargeID = gateway.Approved, settling.ChargeID

	stands, settled, err := book.Settle(t.Context(), settling)
	require.NoError(t, err)
	assert.True(t, settled)
	assert.Equal(t, want, stands)
	assertListed(t, book, line.OrderID, want)
}

func whatIsBookedCannotBeSettled(t *testing.T, book gateway.Book) {
	for _, line := range []gateway.Line{approved(), declined(approved())} {
		_, _, err := book.Enter(t.Context(), line)
		require.NoError(t, err)
		other := approved()
		other.GatewayKey = line.GatewayKey

		stands, settled, err := book.Settle(t.Context(), other)
		require.NoError(t, err)
		assert.False(t, settled)
		assert.Equal(t, line, stands)
		assertListed(t, book, line.OrderID, line)
	}
}

func nothingSettlesAKeyWithoutALine(t *testing.T, book gateway.Book) {
	line := approved()
	_, settled, err := book.Settle(t.Context(), line)
	require.ErrorIs(t, err, gateway.ErrNoLine)
	assert.False(t, settled)
	assertListed(t, book, line.OrderID)
}

func anOrdersLinesAreItsOwnAsBooked(t *testing.T, book gateway.Book) {
	third := approved()
	at := func(attempt int, after time.Duration) gateway.Line {
		line := declined(third)
		line.GatewayKey, line.Attempt = fmt.Sprintf("%s:%d", line.OrderID, attempt), attempt
		line.BookedAt = booked.Add(after)
		return line
	}
	first, second, tenth := at(3, -time.Microsecond), at(2, 0), at(10, 0)
	third.Attempt, third.GatewayKey = 11, third.OrderID+":11"
	for _, line := range []gateway.Line{tenth, third, second, approved(), first} {
		_, _, err := book.Enter(t.Context(), line)
		require.NoError(t, err)
	}
	assertListed(t, book, third.OrderID, first, second, tenth, third)
}

func aFailedLineIsNotListed(t *testing.T, book gateway.Book) {
	line := failed(approved())
	_, _, err := book.Enter(t.Context(), line)
	require.NoError(t, err)
	assertListed(t, book, line.OrderID)
}

func fiftyAtOnceEnterOneLine(t *testing.T, book gateway.Book) {
	line := approved()
	stands, wrote := race(t, func(ctx context.Context) (gateway.Line, bool, error) {
		mine := line
		mine.ChargeID = "ch_" + uuid.NewString()
		return book.Enter(ctx, mine)
	})
	assert.Equal(t, 1, wrote, "lines entered")
	assertListed(t, book, line.OrderID, stands)
}

func fiftyAtOnceSettleOneLine(t *testing.T, book gateway.Book) {
	line := failed(approved())
	_, _, err := book.Enter(t.Context(), line)
	require.NoError(t, err)
	stands, wrote := race(t, func(ctx context.Context) (gateway.Line, bool, error) {
		mine := line
		mine.Status, mine.ChargeID = gateway.Approved, "ch_"+uuid.NewString()
		return book.Settle(ctx, mine)
	})
	assert.Equal(t, 1, wrote, "lines settled")
	assertListed(t, book, line.OrderID, stands)
}

func aContextThatIsOverIsAnError(t *testing.T, book gateway.Book) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	line := failed(approved())
	_, _, err := book.Enter(over, line)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = book.Settle(over, line)
	require.ErrorIs(t, err, context.Canceled)
	_, err = book.OfOrder(over, line.OrderID)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = book.Since(over, booked, "", 1)
	require.ErrorIs(t, err, context.Canceled)
}

// race runs the write in many goroutines at once. All must be told of the same line: it is returned, with the number of
// goroutines that were told they wrote it.
func race(t *testing.T, write func(context.Context) (gateway.Line, bool, error)) (stands gateway.Line, wrote int) {
	t.Helper()
	type told struct {
		line  gateway.Line
		wrote bool
		err   error
	}
	answers := make([]told, racers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			a := &answers[i]
			a.line, a.wrote, a.err = write(t.Context())
		})
	}
	close(start)
	all.Wait()
	for _, a := range answers {
		require.NoError(t, a.err)
		assert.Equal(t, answers[0].line, a.line)
		if a.wrote {
			wrote++
		}
	}
	return answers[0].line, wrote
}

func assertListed(t *testing.T, book gateway.Book, orderID string, want ...gateway.Line) {
	t.Helper()
	lines, err := book.OfOrder(t.Context(), orderID)
	require.NoError(t, err)
	require.Len(t, lines, len(want))
	for i := range want {
		assert.Equal(t, want[i], lines[i])
	}
}
