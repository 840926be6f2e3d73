package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/money"
)

var entries = []check{
	{"an entry comes back as it was booked, to the last character and microsecond", func(t *testing.T, s Opened) {
		for name, want := range entriesOf(t) {
			assert.Equal(t, want, posted(t, s.Work, want), name)
			assert.Equal(t, want, entryIn(t, s.Beside, want.ID), name)
		}
	}},
	// C103: a second content is neither booked nor lost in silence.
	{"who posts a document again is told what stands, whatever he brings", func(t *testing.T, s Opened) {
		for name, first := range entriesOf(t) {
			posted(t, s.Work, first)
			again := journal.Book(journal.NewID(), first.Content, "bob", instant(time.Hour))
			other := again
			other.ID, other.Currency = journal.NewID(), money.JPY
			other.Lines = lines(first.Source.Total, "other debits", "other credits")
			other.Fingerprint = other.Content.Fingerprint()

			assert.Equal(t, first, posted(t, s.Beside, again), name)
			assert.Equal(t, first, posted(t, s.Beside, other), name)
			assert.Equal(t, first, entryIn(t, s.Work, first.ID), name)
			assertNoEntry(t, s.Work, again.ID)
			assertNoEntry(t, s.Work, other.ID)
		}
	}},
	// A commit without an answer is settled so: what was posted under the same id has been booked by this very posting.
	{"an entry that is posted again under its own id finds itself", func(t *testing.T, s Opened) {
		first := invoice(t, "inv-1")
		posted(t, s.Work, first)
		again := first
		again.PostedAt = instant(time.Hour)
		assert.Equal(t, first, posted(t, s.Beside, again))
	}},
	{"documents whose posting keys differ are booked apart", func(t *testing.T, s Opened) {
		first, second := invoice(t, "inv-1"), invoice(t, "INV-1")
		posted(t, s.Work, first)
		assert.Equal(t, second, posted(t, s.Work, second))
		assert.Equal(t, first, entryIn(t, s.Beside, first.ID))
	}},
	{"an unknown id names no entry", func(t *testing.T, s Opened) {
		posted(t, s.Work, invoice(t, "inv-1"))
		assertNoEntry(t, s.Work, journal.NewID())
	}},
	{"one id is one entry", func(t *testing.T, s Opened) {
		first, twin := invoice(t, "inv-1"), invoice(t, "inv-2")
		posted(t, s.Work, first)
		twin.ID = first.ID
		_, err := post(t.Context(), s.Beside, twin)
		require.Error(t, err)
		require.NotErrorIs(t, err, port.ErrCommitUnknown)
		assert.Equal(t, first, entryIn(t, s.Work, first.ID))
		twin.ID = journal.NewID()
		assert.Equal(t, twin, posted(t, s.Work, twin), "the refused posting has left its document free")
	}},
	{"what a caller does to his copy of the lines changes nothing that is booked", func(t *testing.T, s Opened) {
		want := invoice(t, "inv-1")
		given := want
		given.Lines = append([]journal.Line(nil), want.Lines...)
		for range 2 { // booked, then met
			do(t, s.Work, func(tx port.Tx) error {
				err := tx.Journal().Post(t.Context(), given, func(stands journal.Entry) {
					stands.Lines[0].Account = "mine"
				})
				given.Lines[0].Account = "mine too"
				return err
			})
		}
		entryIn(t, s.Work, want.ID).Lines[1].Account = "mine as well"
		assert.Equal(t, want, entryIn(t, s.Beside, want.ID))
	}},
	{"what stands is told by the next read at the latest", func(t *testing.T, s Opened) {
		first, second := invoice(t, "inv-1"), invoice(t, "inv-1")
		posted(t, s.Work, first)
		do(t, s.Beside, func(tx port.Tx) error {
			var stands journal.Entry
			keep := func(e journal.Entry) { stands = e }
			if err := tx.Journal().Post(t.Context(), second, keep); err != nil {
				return err
			}
			_, err := tx.Journal().Find(t.Context(), first.ID)
			assert.Equal(t, first, stands)
			return err
		})
	}},
	{"a transaction sees what it has posted itself", func(t *testing.T, s Opened) {
		e, again := invoice(t, "inv-1"), invoice(t, "inv-1")
		do(t, s.Work, func(tx port.Tx) error {
			if err := tx.Journal().Post(t.Context(), e, func(journal.Entry) {}); err != nil {
				return err
			}
			found, err := tx.Journal().Find(t.Context(), e.ID)
			require.NoError(t, err)
			assert.Equal(t, e, found)
			return tx.Journal().Post(t.Context(), again, func(stands journal.Entry) { assert.Equal(t, e, stands) })
		})
		assert.Equal(t, e, entryIn(t, s.Beside, e.ID))
		assertNoEntry(t, s.Beside, again.ID)
	}},
	{"a function's error and a panic leave no entry, and the document free", func(t *testing.T, s Opened) {
		e := invoice(t, "inv-1")
		require.ErrorIs(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := sendingPost(t, tx, e); err != nil {
				return err
			}
			return errStep
		}), errStep)
		require.PanicsWithValue(t, "bug", func() {
			_ = s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				require.NoError(t, sendingPost(t, tx, e))
				panic("bug")
			})
		})
		assertNoEntry(t, s.Beside, e.ID)
		next := invoice(t, "inv-1")
		assert.Equal(t, next, posted(t, s.Beside, next))
	}},
	{"a reading transaction books nothing", func(t *testing.T, s Opened) {
		e := invoice(t, "inv-1")
		require.Error(t, s.Work.Read(t.Context(), func(tx port.Tx) error {
			return tx.Journal().Post(t.Context(), e, func(journal.Entry) {})
		}))
		assertNoEntry(t, s.Work, e.ID)
	}},
	// Not even a program that forgets to ask journal.NewContent books half an entry.
	{"an entry that is not whole and balanced is refused", func(t *testing.T, s Opened) {
		for name, broken := range brokenEntries(t) {
			_, err := post(t.Context(), s.Work, broken)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, port.ErrCommitUnknown, name)
			assertNoEntry(t, s.Beside, broken.ID)
		}
	}},
}

