package bookkeeping_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// office is a ledger over a store of its own.
type office struct {
	*bookkeeping.Ledger
	Clock *storetest.Clock
	Store *storetest.Unreliable
	Seen  *storetest.Seen
}

// onBothStores runs a check on the store that writes at once and on the one that writes as late as it may.
func onBothStores(t *testing.T, check func(t *testing.T, o office)) {
	t.Helper()
	for name, open := range map[string]func(*memory.Store) port.UnitOfWork{
		"writing at once": func(s *memory.Store) port.UnitOfWork { return s },
		"writing late":    func(s *memory.Store) port.UnitOfWork { return memory.NewDeferring(s) },
	} {
		t.Run(name, func(t *testing.T) {
			clock, seen := storetest.NewClock(), &storetest.Seen{}
			store := storetest.NewUnreliable(open(memory.New(clock.Now)))
			ledger := &bookkeeping.Ledger{Work: store, Observer: seen, Deadline: time.Minute}
			check(t, office{Ledger: ledger, Clock: clock, Store: store, Seen: seen})
		})
	}
}

const company = "company-uuid"

// invoice is alice's posting of a sales invoice over 110000 yen, with the tax in a line of its own.
func invoice(t *testing.T, id string, change ...func(*journal.SourceDocument)) bookkeeping.PostJournalEntry {
	t.Helper()
	return posting(t, id, []journal.Line{
		{Account: "accounts_receivable", Side: journal.Debit, Amount: 110_000},
		{Account: "sales", Side: journal.Credit, Amount: 100_000},
		{Account: "consumption_tax", Side: journal.Credit, Amount: 10_000},
	}, change...)
}

func posting(
	t *testing.T, id string, lines []journal.Line, change ...func(*journal.SourceDocument),
) bookkeeping.PostJournalEntry {
	t.Helper()
	day, err := journal.ParseDate("2025-01-29")
	require.NoError(t, err)
	d := journal.SourceDocument{
		Company: company, Type: journal.SalesInvoice, ID: id, Version: 1, ServiceDate: day, Total: 110_000,
	}
	for _, c := range change {
		c(&d)
	}
	content, err := journal.NewContent(d, money.JPY, lines)
	require.NoError(t, err)
	return bookkeeping.PostJournalEntry{By: "alice", Content: content}
}

func (o office) posted(t *testing.T, c bookkeeping.PostJournalEntry) bookkeeping.Posted {
	t.Helper()
	posted, err := o.PostJournalEntry(t.Context(), c)
	require.NoError(t, err)
	return posted
}

func TestTheFirstPostingOfADocumentIsBooked(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		c := invoice(t, "inv-2025-001")
		first := o.posted(t, c)
		assert.False(t, first.Repeated)
		assert.Equal(t, journal.Book(first.Entry.ID, c.Content, "alice", o.Clock.Now()), first.Entry)
		assert.EqualValues(t, "60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23", first.Entry.PostingKey)
		assert.Empty(t, o.Seen.Of(port.Duplicate))
		assert.Equal(t, 1, o.Store.Commits())
	})
}

func TestARepeatIsToldTheEntryThatStandsForEver(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		c := invoice(t, "inv-1")
		first := o.posted(t, c)
		o.Clock.Pass(10 * 365 * 24 * time.Hour)
		_, err := idempotent.Sweep(t.Context(), o.Store, idempotent.Pace{}) // C90: no cleanup forgets the books
		require.NoError(t, err)
		c.By = "bob"
		again := o.posted(t, c)
		assert.True(t, again.Repeated)
		assert.Equal(t, first.Entry, again.Entry)
	})
}

func TestARepeatIsAuditedUnderTheEntrysScope(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		c := invoice(t, "inv-1")
		first := o.posted(t, c)
		c.By = "bob"
		o.posted(t, c)
		assertTold(t, o, port.Duplicate, first.Entry)
		assert.Zero(t, o.Seen.Count(port.Mismatch))
	})
}

// assertTold shows the one event of a kind: about the entry, by whom.
func assertTold(t *testing.T, o office, what port.Happening, e journal.Entry) {
	t.Helper()
	told := o.Seen.Of(what)
	require.Len(t, told, 1)
	assert.Equal(t, idempotency.Scope{
		Operation: "PostJournalEntry", Actor: company, Key: idempotency.Key(e.PostingKey),
	}, told[0].Scope)
	assert.Contains(t, told[0].Detail, "bob")
	assert.Contains(t, told[0].Detail, e.ID)
	assert.Empty(t, told[0].Once, "each repeat is an event of its own")
}

func TestOfPostingsAtOnceOneIsBookedAndAllHaveItsEntry(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		const posts, documents = 100, 10
		var answers [posts]bookkeeping.Posted
		var requests [posts]bookkeeping.PostJournalEntry
		for i := range requests {
			requests[i] = invoice(t, fmt.Sprint("inv-", i%documents))
		}
		var running sync.WaitGroup
		for i := range posts {
			running.Go(func() {
				var err error
				answers[i], err = o.PostJournalEntry(t.Context(), requests[i])
				assert.NoError(t, err)
			})
		}
		running.Wait()

		entries, booked := map[journal.PostingKey]journal.Entry{}, 0
		for i, a := range answers {
			key := requests[i].Content.Source.PostingKey()
			if stands, known := entries[key]; known {
				assert.Equal(t, stands, a.Entry)
			}
			entries[key] = a.Entry
			if !a.Repeated {
				booked++
			}
		}
		assert.Len(t, entries, documents)
		assert.Equal(t, documents, booked)
		assert.Equal(t, posts-documents, o.Seen.Count(port.Duplicate))
	})
}

