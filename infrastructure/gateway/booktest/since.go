package booktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
)

// walk follows the list from a time to its end and returns the gateway keys, page by page.
func walk(t *testing.T, book gateway.Book, since time.Time, limit int) (pages [][]string) {
	t.Helper()
	for after := ""; ; {
		lines, next, err := book.Since(t.Context(), since, after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(lines), limit)
		pages = append(pages, keysOf(lines))
		if next == "" {
			return pages
		}
		require.NotEqual(t, after, next, "a page that leads to itself")
		require.NotEmpty(t, lines, "a page without lines that goes on")
		after = next
	}
}

func keysOf(lines []gateway.Line) []string {
	keys := make([]string, len(lines))
	for i, l := range lines {
		keys[i] = l.GatewayKey
	}
	return keys
}

func enter(t *testing.T, book gateway.Book, line gateway.Line) gateway.Line {
	t.Helper()
	_, entered, err := book.Enter(t.Context(), line)
	require.NoError(t, err)
	require.True(t, entered)
	return line
}

func at(l gateway.Line, after time.Duration) gateway.Line {
	l.BookedAt = booked.Add(after)
	return l
}

func theListSinceATimeIsWholeAndInOrder(t *testing.T, book gateway.Book) {
	enter(t, book, at(approved(), -time.Microsecond))
	want := []gateway.Line{
		enter(t, book, approved()), enter(t, book, at(declined(approved()), time.Hour)),
		enter(t, book, at(approved(), time.Minute)), // dated early, booked late
	}
	enter(t, book, failed(approved()))
	lines, next, err := book.Since(t.Context(), booked, "", 10)
	require.NoError(t, err)
	assert.Equal(t, want, lines)
	assert.Empty(t, next)

	for limit := 1; limit <= 4; limit++ {
		assert.Equal(t, keysOf(want), slices.Concat(walk(t, book, booked, limit)...), "pages of %d", limit)
	}
	assert.Equal(t, keysOf(want[1:]), slices.Concat(walk(t, book, booked.Add(time.Microsecond), 2)...))
	assert.Empty(t, slices.Concat(walk(t, book, booked.Add(2*time.Hour), 2)...))
}

func aLineThatIsSettledIsListedAsOfThen(t *testing.T, book gateway.Book) {
	late := enter(t, book, failed(approved()))
	first := enter(t, book, approved())
	assert.Equal(t, []string{first.GatewayKey}, slices.Concat(walk(t, book, booked, 1)...))

	_, next, err := book.Since(t.Context(), booked, "", 1)
	require.NoError(t, err)
	require.Empty(t, next)
	enter(t, book, approved())
	_, next, err = book.Since(t.Context(), booked, "", 1)
	require.NoError(t, err)
	settling := approved()
	settling.GatewayKey, settling.BookedAt = late.GatewayKey, booked.Add(-time.Hour)
	_, settled, err := book.Settle(t.Context(), settling)
	require.NoError(t, err)
	require.True(t, settled)
	lines, _, err := book.Since(t.Context(), booked.Add(-time.Hour), next, 10)
	require.NoError(t, err)
	require.Len(t, lines, 2)
	assert.Equal(t, late.GatewayKey, lines[1].GatewayKey, "behind the page that was read before, whatever its time")
}

func linesOfOneInstantAreEachListedOnce(t *testing.T, book gateway.Book) {
	var want []string
	for range 5 {
		want = append(want, enter(t, book, approved()).GatewayKey)
	}
	for limit := 1; limit <= 6; limit++ {
		assert.Equal(t, want, slices.Concat(walk(t, book, booked, limit)...), "pages of %d", limit)
	}
}

func aPageThatHasAllLinesIsTheLast(t *testing.T, book gateway.Book) {
	assert.Equal(t, [][]string{{}}, walk(t, book, booked, 2), "an empty book has one page")
	first, second := enter(t, book, approved()), enter(t, book, approved())
	assert.Equal(t, [][]string{{first.GatewayKey, second.GatewayKey}}, walk(t, book, booked, 2))
}

// pagingMissesNothingThatIsBooked reads on while writers date their lines before they have their turn: so lines are
// committed in another order than that of their times.
func pagingMissesNothingThatIsBooked(t *testing.T, book gateway.Book) {
	const writers, each = 8, 50
	start, done := make(chan struct{}), make(chan struct{})
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			<-start
			for i := range each {
				line := at(approved(), time.Duration(i)*time.Millisecond)
				if i%5 == 0 {
					line = failed(line)
				}
				_, _, err := book.Enter(t.Context(), line)
				if err == nil && line.Status == gateway.Failed {
					line.Status, line.ChargeID = gateway.Approved, fmt.Sprintf("ch_%d_%d", w, i)
					_, _, err = book.Settle(t.Context(), line)
				}
				assert.NoError(t, err)
			}
		})
	}
	go func() {
		writing.Wait()
		close(done)
	}()
	close(start)

	times := map[string]int{}
	for after, over := "", false; ; {
		select {
		case <-done:
			over = true
		default:
		}
		lines, next, err := book.Since(t.Context(), booked, after, 3)
		require.NoError(t, err)
		if next == "" && !over {
			continue // the same page again, until there is another behind it
		}
		for _, l := range lines {
			times[l.GatewayKey]++
		}
		if next == "" {
			break
		}
		after = next
	}
	assert.Len(t, times, writers*each)
	for key, n := range times {
		assert.Equal(t, 1, n, key)
	}
}

func aCursorOfNoPageIsRefused(t *testing.T, book gateway.Book) {
	enter(t, book, approved())
	for _, cursor := range []string{"x", "-1", "1.5", " ", "9223372036854775808~k", "~", "1~", "1.x~k", "1.-2~k"} {
		_, _, err := book.Since(t.Context(), booked, cursor, 1)
		require.ErrorIs(t, err, gateway.ErrCursor, cursor)
	}
}
