package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/memory"
	"kakutei/interfaces/scenario"
)

// house is a service that the scenario runner has started itself, with ways to its inside: the same layers as serve's,
// over a store and a book that can fail. It implements scenario.Inside.
type house struct {
	config serveConfig
	store  opened // it outlives a crash: it stands for the database, and its book for the provider
	older  aging
	sight  sight
	log    *slog.Logger

	mu      sync.Mutex
	life    *life // of the instance that runs, or has crashed
	url     string
	away    bool            // the store
	bug     bool            // the next transaction panics
	moment  scenario.Moment // at which the service crashes
	holding chan struct{}   // until it is closed, the provider answers nobody; nil: it answers
	unread  bool            // its list
	ended   sync.WaitGroup
}

// life is an instance's, from its start to its crash or its end.
type life struct {
	dying   chan struct{} // closed when the crash begins
	over    chan struct{} // closed when nobody is connected any more
	crash   func()
	end     context.CancelFunc
	recover func(context.Context) error
}

func (l *life) isOver() bool { return closed(l.over) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// aging has time go by for all that is on record of an actor.
type aging func(ctx context.Context, actor string, d time.Duration) error

// newHouse opens the store and starts the service. close ends it, with all that it holds.
func newHouse(ctx context.Context, c serveConfig, log *slog.Logger, patience time.Duration) (*house, error) {
	h := &house{config: c, sight: unseen(), log: log}
	// Only what a scenario does happens: nothing comes by from time to time.
	h.config.access.listen = "127.0.0.1:0"
	h.config.work.recoverEvery, h.config.work.sweepInterval, h.config.work.compareEvery = 0, 0, 0
	h.config.work.grace = houseGrace
	// Nor is a scenario about how long a busy machine takes.
	h.config.store.lockTimeout = houseLockTimeout
	if c.store.url == inMemory {
		clock := new(movable)
		h.store = opened{
			store: memory.New(clock.now, memory.LockTimeout(houseLockTimeout)), book: gateway.NewMemoryBook(),
		}
		h.older = clock.pass
	} else {
		store, err := h.config.store.open(ctx, log, patience)
		if err != nil {
			return nil, err
		}
		h.store = store
		if h.older, err = agingRows(c.store.url); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	if err := h.start(); err != nil { //nolint:contextcheck // each request brings its own
		return nil, errors.Join(err, h.store.Close())
	}
	return h, nil
}

const (
	houseGrace       = 100 * time.Millisecond // enough for a service that nobody asks any more
	houseLockTimeout = 5 * time.Second
)

// movable is a clock that can be moved on.
type movable struct {
	mu   sync.Mutex
	past time.Duration
}

func (m *movable) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.past)
}

// pass moves it on by no more than was asked, whoever it is for: the scenario's other people wait with him.
func (m *movable) pass(_ context.Context, _ string, d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past += d
	return nil
}

// start starts an instance on the store.
func (h *house) start() error {
	l := &life{dying: make(chan struct{}), over: make(chan struct{})}
	store := opened{mortal{h.store.store, h, l}, fallibleBook{h.store.book, h, l}, h.store.database}
	inner, err := h.config.parts(store, h.sight, h.log)
	if err != nil {
		return err
	}
	s, err := h.config.around(context.Background(), inner, store, h.sight, h.log)
	if err != nil {
		return err
	}
	recovery := idempotent.NewRecovery(store, time.Second, map[idempotency.Operation]idempotent.Resume{
		checkout.OpConfirmPayment: inner.till.Resume,
	})
	l.recover = func(ctx context.Context) error {
		_, err := recovery.Round(ctx, recoveryRound)
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	dead, die := context.WithCancel(context.Background())
	l.end = end
	l.crash = sync.OnceFunc(func() {
		close(l.dying)
		_ = s.server.Close() // whoever is connected is cut off first: a dead instance answers nobody
		close(l.over)
		die()
		end()
	})
	started := make(chan struct{})
	h.ended.Go(func() { _ = s.run(ctx, dead, func() { close(started) }) })
	<-started
	h.mu.Lock()
	defer h.mu.Unlock()
	h.life, h.url = l, "http://"+s.listener.Addr().String()
	return nil
}

// close ends the service and everything that it stands on.
func (h *house) close() error {
	h.Release()
	h.current().end()
	h.ended.Wait()
	return h.store.Close()
}

func (h *house) current() *life {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life
}

// base is the base URL of the instance that was started last.
func (h *house) base() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.url
}

// charges counts how often the provider has taken an order's money.
func (h *house) charges(ctx context.Context, orderID string) (n int, err error) {
	lines, err := h.store.book.OfOrder(ctx, orderID)
	for _, line := range lines {
		if line.Status == gateway.Approved {
			n++
		}
	}
	return n, err
}

