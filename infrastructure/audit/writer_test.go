package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/audit"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// office is a writer over a store, which writes while it is open.
type office struct {
	*audit.Writer
	log    *logText
	cancel context.CancelFunc
	ended  chan struct{}
}

// hired is a writer that does not write yet.
func hired(work port.UnitOfWork) *office { return hiredAt(work, time.Now) }

// hiredAt has a clock of the test's own.
func hiredAt(work port.UnitOfWork, clock func() time.Time) *office {
	log := &logText{changed: make(chan struct{})}
	return &office{
		Writer: audit.NewWriter(work, slog.New(slog.NewJSONHandler(log, nil)), clock), log: log, ended: make(chan struct{}),
	}
}

// open begins to write; the office is closed when the test ends, if it is not before.
func (o *office) open(t *testing.T) *office {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	o.cancel = cancel
	go func() {
		defer close(o.ended)
		o.Run(ctx)
	}()
	t.Cleanup(o.close)
	return o
}

// close is the end of the service: it returns when the last entry is written.
func (o *office) close() {
	o.cancel()
	<-o.ended
}

// logText is a log that tests can read, and wait for.
type logText struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *logText) read() (text string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String(), l.changed
}

// await returns once the log has the text.
func (l *logText) await(t *testing.T, text string) {
	t.Helper()
	for late := time.After(20 * time.Second); ; {
		said, changed := l.read()
		if strings.Contains(said, text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(t, "it never said "+text, said)
		}
	}
}

// onEachStore runs a test on every kind of store.
func onEachStore(t *testing.T, test func(t *testing.T, work port.UnitOfWork)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, memory.New(time.Now)) })
	t.Run("memory, writing late", func(t *testing.T) { test(t, memory.NewDeferring(memory.New(time.Now))) })
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) { test(t, database(t).Open(t, 4)) })
	}
}

func written(t *testing.T, work port.UnitOfWork) (entries []port.AuditEntry) {
	t.Helper()
	require.NoError(t, work.Read(t.Context(), func(tx port.Tx) (err error) {
		entries, err = tx.Audit().After(t.Context(), 0, "", math.MaxInt32)
		return err
	}))
	return entries
}

// happening is an event of alice's n-th key.
func happening(what port.Happening, n int) port.Event {
	return port.Event{What: what, Executions: 2, Scope: idempotency.Scope{
		Operation: "ConfirmPayment", Actor: "alice", Key: idempotency.Key(fmt.Sprint("key-", n)),
	}}
}

func (o *office) observe(t *testing.T, events ...port.Event) {
	t.Helper()
	for _, e := range events {
		o.Observe(t.Context(), e)
	}
}

func takeovers(n int) (events []port.Event) {
	for i := range n {
		events = append(events, happening(port.Takeover, i))
	}
	return events
}

// assertKeys shows that the entries are of these keys, in their order.
func assertKeys(t *testing.T, entries []port.AuditEntry, n int) {
	t.Helper()
	require.Len(t, entries, n)
	for i, e := range entries {
		require.Equal(t, happening("", i).Scope, e.Scope)
	}
}

func TestWhatIsAuditedIsWrittenWithItsScopeAndTheStoresTime(t *testing.T) {
	kinds := map[port.Happening]port.AuditKind{
		port.Mismatch: "mismatch", port.Duplicate: "duplicate", port.Takeover: "takeover", port.LeaseLost: "lease_lost",
		port.AmountConflict: "amount_conflict",
	}
	for what, kind := range kinds {
		clock := storetest.NewClock()
		work := memory.New(clock.Now)
		o := hiredAt(work, clock.Now).open(t)
		told := happening(what, 0)
		told.Detail = "in the event's own words"
		o.observe(t, happening(what, 0), told)
		o.close()
		entries := written(t, work)
		assertKeysOf(t, entries, "key-0", "key-0")
		for _, e := range entries {
			assert.Equal(t, kind, e.Kind)
			assert.Equal(t, clock.Now(), e.At)
			assert.NotEmpty(t, e.Detail)
		}
		assert.Equal(t, "in the event's own words", entries[1].Detail)
	}
}

