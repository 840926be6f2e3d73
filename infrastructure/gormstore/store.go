// Package gormstore keeps orders and records in PostgreSQL or SQLite. GORM writes the SQL, the drivers send it: so a
// transaction's statements can travel together. It decides nothing about orders or records.
package gormstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"kakutei/application/port"
	"kakutei/domain/fault"
)

// Config says which database, and how much of it.
type Config struct {
	URL         string        // "sqlite:PATH", "postgres://…" or "postgresql://…"
	Pool        int           // connections at most; for SQLite the readers beside the one writer
	LockTimeout time.Duration // longest wait for a row or for a connection
}

// Store is a unit of work over a database.
type Store struct {
	engine engine
	lanes  *lanes // nil: every transaction has a connection of its own
	sql    builder
	schema ddl
	usage  usage
	line   *line
	watch  Watch // nil: nobody watches

	familiar *familiar // nil: nothing is presumed
	clock    clock     // the database's
}

var _ port.UnitOfWork = (*Store)(nil)

// engine begins transactions on one kind of database.
type engine interface {
	// open takes a connection. Error: port.ErrUnavailable when there is none in time.
	open(ctx context.Context, w way) (link, error)
	close() error
}

// way is what a connection is for.
type way struct {
	wait     port.Wait
	reads    bool   // only
	whole    bool   // what it sends first is all that it sends, with COMMIT
	sends    func() // told if a company has sent that before the transaction has its turn; may be nil
	onLane   bool   // others wait behind it
	together int    // for so many transactions; 0: for one
	waited   bool   // for a lane, in vain: it waits for nobody else
}

// finishes tells whether it is for what goes before all who begin.
func (w way) finishes() bool { return w.wait == port.Finishing }

var (
	// errAgain says that the transaction has to start anew.
	errAgain = errors.New("the transaction must be repeated")
	// errAlone says that the transaction has to start anew, and without company.
	errAlone = errors.New("the transaction must be repeated alone")
	// errPresumed says that the transaction has to start anew, and presume nothing.
	errPresumed = errors.New("what was presumed is not so")
	// errNoConnection says that there was none in time.
	errNoConnection = errors.New("no connection")
	// errBusy says that the wait for what another transaction holds ran out.
	errBusy = errors.New("another transaction holds it")
)

// ErrAddress says that an address is of no database that this store knows.
var ErrAddress = errors.New(`must be "sqlite:PATH", "postgres://…" or "postgresql://…"`)

// Open prepares a store. It connects when it is first used; Migrate comes first.
func Open(ctx context.Context, c Config) (*Store, error) {
	switch path, isSQLite := strings.CutPrefix(c.URL, "sqlite:"); {
	case isSQLite && path != "":
		return openStore(c.Pool+1, newLine(1, longForOne, c), newSQLiteBuilder, sqliteSchema(path), func() (engine, error) { return openSQLite(path, c) })
	case strings.HasPrefix(c.URL, "postgres://"), strings.HasPrefix(c.URL, "postgresql://"):
		s, err := openStore(c.Pool, newLine(c.Pool, longForMany, c), newPostgresBuilder, postgresSchema(c.URL), func() (engine, error) { return openPostgres(ctx, c) })
		if err == nil && s.engine.(*postgresEngine).keepsPlans() {
			s.familiar = newFamiliar()
			s.lanes = newLanes(s.connect, s.sql, c)
		}
		return s, err
	default:
		return nil, ErrAddress
	}
}

func openStore(
	connections int, l *line, newBuilder func() (builder, error), s ddl, open func() (engine, error),
) (*Store, error) {
	b, err := newBuilder()
	if err != nil {
		return nil, fmt.Errorf("gormstore: %w", err)
	}
	e, err := open()
	if err != nil {
		return nil, err
	}
	return &Store{engine: e, sql: b, schema: s, usage: usage{max: connections}, line: l}, nil
}

// Close ends all connections.
func (s *Store) Close() error { return s.engine.close() }

// tries is how often a transaction is run at the most.
const tries = 3

// Do implements port.UnitOfWork.
func (s *Store) Do(ctx context.Context, wait port.Wait, fn func(port.Tx) error) error {
	return s.do(ctx, wait, func(tx *session) error { return fn(tx) })
}

func (s *Store) do(ctx context.Context, wait port.Wait, fn func(*session) error) error {
	return s.often(ctx, session{wait: wait}, fn)
}

// often runs fn again when the database asks for it, one more time without presuming when that was wrong, and one more time
// alone when the company did not suit it.
func (s *Store) often(ctx context.Context, as session, fn func(*session) error) error {
	for try := 1; ; try++ {
		tx := as
		err := s.transact(ctx, &tx, fn)
		switch {
		case errors.Is(err, errAlone) && !as.alone:
			as.alone, as.careful = true, true
			try--
		case errors.Is(err, errPresumed) && !as.careful:
			as.careful = true
			try--
		case !errors.Is(err, errAgain) || try == tries || !pause(ctx, try):
			return known(err)
		}
	}
}

// Read implements port.UnitOfWork.
func (s *Store) Read(ctx context.Context, fn func(port.Tx) error) error {
	return s.read(ctx, func(tx *session) error { return fn(tx) })
}

func (s *Store) read(ctx context.Context, fn func(*session) error) error {
	return s.often(ctx, session{wait: port.Briefly, reads: true}, fn)
}

// transact runs fn in one transaction. A panic of fn undoes it, too.
func (s *Store) transact(ctx context.Context, tx *session, fn func(*session) error) error {
	if err := ctx.Err(); err != nil { // what asks for nothing would not notice
		return port.ErrUnavailable.Because(err)
	}
	tx.ctx, tx.store, tx.sql = ctx, s, s.sql
	defer tx.end()
	err := fn(tx)
	if tx.presumed != nothing && tx.failed == nil && (err != nil || !tx.isSure()) {
		err = tx.verify(ctx, err)
	}
	if err != nil {
		if errors.Is(tx.failed, errAgain) || errors.Is(tx.failed, errAlone) || errors.Is(tx.failed, errPresumed) { // whatever fn made of it
			return tx.failed
		}
		return err
	}
	if tx.reads { // there is nothing to commit, and so no commit whose answer could be lost
		tx.learn()
		return tx.failed
	}
	if err := tx.commit(ctx); err != nil {
		return err
	}
	if tx.isRefused() {
		return errPresumed
	}
	tx.learn()
	tx.leave()
	return nil
}

// pause lets the others go first: up to 10 ms, then up to 20 ms. False when ctx is over.
func pause(ctx context.Context, try int) bool {
	return pauseFor(ctx, rand.N(time.Duration(try)*10*time.Millisecond)) //nolint:gosec // jitter is no secret
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// known turns what only this package knows into the port's error. A wait that a repository has named keeps its name.
func known(err error) error {
	_, isNamed := fault.From(err)
	if errors.Is(err, errAgain) || errors.Is(err, errBusy) && !isNamed {
		return port.ErrUnavailable.Because(err)
	}
	return err
}
