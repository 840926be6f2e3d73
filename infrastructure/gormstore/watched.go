package gormstore

import (
	"context"
	"strings"
)

// Watch is told of each exchange with the database: what travels together, there and back. It must neither fail nor wait.
type Watch interface {
	// Exchanging is called before the exchange, in the transaction's context; what it returns after it, or is nil.
	Exchanging(ctx context.Context, e Exchange) (ended func(err error))
}

// Exchange is what is sent at once: statements with place holders, in their order, and COMMIT if it ends the transaction.
type Exchange struct {
	Database   string // postgresql or sqlite
	Statements []string
	Commits    bool
}

// Texts are the exchange's statements as one text.
func (e Exchange) Texts() string {
	texts := e.Statements
	if e.Commits {
		texts = append(texts[:len(texts):len(texts)], "COMMIT")
	}
	return strings.Join(texts, ";\n")
}

// Watched is the store, telling a watch of its exchanges from now on. It must not be in use yet.
func (s *Store) Watched(w Watch) *Store {
	s.watch = w
	return s
}

// watched is the link of a transaction, with the watch on it if there is one.
func (s *Store) watched(ctx context.Context, l link) link {
	if s.watch == nil {
		return l
	}
	database := "postgresql"
	if s.sql.db.Name() == "sqlite" {
		database = "sqlite"
	}
	return watchedLink{l, ctx, s.watch, database}
}

// watchedLink keeps the transaction's context: repositories bring one that may be from outside of it.
type watchedLink struct {
	link
	ctx      context.Context //nolint:containedctx // the transaction's own, as the link has it
	watch    Watch
	database string
}

func (l watchedLink) exchange(ctx context.Context, writes []write, questions ...question) error {
	texts := textsOf(writes)
	for _, q := range questions {
		texts = append(texts, q.sql)
	}
	ended := l.watch.Exchanging(l.ctx, Exchange{Database: l.database, Statements: texts}) //nolint:contextcheck // the transaction's own
	err := l.link.exchange(ctx, writes, questions...)
	if ended != nil {
		ended(err)
	}
	return err
}

func (l watchedLink) commit(ctx context.Context, writes []write) error {
	last := Exchange{Database: l.database, Statements: textsOf(writes), Commits: true}
	ended := l.watch.Exchanging(l.ctx, last) //nolint:contextcheck // the transaction's own
	err := l.link.commit(ctx, writes)
	if ended != nil {
		ended(err)
	}
	return err
}

func textsOf(writes []write) []string {
	texts := make([]string, 0, len(writes)+2)
	for _, w := range writes {
		texts = append(texts, w.sql)
	}
	return texts
}