// A log that could not be written for an hour tells of each event when it was.
func TestAnEntryHasTheTimeOfItsEventHoweverLateItIsWritten(t *testing.T) {
	onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
		clock := storetest.NewClock() // this process's, years from the store's
		o := hiredAt(work, clock.Now)
		o.observe(t, happening(port.Takeover, 0))
		clock.Pass(time.Hour)
		o.observe(t, happening(port.Takeover, 1))
		clock.Pass(time.Minute)
		o.Run(over(t))
		var now time.Time
		require.NoError(t, work.Read(t.Context(), func(tx port.Tx) error { now = tx.Now(); return nil }))
		entries := written(t, work)
		assertKeys(t, entries, 2)
		assert.Equal(t, time.Hour, entries[1].At.Sub(entries[0].At))
		assert.WithinDuration(t, now.Add(-time.Minute), entries[1].At, 20*time.Second, "by the store's time")
		assert.Equal(t, entries[0].At, entries[0].At.Truncate(time.Microsecond))
	})
}

// A clock that was set back must not date anything into the future.
func TestAnEntryIsNeverLaterThanItsWriting(t *testing.T) {
	store, here := storetest.NewClock(), storetest.NewClock()
	work := memory.New(store.Now)
	o := hiredAt(work, here.Now)
	here.Pass(time.Hour)
	o.observe(t, happening(port.Takeover, 0))
	here.Pass(-time.Hour)
	o.Run(over(t))
	assert.Equal(t, store.Now(), written(t, work)[0].At)
}

func assertKeysOf(t *testing.T, entries []port.AuditEntry, keys ...idempotency.Key) {
	t.Helper()
	var found []idempotency.Key
	for _, e := range entries {
		found = append(found, e.Scope.Key)
	}
	require.Equal(t, keys, found)
}

func TestWhatIsNoNewsIsNotAudited(t *testing.T) {
	work := memory.New(time.Now)
	o := hired(work).open(t)
	for _, what := range []port.Happening{
		port.Reserved, port.Replayed, port.InProgress, port.Called, port.Completed, port.CommitUnknown, port.Stopped,
		port.Abandoned, port.Unknown,
	} {
		o.observe(t, happening(what, 0))
	}
	o.close()
	assert.Empty(t, written(t, work))
}

// over is a context that has ended.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Who has hung up has done what he has done.
func TestAnEventIsAuditedThoughItsContextIsOver(t *testing.T) {
	work := memory.New(time.Now)
	o := hired(work).open(t)
	o.Observe(over(t), happening(port.Takeover, 0))
	o.close()
	assertKeys(t, written(t, work), 1)
}

func TestWhatManyObserveAtOnceIsAllWritten(t *testing.T) {
	onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
		o := hired(work).open(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { o.observe(t, takeovers(100)...) })
		}
		all.Wait()
		o.close()
		entries := written(t, work)
		assert.Len(t, entries, 800)
		for i := 1; i < len(entries); i++ {
			assert.Less(t, entries[i-1].Number, entries[i].Number)
		}
	})
}

func TestEventsAreWrittenInTheirOrderAndFiveHundredAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
		store := storetest.NewUnreliable(work) // it counts
		o := hired(store)
		o.WithPatience(time.Minute)
		o.observe(t, takeovers(1200)...)
		o.Run(over(t))
		assertKeys(t, written(t, work), 1200)
		assert.Equal(t, 3, store.Commits())
	})
}

// The same event is one entry, however often it is told, by whom and when.
func TestAnEventThatIsToldOnceIsOneEntry(t *testing.T) {
	onEachStore(t, func(t *testing.T, work port.UnitOfWork) {
		once := func(what port.Happening, n int, name string) port.Event {
			e := happening(what, n)
			e.Once = name
			return e
		}
		here, there := hired(work).open(t), hired(work).open(t)
		for _, o := range []*office{here, there, here} {
			o.observe(t, once(port.AmountConflict, 0, "order:1"), once(port.AmountConflict, 0, "order:1"))
		}
		here.close()
		there.close()
		later := hired(work).open(t)
		later.observe(t, once(port.AmountConflict, 0, "order:1"))
		later.close()
		assertKeysOf(t, written(t, work), "key-0")

		another := hired(work).open(t)
		another.observe(t, once(port.AmountConflict, 0, "order:2"), once(port.AmountConflict, 1, "order:1"),
			once(port.Takeover, 0, "order:1"), happening(port.AmountConflict, 0), happening(port.AmountConflict, 0))
		another.close()
		assert.Len(t, written(t, work), 6, "another name, key or kind is another event; one without a name each time")
	})
}
