package order

import "fmt"

// Unreadable is the error of a list some of whose orders cannot be what they should: somebody has changed them in the
// store. The others are listed.
type Unreadable []UnreadableOrder

// UnreadableOrder is one of them. Its Mark is where it stands among the PAID ones.
type UnreadableOrder struct {
	Mark
	Why error
}

// Error tells how many there are, and what is wrong with the first.
func (u Unreadable) Error() string {
	return fmt.Sprintf("%d orders cannot be read: %s", len(u), u[0].Why)
}

// Unwrap is why each of them cannot be read.
func (u Unreadable) Unwrap() (all []error) {
	for _, o := range u {
		all = append(all, o.Why)
	}
	return all
}
