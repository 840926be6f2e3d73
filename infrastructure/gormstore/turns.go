package gormstore

import (
	"context"
	"slices"
	"sync"
)

// turns are what so many can have at once: a connection, or a file that one may write. Whoever waits has his in the order of
// coming, but who finishes what has begun outside goes before all who begin.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting waiters[chan struct{}] // closed when it is his turn
}

func newTurns(n int) *turns { return &turns{free: n} }

// take waits for a turn. Error: ctx's, there was none in time.
func (t *turns) take(ctx context.Context, ahead bool) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.waiting.add(turn, ahead)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting.remove(turn) {
		return ctx.Err()
	}
	return nil // it came at the same moment
}

// takeFree takes a turn if one is free. Nobody waits then.
func (t *turns) takeFree() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		return false
	}
	t.free--
	return true
}

// give is for who has had his.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := t.waiting.take(1); len(next) > 0 {
		close(next[0])
		return
	}
	t.free++
}

// waiters are who waits, in the order in which they go.
type waiters[T comparable] struct {
	all   []T
	ahead int // so many, the first ones, go before all who begin
}

func (w *waiters[T]) len() int { return len(w.all) }

func (w *waiters[T]) add(one T, ahead bool) {
	if !ahead {
		w.all = append(w.all, one)
		return
	}
	w.all = slices.Insert(w.all, w.ahead, one)
	w.ahead++
}

// take are the first n.
func (w *waiters[T]) take(n int) []T {
	n = min(n, len(w.all))
	first := slices.Clone(w.all[:n])
	w.all = slices.Delete(w.all, 0, n)
	w.ahead = max(w.ahead-n, 0)
	return first
}

// remove has one wait no more. False: he does not wait.
func (w *waiters[T]) remove(one T) bool {
	i := slices.Index(w.all, one)
	if i < 0 {
		return false
	}
	w.all = slices.Delete(w.all, i, i+1)
	if i < w.ahead {
		w.ahead--
	}
	return true
}