// entriesOf is an entry of each kind, with texts and numbers at the edges of their ranges.
func entriesOf(t *testing.T) map[string]journal.Entry {
	t.Helper()
	dinar, err := money.ParseCurrency("KWD")
	require.NoError(t, err)
	odd := "o<&>\"'é\u2028\\ \U0001f375 {\"a\":1}"
	at := func(e journal.Entry, by string, plus time.Duration) journal.Entry {
		e.PostedBy, e.PostedAt = by, instant(plus)
		return e
	}
	return map[string]journal.Entry{
		"by rule": invoice(t, "inv-1"),
		"a credit note": at(booked(t, journal.SourceDocument{
			Company: "company-uuid", Type: journal.PurchaseBill, ID: "請求書 №1", Version: journal.MaxVersion,
			ServiceDate: day(t, "2024-02-29"), Total: -money.MaxUnits,
		}, dinar), "~!#$%^&*()", time.Microsecond),
		"lines of its own": at(booked(t, journal.SourceDocument{
			Company: strings.Repeat("C", journal.MaxIDLength), Type: journal.Adjustment,
			ID: strings.Repeat("\U0001f375", journal.MaxIDLength), ServiceDate: day(t, "9999-12-31"), Total: 110_000,
		}, money.JPY, []journal.Line{
			{Account: "仮受消費税", Side: journal.Credit, Amount: 10_000},
			{Account: odd, Side: journal.Debit, Amount: 109_999},
			{Account: strings.Repeat("売", journal.MaxIDLength), Side: journal.Credit, Amount: 99_999},
			{Account: odd, Side: journal.Debit, Amount: 1},
			{Account: odd, Side: journal.Credit, Amount: 1},
		}...), "alice", 999_999*time.Microsecond),
		"the largest total": booked(t, journal.SourceDocument{
			Company: "c", Type: journal.OpeningBalance, ID: odd, ServiceDate: day(t, "0001-01-01"), Total: money.MaxUnits,
		}, money.JPY),
		"an expense": booked(t, journal.SourceDocument{
			Company: "Company';--", Type: journal.ExpenseClaim, ID: "e\u0301", ServiceDate: day(t, "2026-03-29"), Total: 1,
		}, money.JPY),
	}
}

