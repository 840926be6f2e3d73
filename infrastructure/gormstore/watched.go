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

// watching is the watch on a transaction, if there is one.
func (s *Store) watching(ctx context.Context) *watching {
	if s.watch == nil {
		return nil
	}
	database := "postgresql"
	if s.sql.db.Name() == "sqlite" {
		database = "sqlite"
	}
	return &watching{ctx: ctx, watch: s.watch, database: database}
}

// watching keeps the transaction's context: repositories bring one that may be from outside of it.
type watching struct {
	ctx      context.Context //nolint:containedctx // the transaction's own, as the link has it
	watch    Watch
	database string
	commits  bool            // COMMIT is on its way
	ended    func(err error) // of what is on its way; may be nil
}

// over is a link with the watch on it.
func (w *watching) over(l link) link {
	if w == nil {
		return l
	}
	return watchedLink{l, w}
}

// sends says that this is on its way now.
func (w *watching) sends(texts []string, commits bool) {
	w.commits = commits
	w.ended = w.watch.Exchanging(w.ctx, Exchange{Database: w.database, Statements: texts, Commits: commits})
}

func (w *watching) answered(err error) {
	if w.ended != nil {
		w.ended(err)
	}
}

type watchedLink struct {
	link
	watching *watching
}

func (l watchedLink) exchange(ctx context.Context, writes []write, questions ...question) error {
	texts := textsOf(writes)
	for _, q := range questions {
		texts = append(texts, q.sql)
	}
	l.watching.sends(texts, false)
	err := l.link.exchange(ctx, writes, questions...)
	l.watching.answered(err)
	return err
}

// commit knows that what goes at once may have been sent before the transaction has its turn (group.lead).
func (l watchedLink) commit(ctx context.Context, writes []write) error {
	if !l.watching.commits {
		l.watching.sends(textsOf(writes), true)
	}
	err := l.link.commit(ctx, writes)
	l.watching.answered(err)
	return err
}

func textsOf(writes []write) []string {
	texts := make([]string, 0, len(writes)+2)
	for _, w := range writes {
		texts = append(texts, w.sql)
	}
	return texts
}
