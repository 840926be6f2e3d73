// Package bookkeeping posts journal entries under keys that follow from their source documents. An entry is its own
// record, for ever: no other record is kept of its posting.
package bookkeeping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
)

// OpPostJournalEntry names the use case in the audit. Its scope is: the company as actor, the posting key as key.
const OpPostJournalEntry idempotency.Operation = "PostJournalEntry"

// Ledger is where entries are posted and read.
type Ledger struct {
	Work     port.UnitOfWork
	Observer port.Observer
	// Deadline is how long one posting may work, whatever becomes of the client's connection.
	Deadline time.Duration
}

// PostJournalEntry asks for an entry.
type PostJournalEntry struct {
	By      string // who posts
	Content journal.Content
}

// Posted is the entry that stands under the document's key, and whether it stood there before.
type Posted struct {
	Entry    journal.Entry
	Repeated bool
}

// attempts is how often a posting whose commit gave no answer is sent in all. It carries the same id each time, so that
// it finds itself.
const attempts = 3

// PostJournalEntry books the document once. Whoever comes later gets the entry that stands.
//
// Errors: journal.ErrMismatch, with the entry that stands beside it; idempotency.ErrOutcomeUnknown;
// port.ErrUnavailable.
func (l *Ledger) PostJournalEntry(ctx context.Context, c PostJournalEntry) (posted Posted, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Deadline)
	defer cancel()
	defer func() {
		if errors.Is(err, idempotency.ErrOutcomeUnknown) {
			l.Observer.Observe(ctx, port.Event{What: port.Unknown, Scope: c.scope(), Err: err})
		}
	}()
	posted, err = l.booked(ctx, c)
	if err == nil && !posted.Repeated {
		posted, err = l.settle(ctx, c)
	}
	switch {
	case err != nil:
		return Posted{}, err
	case !posted.Entry.SameContent(c.Content):
		l.tell(ctx, port.Mismatch, posted.Entry, "posted again by "+c.By+" with other content")
		return posted, journal.ErrMismatch
	case posted.Repeated:
		l.tell(ctx, port.Duplicate, posted.Entry, "posted again by "+c.By)
	default:
		l.Observer.Observe(ctx, port.Event{What: port.Completed, Scope: ScopeOf(posted.Entry)})
	}
	return posted, nil
}

// booked looks for an entry that stands already. It waits for nobody: a repeat needs no turn to write. What stands there
// and cannot be read is met again by posting.
func (l *Ledger) booked(ctx context.Context, c PostJournalEntry) (posted Posted, err error) {
	ctx = port.Doing(ctx, port.Looking, OpPostJournalEntry)
	err = l.Work.Read(ctx, func(tx port.Tx) error {
		found, err := tx.Journal().FindByKeys(ctx, []journal.PostingKey{c.Content.Source.PostingKey()})
		if err == nil && len(found) == 1 {
			posted = Posted{Entry: found[0], Repeated: true}
		}
		if unreadable := journal.Unreadable(nil); errors.As(err, &unreadable) {
			err = nil
		}
		return err
	})
	return posted, err
}

// settle posts until the commit is known, under one id: a posting that was applied finds itself.
func (l *Ledger) settle(ctx context.Context, c PostJournalEntry) (posted Posted, err error) {
	id, doubt := journal.NewID(), false
	for range attempts {
		if posted, err = l.post(ctx, id, c); !errors.Is(err, port.ErrCommitUnknown) {
			break
		}
		doubt = true
		l.Observer.Observe(ctx, port.Event{What: port.CommitUnknown, Scope: c.scope(), Err: err})
	}
	if errors.Is(err, port.ErrCommitUnknown) || doubt && errors.Is(err, port.ErrUnavailable) {
		err = idempotency.ErrOutcomeUnknown.Because(err)
	}
	return posted, err
}

func (l *Ledger) post(ctx context.Context, id journal.ID, c PostJournalEntry) (posted Posted, err error) {
	ctx = port.Doing(ctx, port.Posting, OpPostJournalEntry)
	err = l.Work.Do(ctx, port.Fully, func(tx port.Tx) error {
		posted = Posted{}
		return tx.Journal().Post(ctx, journal.Book(id, c.Content, c.By, tx.Now()), func(stands journal.Entry) {
			posted = Posted{Entry: stands, Repeated: stands.ID != id}
		})
	})
	return posted, err
}

func (l *Ledger) tell(ctx context.Context, what port.Happening, e journal.Entry, detail string) {
	l.Observer.Observe(ctx, port.Event{
		What: what, Scope: ScopeOf(e), Detail: fmt.Sprintf("%s; the entry is %s", detail, e.ID),
	})
}

func (c PostJournalEntry) scope() idempotency.Scope {
	return ScopeOf(journal.Book("", c.Content, c.By, time.Time{}))
}

// ScopeOf is where the audit looks for an entry.
func ScopeOf(e journal.Entry) idempotency.Scope {
	return idempotency.Scope{
		Operation: OpPostJournalEntry, Actor: e.Source.Company, Key: idempotency.Key(e.PostingKey),
	}
}

// Entry is one of the companies' entries. Error: journal.ErrNotFound, for another company's too.
func (l *Ledger) Entry(ctx context.Context, id string, companies []string) (view EntryView, err error) {
	entryID, err := journal.ParseID(id)
	if err != nil {
		return EntryView{}, err
	}
	err = l.Work.Read(ctx, func(tx port.Tx) error {
		e, err := tx.Journal().Find(ctx, entryID)
		if err != nil {
			return err
		}
		if !slices.Contains(companies, e.Source.Company) {
			return journal.ErrNotFound
		}
		view = viewOf(e)
		return nil
	})
	return view, err
}