// brokenEntries break one rule of the books each.
func brokenEntries(t *testing.T) map[string]journal.Entry {
	t.Helper()
	broken := map[string]journal.Entry{}
	breaking := func(name string, change func(e *journal.Entry)) {
		e := invoice(t, "inv "+name)
		change(&e)
		broken[name] = e
	}
	breaking("no lines", func(e *journal.Entry) { e.Lines = nil })
	breaking("one side alone", func(e *journal.Entry) { e.Lines = e.Lines[:1] })
	breaking("unbalanced", func(e *journal.Entry) { e.Lines[1].Amount++ })
	breaking("balanced, but not the total", func(e *journal.Entry) { e.Lines = lines(999, "a", "b") })
	breaking("an amount of 0", func(e *journal.Entry) {
		e.Lines = append(e.Lines, journal.Line{Account: "a", Side: journal.Debit})
	})
	breaking("a negative amount", func(e *journal.Entry) {
		e.Lines = append(lines(1001, "a", "b"), lines(-1, "c", "d")...)
		e.Lines[2].Side, e.Lines[2].Amount = journal.Debit, -1
		e.Lines[3].Side, e.Lines[3].Amount = journal.Credit, -1
	})
	breaking("a third side", func(e *journal.Entry) {
		e.Lines = append(e.Lines, journal.Line{Account: "a", Side: "both", Amount: 1})
	})
	breaking("a line without account", func(e *journal.Entry) { e.Lines[0].Account = "" })
	breaking("a total of 0", func(e *journal.Entry) { e.Source.Total = 0 })
	breaking("a negative version", func(e *journal.Entry) { e.Source.Version = -1 })
	breaking("an unknown type", func(e *journal.Entry) { e.Source.Type = "receipt" })
	breaking("no date", func(e *journal.Entry) { e.Source.ServiceDate = journal.Date{} })
	breaking("no currency", func(e *journal.Entry) { e.Currency = money.Currency{} })
	breaking("no posting key", func(e *journal.Entry) { e.PostingKey = "" })
	return broken
}

// invoice is an entry over 1000 yen, booked by the rule, by alice.
func invoice(t *testing.T, id string) journal.Entry {
	t.Helper()
	return booked(t, journal.SourceDocument{
		Company: "company-uuid", Type: journal.SalesInvoice, ID: id, Version: 1,
		ServiceDate: day(t, "2025-01-29"), Total: 1000,
	}, money.JPY)
}

func booked(t *testing.T, d journal.SourceDocument, c money.Currency, l ...journal.Line) journal.Entry {
	t.Helper()
	content, err := journal.NewContent(d, c, l)
	require.NoError(t, err)
	return journal.Book(journal.NewID(), content, alice, instant(0))
}

// lines are two, of a positive or a negative total.
func lines(total int64, debit, credit string) []journal.Line {
	sides := []journal.Side{journal.Debit, journal.Credit}
	if total < 0 {
		sides[0], sides[1], total = sides[1], sides[0], -total
	}
	return []journal.Line{{Account: debit, Side: sides[0], Amount: total}, {Account: credit, Side: sides[1], Amount: total}}
}

func day(t *testing.T, text string) journal.Date {
	t.Helper()
	d, err := journal.ParseDate(text)
	require.NoError(t, err)
	return d
}

// post is what stands once the posting is committed.
func post(ctx context.Context, w port.UnitOfWork, e journal.Entry) (stands journal.Entry, err error) {
	err = w.Do(ctx, port.Fully, func(tx port.Tx) error {
		stands = journal.Entry{}
		return tx.Journal().Post(ctx, e, func(found journal.Entry) { stands = found })
	})
	return stands, err
}

func posted(t *testing.T, w port.UnitOfWork, e journal.Entry) journal.Entry {
	t.Helper()
	stands, err := post(t.Context(), w, e)
	require.NoError(t, err)
	return stands
}

// sendingPost posts and has the posting sent, if it was deferred.
func sendingPost(t *testing.T, tx port.Tx, e journal.Entry) error {
	t.Helper()
	if err := tx.Journal().Post(t.Context(), e, func(journal.Entry) {}); err != nil {
		return err
	}
	_, err := tx.Journal().Find(t.Context(), e.ID)
	return err
}

func findEntry(ctx context.Context, w port.UnitOfWork, id journal.ID) (found journal.Entry, err error) {
	err = w.Read(ctx, func(tx port.Tx) (err error) {
		found, err = tx.Journal().Find(ctx, id)
		return err
	})
	return found, err
}

// entryIn is the booked entry as anyone else reads it.
func entryIn(t *testing.T, w port.UnitOfWork, id journal.ID) journal.Entry {
	t.Helper()
	found, err := findEntry(t.Context(), w, id)
	require.NoError(t, err)
	return found
}

func assertNoEntry(t *testing.T, w port.UnitOfWork, id journal.ID) {
	t.Helper()
	_, err := findEntry(t.Context(), w, id)
	require.ErrorIs(t, err, journal.ErrNotFound)
}
