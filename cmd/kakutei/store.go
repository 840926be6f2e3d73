package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/memory"
)

// store is what every adapter of the unit of work offers the program around it.
type store interface {
	port.UnitOfWork
	Ready(ctx context.Context) error
	Close() error
}

// opened is the store in use.
type opened struct {
	store
	book     gateway.Book     // the simulator's, as durable as the store
	database *gormstore.Store // the store itself; nil: it is in memory
}

// pace is how a sweep gives way.
func (s opened) pace() idempotent.Pace {
	p := idempotent.Pace{Now: time.Now}
	if s.database != nil {
		p.Batch = s.database.SweepBatch()
	}
	return p
}

// crowded tells that the store has no room for a request that has not begun. In memory nobody waits for a connection.
func (s opened) crowded() bool { return s.database != nil && s.database.Crowded() }

// Waiting for a store that is away: every pause is twice the last one, and a line now and then says so.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	quietFor     = 5 * time.Second
	firstAnswer  = 2 * time.Second // what a store has to say that it is there
)

// open opens the store and brings its schema up to date. A store that is away is waited for, as long as patience says;
// every other error ends it at once.
func (c *storeConfig) open(ctx context.Context, log *slog.Logger, patience time.Duration) (opened, error) {
	if c.url == inMemory {
		return opened{store: memory.New(time.Now, memory.LockTimeout(c.lockTimeout)), book: gateway.NewMemoryBook()}, nil
	}
	s, err := c.store(ctx)
	if err != nil {
		return opened{}, c.named(err)
	}
	deadline, lastLine := time.Now().Add(patience), time.Time{}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := prepare(ctx, s)
		left := time.Until(deadline)
		switch {
		case err == nil:
			return opened{store: s, book: s.Book(), database: s}, nil
		case !gormstore.IsAway(err), left <= 0:
			return opened{}, c.named(errors.Join(err, s.Close()))
		}
		if time.Since(lastLine) >= quietFor {
			lastLine = time.Now()
			log.Warn("waiting for the store", "store", c.name(), "error", oneLine(err))
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return opened{}, errors.Join(ctx.Err(), s.Close())
		}
	}
}

func (c *storeConfig) store(ctx context.Context) (*gormstore.Store, error) {
	return gormstore.Open(ctx, gormstore.Config{URL: c.url, Pool: c.pool, LockTimeout: c.lockTimeout})
}

// named says of which store an error tells.
func (c *storeConfig) named(err error) error {
	return fmt.Errorf("KAKUTEI_DATABASE_URL (%s): %w", c.name(), err)
}

// prepare is to be tried until the store is there, on the same store: a connection that took longer than one try, past a
// host that is silent, is there for the next.
func prepare(ctx context.Context, s *gormstore.Store) error {
	if err := answers(ctx, s); err != nil {
		return err
	}
	return s.Migrate(ctx)
}

// answers tells whether the store is there, whatever is to be said of its schema: that is Migrate's. Migrating has no
// time limit, so this has one.
func answers(ctx context.Context, s *gormstore.Store) error {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	if err := s.Ready(ctx); gormstore.IsAway(err) {
		return err
	}
	return nil
}

// name is the store for people's eyes: nothing of the URL that may be a secret.
func (c *storeConfig) name() string {
	if file, ok := strings.CutPrefix(c.url, "sqlite:"); ok {
		return "SQLite file " + file
	}
	u, err := url.Parse(c.url)
	if err != nil || c.url == inMemory {
		return "memory, forgotten at exit"
	}
	return "PostgreSQL at " + cmp.Or(u.Host, u.Query().Get("host")) + u.Path
}

// withStore opens the store that a command works on, and closes it.
func withStore(ctx context.Context, p program, c *storeConfig, log *logConfig, do func(opened) error) error {
	if err := c.lasting(); err != nil {
		return err
	}
	s, err := c.open(ctx, log.logger(p.stderr), p.patience)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}