// C103: a corrected entry is not lost in silence.
func TestOtherContentUnderTheSameKeyIsAMismatch(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		first := o.posted(t, invoice(t, "inv-1"))
		other := posting(t, "inv-1", nil)
		other.By = "bob"
		answer, err := o.PostJournalEntry(t.Context(), other)
		require.ErrorIs(t, err, journal.ErrMismatch)
		assert.Equal(t, first.Entry, answer.Entry, "the edge names the original")
		assertTold(t, o, port.Mismatch, first.Entry)
		assert.Zero(t, o.Seen.Count(port.Duplicate))
		assert.Equal(t, first.Entry, o.posted(t, invoice(t, "inv-1")).Entry, "the first is unchanged")
	})
}

func TestAnotherCurrencyIsOtherContent(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		eur, err := money.ParseCurrency("EUR")
		require.NoError(t, err)
		c := invoice(t, "inv-1")
		o.posted(t, c)
		c.Content.Currency = eur
		_, err = o.PostJournalEntry(t.Context(), c)
		require.ErrorIs(t, err, journal.ErrMismatch)
	})
}

func TestWhatTheRuleSuppliesAndWhatIsSentAreOneContent(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		first := o.posted(t, posting(t, "inv-1", nil))
		again := o.posted(t, posting(t, "inv-1", []journal.Line{
			{Account: "accounts_receivable", Side: journal.Debit, Amount: 110_000},
			{Account: "sales", Side: journal.Credit, Amount: 110_000},
		}))
		assert.True(t, again.Repeated)
		assert.Equal(t, first.Entry, again.Entry)
	})
}

// C100, C103: each component makes another document, the version for one that was corrected.
func TestADocumentThatDiffersInAnyComponentIsBookedApart(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		ids := map[journal.ID]bool{o.posted(t, posting(t, "inv-1", nil)).Entry.ID: true}
		for name, change := range map[string]func(d *journal.SourceDocument){
			"company": func(d *journal.SourceDocument) { d.Company = "company-2" },
			"type":    func(d *journal.SourceDocument) { d.Type = journal.Adjustment },
			"id":      func(d *journal.SourceDocument) { d.ID = "inv-2" },
			"version": func(d *journal.SourceDocument) { d.Version = 2 },
			"total":   func(d *journal.SourceDocument) { d.Total = -110_000 },
			"date": func(d *journal.SourceDocument) {
				d.ServiceDate = journal.DateIn(time.UTC, time.Date(2025, 1, 30, 0, 0, 0, 0, time.UTC))
			},
		} {
			posted := o.posted(t, posting(t, "inv-1", nil, change))
			assert.False(t, posted.Repeated, name)
			assert.NotContains(t, ids, posted.Entry.ID, name)
			ids[posted.Entry.ID] = true
		}
	})
}

func TestAnEntryIsReadByItsCompanyAlone(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		id := string(o.posted(t, invoice(t, "inv-1")).Entry.ID)
		found, err := o.Entry(t.Context(), id, []string{"other", company})
		require.NoError(t, err)
		assert.EqualValues(t, id, found.JournalEntryID)

		for _, companies := range [][]string{nil, {"other"}, {"COMPANY-UUID"}, {company + " "}, {""}} {
			found, err := o.Entry(t.Context(), id, companies)
			require.ErrorIs(t, err, journal.ErrNotFound, companies)
			assert.Equal(t, bookkeeping.EntryView{}, found)
		}
	})
}

func TestAnIDThatNamesNoEntryIsNotFound(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		o.posted(t, invoice(t, "inv-1"))
		for _, id := range []string{string(journal.NewID()), "", "inv-1", "' OR 1=1 --", "\x00"} {
			_, err := o.Entry(t.Context(), id, []string{company})
			require.ErrorIs(t, err, journal.ErrNotFound, "%q", id)
		}
	})
}

func TestAClientThatHasHungUpHasPostedAllTheSame(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		_, err := o.PostJournalEntry(gone, invoice(t, "inv-1"))
		require.NoError(t, err)
		assert.True(t, o.posted(t, invoice(t, "inv-1")).Repeated)
	})
}

func TestAPostingEndsAtItsDeadline(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		o.Deadline = 0
		_, err := o.PostJournalEntry(t.Context(), invoice(t, "inv-1"))
		require.ErrorIs(t, err, port.ErrUnavailable)
		o.Deadline = time.Minute
		assert.False(t, o.posted(t, invoice(t, "inv-1")).Repeated, "nothing was booked")
	})
}

func TestAnObserverHearsThatADocumentIsBookedNow(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		c := invoice(t, "inv-1")
		o.posted(t, c)
		o.posted(t, c)
		require.Len(t, o.Seen.Of(port.Completed), 1, "a repeat books nothing")
		assert.Equal(t, idempotency.Scope{
			Operation: bookkeeping.OpPostJournalEntry, Actor: company, Key: idempotency.Key(c.Content.Source.PostingKey()),
		}, o.Seen.Of(port.Completed)[0].Scope)
	})
}
