package journal

import "fmt"

// Unreadable is the error of a list some of whose entries cannot be what they should: somebody has changed them in the
// store. The others are listed.
type Unreadable []UnreadableEntry

// UnreadableEntry is one of them.
type UnreadableEntry struct {
	PostingKey PostingKey
	Why        error
}

// Error tells how many there are, and what is wrong with the first.
func (u Unreadable) Error() string {
	return fmt.Sprintf("%d entries cannot be read: %s", len(u), u[0].Why)
}

// Unwrap is why each of them cannot be read.
func (u Unreadable) Unwrap() (all []error) {
	for _, e := range u {
		all = append(all, e.Why)
	}
	return all
}
