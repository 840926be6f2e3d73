package journal

import "context"

// Repository is the port to the books, bound to one transaction.
type Repository interface {
	// Post books the entry unless its posting key is taken, and tells what stands under the key: the entry's own id
	// means that it was booked now. Like every write it may be sent as late as the next read or the commit, and stands is
	// told then: whoever needs it waits for the end of the transaction.
	Post(ctx context.Context, e Entry, stands func(Entry)) error

	// Find reads an entry. Error: ErrNotFound.
	Find(ctx context.Context, id ID) (Entry, error)

	// FindByKeys reads the entries that are booked under the posting keys, in any order. Error: Unreadable, beside
	// those that can be read.
	FindByKeys(ctx context.Context, keys []PostingKey) ([]Entry, error)
}
