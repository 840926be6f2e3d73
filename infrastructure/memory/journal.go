package memory

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"kakutei/domain/journal"
	"kakutei/domain/money"
)

// entries implements journal.Repository. It tells at once what stands: nobody else writes meanwhile.
type entries struct{ t *tx }

func (r entries) Post(_ context.Context, e journal.Entry, stands func(journal.Entry)) error {
	if r.t.readOnly {
		return errReadOnly
	}
	if err := checkBooked(e); err != nil {
		return r.t.fail(err)
	}
	found, taken := r.t.entryUnder(e.PostingKey)
	if !taken {
		if other, exists := r.t.entryOf(e.ID); exists {
			return r.t.fail(fmt.Errorf("memory: entry %s is booked already, under key %s", e.ID, other.PostingKey))
		}
		r.t.writeEntry(withOwnLines(e))
		found = e
	}
	stands(withOwnLines(found))
	return nil
}

func (r entries) Find(_ context.Context, id journal.ID) (journal.Entry, error) {
	found, ok := r.t.entryOf(id)
	if !ok {
		return journal.Entry{}, journal.ErrNotFound
	}
	return withOwnLines(found), nil
}

func (r entries) FindByKeys(_ context.Context, keys []journal.PostingKey) ([]journal.Entry, error) {
	var found []journal.Entry
	for _, key := range keys {
		if e, taken := r.t.entryUnder(key); taken {
			found = append(found, withOwnLines(e))
		}
	}
	return found, nil
}

var isPostingKey = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkBooked states what SQL states in constraints: no half entry is booked.
func checkBooked(e journal.Entry) error {
	_, err := journal.NewContent(e.Source, e.Currency, e.Lines)
	switch {
	case len(e.Lines) == 0:
		err = errors.New("it has no lines")
	case !isPostingKey.MatchString(string(e.PostingKey)):
		err = errors.New("its posting key is no hash")
	case e.Currency == money.Currency{}:
		err = errors.New("it has no currency")
	}
	if err != nil {
		return fmt.Errorf("memory: entry %s: %w", e.ID, err)
	}
	return nil
}

func (t *tx) entryOf(id journal.ID) (journal.Entry, bool) {
	if written, ok := t.entries[id]; ok {
		return written, true
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	committed, ok := t.store.committed.entries[id]
	return committed, ok
}

func (t *tx) entryUnder(key journal.PostingKey) (journal.Entry, bool) {
	for _, written := range t.entries {
		if written.PostingKey == key {
			return written, true
		}
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	id, ok := t.store.committed.postings[key]
	return t.store.committed.entries[id], ok
}

func (t *tx) writeEntry(e journal.Entry) {
	if t.entries == nil {
		t.entries = map[journal.ID]journal.Entry{}
	}
	t.entries[e.ID] = e
}

// withOwnLines is the entry with lines that nobody else can change.
func withOwnLines(e journal.Entry) journal.Entry {
	e.Lines = slices.Clone(e.Lines)
	return e
}
