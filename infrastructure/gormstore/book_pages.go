package gormstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kakutei/infrastructure/gateway"
)

// bookmark is where a page of the book ended, and what may still come to stand before it: PostgreSQL's transactions get
// their numbers when they first write and commit in any order. A line whose transaction was at work while a page was
// read is not on that page; it is looked for again on the next one.
type bookmark struct {
	position int64
	key      string  // of the last line at the position: lines written by hand share one
	atWork   []int64 // transactions with a number up to the position that had not ended then, ascending
}

// String is the bookmark as a cursor: the numbers, then the key.
func (m bookmark) String() string {
	numbers := strconv.FormatInt(m.position, 10)
	for _, x := range m.atWork {
		numbers += "." + strconv.FormatInt(x, 10)
	}
	return numbers + "~" + m.key
}

// parseBookmark reads a cursor back. Error: gateway.ErrCursor.
func parseBookmark(cursor string) (bookmark, error) {
	numbers, key, whole := strings.Cut(cursor, "~")
	if !whole || key == "" {
		return bookmark{}, gateway.ErrCursor
	}
	m := bookmark{key: key}
	for i, text := range strings.Split(numbers, ".") {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n < 0:
			return bookmark{}, gateway.ErrCursor
		case i == 0:
			m.position = n
		default:
			m.atWork = append(m.atWork, n)
		}
	}
	return m, nil
}

// placed is a line with its place in the order of booking, and the transactions at work when it was read.
type placed struct {
	gateway.Line
	position int64
	atWork   string
}

// after is the bookmark behind a page's last line, when this one has been there before and the page was full.
func (m bookmark) after(last placed) (bookmark, error) {
	next := bookmark{position: last.position, key: last.GatewayKey}
	if last.position < m.position { // it was late itself: those behind it are still to be looked for
		next = bookmark{position: m.position, key: m.key}
		for _, x := range m.atWork {
			if x > last.position {
				next.atWork = append(next.atWork, x)
			}
		}
	}
	for text := range strings.SplitSeq(last.atWork, ",") {
		if text == "" {
			continue
		}
		x, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return bookmark{}, err
		}
		if x < next.position {
			next.atWork = append(next.atWork, x)
		}
	}
	slices.Sort(next.atWork)
	next.atWork = slices.Compact(next.atWork)
	return next, nil
}

// atWork are the numbers of the transactions that are neither committed nor undone in the statement's own view, joined
// by commas: the last part of PostgreSQL's text for a snapshot.
var atWork = map[string]string{
	"sqlite":   `''`,
	"postgres": `split_part(CAST(pg_current_snapshot() AS text), ':', 3)`,
}

// A page is one statement, and so one view: what was at work when the page before was read, then what follows it. Each
// half finds its index.
const (
	listed = `SELECT ` + chargeColumns + `, position FROM simulator_charges
	WHERE booked_at >= @since AND status <> 'failed' AND `
	wasAtWork = `position IN @late`
	follows   = `position >= @position AND (position > @position OR gateway_key > @key)`
	// What stands before the first line of the time is of an earlier one. The sum keeps the planner from looking for the
	// least position of all that is of the time, from the book's beginning on.
	isOfTheTime = `position >= (SELECT min(position + 0) FROM simulator_charges WHERE booked_at >= @since)`

	pageOfLines = `SELECT page.*, %s FROM (
	` + listed + wasAtWork + `
	UNION ALL SELECT * FROM (` + listed + `%s ORDER BY position, gateway_key LIMIT @limit) AS following
) AS page ORDER BY position, gateway_key LIMIT @limit`
)

// Since implements gateway.Book.
func (b Book) Since(
	ctx context.Context, since time.Time, after string, limit int,
) (lines []gateway.Line, next string, err error) {
	var from bookmark
	where := isOfTheTime
	if after != "" {
		if from, err = parseBookmark(after); err != nil {
			return nil, "", err
		}
		where = follows
	}
	var page []placed
	err = b.store.read(ctx, func(tx *session) error {
		page = nil
		q := tx.sql.raw(fmt.Sprintf(pageOfLines, atWork[tx.sql.db.Name()], where), map[string]any{
			"late": from.atWork, "position": from.position, "key": from.key, "since": since.UTC(), "limit": limit + 1,
		})
		return tx.ask(ctx, q, func(answer row) error {
			var line placed
			err := scanLine(answer, &line.Line, &line.position, &line.atWork)
			page = append(page, line)
			return err
		})
	})
	if err != nil {
		return nil, "", err
	}
	for _, line := range page[:min(limit, len(page))] {
		lines = append(lines, line.Line)
	}
	if len(page) <= limit {
		return lines, "", nil
	}
	mark, err := from.after(page[limit-1])
	return lines, mark.String(), err
}
