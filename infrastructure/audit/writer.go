// Package audit writes what happens into the audit log, in transactions of its own and after the work's have ended: a
// rollback of the work loses no entry, and a log that cannot be written loses no work.
package audit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

const (
	// capacity is how many entries may wait for a log that cannot be written; what comes on top is logged and lost.
	capacity = 10_000
	// batch is how many entries one transaction writes at most.
	batch = 500
	// firstPause and longestPause are between tries to write; each pause is twice the last one.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
	// patience is what the last entries have when the service ends, unless a test says otherwise.
	patience = 2 * time.Second
)

// Writer is the observer that writes the audit log.
type Writer struct {
	work  port.UnitOfWork
	log   *slog.Logger
	clock func() time.Time
	last  time.Duration // what the last entries have

	mu      sync.Mutex
	waiting []observed
	lost    int // since the last line about it
	ever    int // lost in all
	woken   chan struct{}
}

// observed is an entry that waits, and when it was observed by the writer's clock.
type observed struct {
	port.AuditEntry
	at time.Time
}

// NewWriter makes a writer. It writes while Run runs. Its clock tells how long ago something was observed, never what
// time it was: that is the store's to say.
func NewWriter(w port.UnitOfWork, log *slog.Logger, clock func() time.Time) *Writer {
	return &Writer{work: w, log: log, clock: clock, last: patience, woken: make(chan struct{}, 1)}
}

// kinds are the happenings that are audited.
var kinds = map[port.Happening]port.AuditKind{
	port.Mismatch:       port.AuditMismatch,
	port.Duplicate:      port.AuditDuplicate,
	port.Takeover:       port.AuditTakeover,
	port.LeaseLost:      port.AuditLeaseLost,
	port.AmountConflict: port.AuditAmountConflict,
}

// Observe implements port.Observer. It waits for nothing.
func (w *Writer) Observe(_ context.Context, e port.Event) {
	kind, audited := kinds[e.What]
	if !audited {
		return
	}
	entry := port.AuditEntry{EventID: eventID(kind, e), Scope: e.Scope, Kind: kind, Detail: detailOf(e)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= capacity {
		w.lost++
		w.ever++
		return
	}
	w.waiting = append(w.waiting, observed{entry, w.clock()})
	select {
	case w.woken <- struct{}{}:
	default: // it knows
	}
}

// Backlog is how many entries wait to be written, and how many were lost because too many did.
func (w *Writer) Backlog() (waiting, lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting), w.ever
}

// eventID is random, or follows from the event if that is to be told once.
func eventID(kind port.AuditKind, e port.Event) string {
	if e.Once == "" {
		return uuid.NewString()
	}
	name := idempotency.Request("").With("kind", string(kind)).With("operation", string(e.Scope.Operation)).
		With("actor", e.Scope.Actor).With("key", string(e.Scope.Key)).With("once", e.Once)
	return uuid.NewSHA1(uuid.Nil, []byte(name)).String()
}

func detailOf(e port.Event) string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.What == port.Mismatch:
		return "the key was used for another request"
	case e.What == port.Duplicate:
		return "done before under another key; answered with the original"
	case e.What == port.Takeover:
		return fmt.Sprintf("execution %d took over", e.Executions)
	case e.What == port.LeaseLost:
		return fmt.Sprintf("execution %d was fenced off", e.Executions)
	default:
		return string(e.What)
	}
}

// Run writes what is observed until ctx ends, and then what is left.
func (w *Writer) Run(ctx context.Context) {
	for pause := firstPause; ; {
		select {
		case <-w.woken:
		case <-ctx.Done():
			w.finish(ctx)
			return
		}
		for ctx.Err() == nil && !w.writeAll(ctx) {
			select {
			case <-time.After(pause):
				pause = min(2*pause, longestPause)
			case <-ctx.Done():
				w.finish(ctx)
				return
			}
		}
		pause = firstPause
	}
}

func (w *Writer) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.last)
	defer cancel()
	for !w.writeAll(ctx) && ctx.Err() == nil {
		select {
		case <-time.After(firstPause):
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if lost := len(w.waiting) + w.lost; lost > 0 {
		w.log.Error("audit entries were lost: the store could not be written", "entries", lost)
	}
}

// Drop is the end of a writer that is given no time: it logs how many entries are lost with it, at the most.
func (w *Writer) Drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lost := len(w.waiting) + w.lost; lost > 0 {
		w.log.Error("audit entries were lost: there was no time to write them", "entries", lost)
	}
}

// writeAll tells whether nothing is waiting any more.
func (w *Writer) writeAll(ctx context.Context) bool {
	for {
		entries := w.next()
		if len(entries) == 0 {
			w.reportLost()
			return true
		}
		if err := w.write(ctx, entries); err != nil { // sent again, an entry is known by its event id
			w.log.Warn("the audit log cannot be written", "error", err.Error(), "waiting", len(entries))
			return false
		}
		w.written(len(entries))
	}
}

// write never panics: what goes wrong with the audit log must not end the service.
func (w *Writer) write(ctx context.Context, waiting []observed) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return w.work.Do(ctx, port.Fully, func(tx port.Tx) error {
		now, here := tx.Now(), w.clock()
		entries := make([]port.AuditEntry, len(waiting))
		for i, o := range waiting {
			entries[i] = o.AuditEntry
			entries[i].At = now.Add(-max(0, here.Sub(o.at))).Truncate(time.Microsecond)
		}
		return tx.Audit().Append(ctx, entries)
	})
}

// next are the oldest entries, which stay until they are written.
func (w *Writer) next() []observed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]observed(nil), w.waiting[:min(batch, len(w.waiting))]...)
}

func (w *Writer) written(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append([]observed(nil), w.waiting[n:]...)
}

func (w *Writer) reportLost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost > 0 {
		w.log.Error("audit entries were lost: too many were waiting", "entries", w.lost)
		w.lost = 0
	}
}
