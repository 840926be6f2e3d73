package port

import "context"

// Succession is what transactions that follow each other hand on. A store may leave in it what it knows at the end of one,
// and have the next one presume that nothing has changed since, to save a question. Whatever it presumes, it makes sure of
// before that one is over.
type Succession struct{ left any }

// Leave is for the next transaction.
func (s *Succession) Leave(what any) { s.left = what }

// Take is what the last transaction has left, once; nil if that is nothing.
func (s *Succession) Take() any {
	what := s.left
	s.left = nil
	return what
}

type successionKey struct{}

// Successive says in the context that what is done under it is done one after the other, by one request.
func Successive(ctx context.Context) context.Context {
	return context.WithValue(ctx, successionKey{}, &Succession{})
}

// SuccessionIn is what the transactions under the context hand on; nil if nobody has said that they follow each other.
func SuccessionIn(ctx context.Context) *Succession {
	s, _ := ctx.Value(successionKey{}).(*Succession)
	return s
}