// with changes a fault.
func (h *house) with(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// Hold implements scenario.Inside.
func (h *house) Hold() {
	h.with(func() {
		if h.holding == nil {
			h.holding = make(chan struct{})
		}
	})
}

// Release implements scenario.Inside.
func (h *house) Release() {
	h.with(func() {
		if h.holding != nil {
			close(h.holding)
			h.holding = nil
		}
	})
}

// ListAway implements scenario.Inside.
func (h *house) ListAway(away bool) { h.with(func() { h.unread = away }) }

// StoreAway implements scenario.Inside.
func (h *house) StoreAway(away bool) { h.with(func() { h.away = away }) }

// LimitRate implements scenario.Inside.
func (h *house) LimitRate(perSecond int) error {
	if h.config.limits.rate == perSecond {
		return nil
	}
	h.config.limits.rate = perSecond
	h.Crash()
	return h.Restart()
}

// Bug implements scenario.Inside.
func (h *house) Bug() { h.with(func() { h.bug = true }) }

// Pass implements scenario.Inside.
func (h *house) Pass(ctx context.Context, actor string, d time.Duration) error {
	return h.older(ctx, actor, d)
}

// Lease implements scenario.Inside.
func (h *house) Lease() time.Duration { return h.config.work.lease }

// CrashAt implements scenario.Inside.
func (h *house) CrashAt(m scenario.Moment) { h.with(func() { h.moment = m }) }

// Crash implements scenario.Inside.
func (h *house) Crash() { h.current().crash() }

// Restart implements scenario.Inside.
func (h *house) Restart() error {
	l := h.current()
	if !closed(l.dying) {
		return nil
	}
	<-l.over // who was cut off may be here sooner
	return h.start()
}

// Recover implements scenario.Inside.
func (h *house) Recover(ctx context.Context) error { return h.current().recover(ctx) }

// Reset implements scenario.Inside.
func (h *house) Reset() error {
	h.Release()
	h.with(func() { h.away, h.bug, h.unread, h.moment = false, false, false, "" })
	return errors.Join(h.LimitRate(0), h.Restart())
}

// reach crashes the service if this is the moment. Whoever has reached it has died.
func (h *house) reach(l *life, m scenario.Moment) error {
	h.mu.Lock()
	reached := m != anyMoment && h.moment == m
	if reached {
		h.moment = ""
	}
	h.mu.Unlock()
	if reached {
		l.crash()
	}
	if l.isOver() {
		return errCrashed
	}
	return nil
}

// anyMoment is none at which a crash is ordered. A dead instance does not get past it either.
const anyMoment scenario.Moment = ""

// errCrashed is what a dead instance gets of the world. Nobody hears of it.
var errCrashed = errors.New("this instance has crashed")

// mortal is the store as one instance sees it: once that has crashed, nothing of it reaches the store any more.
type mortal struct {
	store
	house *house
	life  *life
}

// fault is what befalls a transaction before it begins.
func (m mortal) fault() error {
	m.house.mu.Lock()
	away, bug := m.house.away, m.house.bug
	m.house.bug = false
	m.house.mu.Unlock()
	switch {
	case bug:
		panic("a scenario's bug")
	case away:
		return port.ErrUnavailable
	case m.life.isOver():
		return port.ErrUnavailable.Because(errCrashed)
	}
	return nil
}

// Do implements port.UnitOfWork.
func (m mortal) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	if err := m.fault(); err != nil {
		return err
	}
	var settles bool
	err := m.store.Do(ctx, wait, func(tx port.Tx) error {
		settles = false
		if err := fn(settlingTx{tx, checkout.OpConfirmPayment, &settles}); err != nil {
			return err
		}
		if settles {
			return m.house.reach(m.life, scenario.BeforeCommit)
		}
		return m.house.reach(m.life, anyMoment)
	})
	if err == nil && settles {
		return m.house.reach(m.life, scenario.AfterCommit)
	}
	return err
}

// Read implements port.UnitOfWork.
func (m mortal) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	if err := m.fault(); err != nil {
		return err
	}
	return m.store.Read(ctx, fn)
}

// Close leaves the store open: it is there for the next instance.
func (m mortal) Close() error { return nil }

// fallibleBook is the provider's book behind a provider that can be slow, and whose list can be away. What it has booked
// stays booked.
type fallibleBook struct {
	gateway.Book
	house *house
	life  *life
}

// Enter implements gateway.Book.
func (b fallibleBook) Enter(ctx context.Context, line gateway.Line) (gateway.Line, bool, error) {
	if err := b.house.reach(b.life, scenario.BeforeCharge); err != nil {
		return gateway.Line{}, false, err
	}
	stands, entered, err := b.Book.Enter(ctx, line)
	if err != nil {
		return stands, entered, err
	}
	b.house.mu.Lock()
	holding := b.house.holding
	b.house.mu.Unlock()
	if holding != nil {
		select {
		case <-holding:
		case <-b.life.over:
		case <-ctx.Done():
			return stands, entered, ctx.Err()
		}
	}
	return stands, entered, b.house.reach(b.life, scenario.AfterCharge)
}

// OfOrder implements gateway.Book.
func (b fallibleBook) OfOrder(ctx context.Context, orderID string) ([]gateway.Line, error) {
	b.house.mu.Lock()
	unread := b.house.unread
	b.house.mu.Unlock()
	if unread {
		return nil, gateway.ErrUnavailable
	}
	return b.Book.OfOrder(ctx, orderID)
}
