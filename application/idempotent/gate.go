package idempotent

import (
	"context"
	"sync"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// gate knows which requests are being executed here, so that their duplicates need not ask the store: each would take a
// connection, and wait behind it for what this process knows already. It guards nothing, and answers nothing that the
// store would not. While a run's call is under way its record is known, and a duplicate is told so. While one of its
// transactions is under way only the store knows what stands: a duplicate waits for its end, without a connection, and
// asks then. Who has waited for the reservation also waits for a quick call, and its outcome: the run goes first.
type gate struct {
	mu   sync.Mutex
	runs map[idempotency.Scope]*pass
}

const (
	// patience is how long a duplicate waits at the gate: as long as a reservation does in the store (port.Briefly).
	patience = 100 * time.Millisecond
	// quick is a call whose duplicates need not be told that it is in progress.
	quick = 10 * time.Millisecond
)

// pass is a run as its duplicates find it.
type pass struct {
	request idempotency.Request
	held    *held   // while the call runs
	turn    *turn   // of those who have come while a transaction, or its reservation and the call, is under way; nil: of nobody
	before  []*turn // of those who came before a call was over: a run that is in doubt may make more than one
}

// held is the record that a run holds, and when its lease began at the earliest, by this process's clock.
type held struct {
	record idempotency.Record
	begun  time.Time
}

// now is the store's time, as far as this process can tell. It is never behind it while the process's clock runs: a lease that
// is over is not taken for one that is not.
func (h *held) now(c Config) time.Time {
	return h.record.LeaseEnds.Add(c.Now().Sub(h.begun) - c.Lease)
}

// turn is the end of what some wait for.
type turn struct {
	over chan struct{}
	held *held // what the run has held since they wait; nil: nothing
}

func newGate() *gate { return &gate{runs: map[idempotency.Scope]*pass{}} }

// enter makes a run the one that its duplicates find, unless there is one already: then it tells what that one holds, or
// the end of its transaction if it executes the same request. A holder whose lease may be over is in nobody's way.
func (g *gate) enter(s idempotency.Scope, p *pass, c Config) (*held, *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	stands, running := g.runs[s]
	switch {
	case !running, stands.held != nil && stands.held.record.Unresolved(stands.held.now(c)):
		g.runs[s] = p
		return nil, nil
	case stands.held != nil:
		return stands.held, nil
	case stands.request != p.request:
		return nil, nil
	case stands.turn == nil:
		stands.turn = &turn{over: make(chan struct{})}
	}
	return nil, stands.turn
}

// hold says that the run's record stands, and that its call is next.
func (g *gate) hold(p *pass, h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.held = h
	if p.turn == nil {
		return
	}
	p.turn.held = h
	waiting := p.turn
	time.AfterFunc(quick, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if p.turn == waiting {
			end(&p.turn)
		}
	})
}

// ask says that the call is over, and that a transaction is next. Who comes from now on may find what it has written.
func (g *gate) ask(p *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.held = nil
	if p.turn != nil {
		p.before = append(p.before, p.turn)
		p.turn = nil
	}
}

// leave says that the run is over, or as good as that: what stands on record is everybody's to find.
func (g *gate) leave(s idempotency.Scope, p *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs[s] == p {
		delete(g.runs, s)
	}
	for _, t := range p.before {
		close(t.over)
	}
	p.before = nil
	end(&p.turn)
}

func end(t **turn) {
	if *t != nil {
		close((*t).over)
		*t = nil
	}
}

// enter passes the gate, or answers a duplicate of what is being executed here. Who comes without a client has just read
// in the store that the lease is over, and passes: the store knows better.
func (r *run) enter(ctx context.Context) (answer Answer, answered bool, err error) {
	for waited := false; ; waited = true {
		held, turn := r.gate.enter(r.reservation.Scope, &r.pass, r.config)
		if r.unattended || held == nil && (turn == nil || waited) {
			return Answer{}, false, nil
		}
		if turn != nil {
			held = r.gate.wait(ctx, turn, min(patience, r.config.LockTimeout))
			if answer, answered, err := r.replay(ctx); answered || err != nil {
				return answer, answered, err
			}
		}
		if held != nil {
			err := r.busy(ctx, held)
			return Answer{}, err != nil, err
		}
	}
}

// wait returns what the run has held meanwhile, when its turn has come or this takes too long. It is nil if that is nothing.
func (g *gate) wait(ctx context.Context, t *turn, patience time.Duration) *held {
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-t.over:
	case <-enough.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.held
}

// busy is the error that the record which another run holds would be answered with, if that is that it is in progress.
func (r *run) busy(ctx context.Context, h *held) error {
	now := h.now(r.config)
	if h.record.Judge(r.reservation, now) != idempotency.Busy {
		return nil
	}
	r.held = h.record
	err := idempotency.ErrInProgress.After(h.record.RetryIn(now, r.config.Lease))
	r.tell(r.doing(ctx, port.Reserving), port.Stopped, "", err)
	return err
}
