package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gormstore/pgtest"
)

// ground is what the services of a crash test stand on and what outlives them: the store, the provider and its book.
type ground struct {
	t    *testing.T
	env  map[string]string
	book *gateway.MemoryBook
	rows *sql.DB // a way to the store's rows that the service knows nothing of
	log  string  // the PostgreSQL server's
}

// The times of these tests: a dead holder is waited for as long as the lease is.
const (
	crashLease = 2 * time.Second
	forgiving  = "5s"        // KAKUTEI_LOCK_TIMEOUT: how long a busy machine takes is nobody's refusal
	patience   = time.Minute // the longest that a client insists; nothing is ordered by it
)

// lastingStores make a store for one test that outlives the process, by name.
var lastingStores = map[string]func(*testing.T) (url string){
	"SQLite": sqliteFile, "PostgreSQL": func(t *testing.T) string { return pgtest.Empty(t) },
}

// groundOn is the ground over an empty store. The provider and its book are the tests' own; a manner stands before it.
func groundOn(t *testing.T, url string, manners ...func(http.Handler) http.Handler) ground {
	t.Helper()
	book := gateway.NewMemoryBook()
	var handler http.Handler = gateway.NewHandler(gateway.HandlerConfig{
		Book: book, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	for _, manner := range manners {
		handler = manner(handler)
	}
	provider := httptest.NewServer(handler)
	t.Cleanup(provider.Close)
	return ground{t: t, book: book, rows: rowsOf(t, url), log: os.Getenv("KAKUTEI_TEST_POSTGRES_LOG"), env: map[string]string{
		"KAKUTEI_DATABASE_URL": url, "KAKUTEI_GATEWAY": provider.URL,
		"KAKUTEI_LEASE": crashLease.String(), "KAKUTEI_GATEWAY_TIMEOUT": "1s", "KAKUTEI_RECOVERY_INTERVAL": "100ms",
		"KAKUTEI_LOCK_TIMEOUT": forgiving,
	}}
}

// rowsOf is a way to a store's rows.
func rowsOf(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver, source := "pgx", url
	if file, isSQLite := strings.CutPrefix(url, "sqlite:"); isSQLite {
		driver, source = "sqlite", file+"?_pragma=busy_timeout(5000)"
	}
	rows, err := sql.Open(driver, source)
	require.NoError(t, err)
	rows.SetMaxIdleConns(0) // one that was kept may be broken by what the test does
	t.Cleanup(func() { assert.NoError(t, rows.Close()) })
	return rows
}

// over is the ground over another store, with the same provider.
func (g ground) over(url string) ground {
	g.t.Helper()
	g = g.with("KAKUTEI_DATABASE_URL", url)
	g.rows = rowsOf(g.t, url)
	return g
}

// with is the ground for a service with other settings, given as NAME, value, NAME, value …
func (g ground) with(settings ...string) ground {
	g.env = maps.Clone(g.env)
	for i := 0; i < len(settings); i += 2 {
		g.env[settings[i]] = settings[i+1]
	}
	return g
}

// instance is the real program as a service, in a process of its own.
type instance struct {
	*running
	process *exec.Cmd
	end     func() // waits until it has ended
}

// start starts an instance. It is gone when the test ends, before the store is.
func (g ground) start(change ...func(*exec.Cmd)) *instance {
	g.t.Helper()
	c, r := another(g.t, binary(g.t), g.env, change...)
	i := &instance{running: r, process: c, end: sync.OnceFunc(func() { _ = c.Wait() })}
	g.t.Cleanup(i.kill)
	return i
}

// kill ends the process as a power cut would, and waits until it is gone.
func (i *instance) kill() {
	_ = i.process.Process.Kill() // it may be gone already
	i.end()
}

// signal sends the process a signal that it cannot refuse.
func (i *instance) signal(s syscall.Signal) {
	i.t.Helper()
	require.NoError(i.t, i.process.Process.Signal(s))
	if s == syscall.SIGSTOP {
		require.Eventually(i.t, i.standsStill, soon, time.Millisecond)
	}
}

// standsStill tells that none of a stopped process's threads does anything any more: on a busy machine one may be within a
// system call, and get a lock by it, for some time after the signal. Where nobody can tell, they are believed to.
func (i *instance) standsStill() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", i.process.Process.Pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		// Its state follows its name, which is in brackets.
		if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// ask sends one of alice's requests and gives it up when ctx ends. An error says that no answer came.
func (r *running) ask(ctx context.Context, path, key, body string) (answered, error) {
	a, _, err := r.askAs(ctx, "demo-alice", path, key, body)
	return a, err
}

// askAs is ask for anybody, with the header of the answer.
func (r *running) askAs(ctx context.Context, token, path, key, body string) (answered, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+path, strings.NewReader(body))
	if err != nil {
		return answered{}, nil, err
	}
	req.Close = true
	req.GetBody = nil // else the transport sends it again by itself
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answered{}, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", string(text)}, res.Header, err
}

// insistence is one request as a client sees it that repeats it, identical, until the answer is final.
type insistence struct {
	path, key, body string
	order           string   // the path of the order that is paid
	first           answered // the first answer that came, of whatever status
	tries           int
	final           []string // the body of each success
}

// paymentOf is the confirmation of an order.
func paymentOf(order, key string) *insistence {
	return &insistence{path: order + "/confirm-payment", key: key, body: thousand, order: order}
}

// placing is an order that is placed.
func placing(key string) *insistence {
	return &insistence{
		path: "/api/orders", key: key,
		body: `{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}`,
	}
}

// orderIn is the path of the order that was placed with this answer.
func orderIn(body string) string {
	_, id, _ := strings.Cut(body, `"orderId":"`)
	id, _, _ = strings.Cut(id, `"`)
	return "/api/orders/" + id
}

// errAnswer is an answer that no client should get.
var errAnswer = errors.New("an answer that must not be")

// try sends the request once. Error: errAnswer; that no answer came is none.
func (p *insistence) try(ctx context.Context, at *running) (final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	p.tries++
	a, err := at.ask(ctx, p.path, p.key, p.body)
	if err != nil {
		return false, nil // the client knows nothing then, and asks again
	}
	if p.first.status == 0 {
		p.first = a
	}
	switch a.status {
	case http.StatusOK, http.StatusCreated:
		p.final = append(p.final, a.body)
		return true, nil
	case http.StatusConflict, http.StatusServiceUnavailable:
		return false, nil
	default:
		return false, errors.Join(errAnswer, errors.New(a.body))
	}
}

// insist sends the identical request, wherever at says, until the answer is final.
func (p *insistence) insist(ctx context.Context, at func() *running) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		final, err := p.try(ctx, at())
		if final || err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(errors.New("no final answer"), ctx.Err())
		}
	}
}

// number is what a query counts.
func (g ground) number(query string) (n int) {
	g.t.Helper()
	require.NoError(g.t, g.rows.QueryRowContext(g.t.Context(), query).Scan(&n))
	return n
}

// charges is how often the provider has taken an order's money.
func (g ground) charges(order string) (n int) {
	g.t.Helper()
	lines, err := g.book.OfOrder(g.t.Context(), strings.TrimPrefix(order, "/api/orders/"))
	require.NoError(g.t, err)
	for _, l := range lines {
		if l.Status == gateway.Approved {
			n++
		}
	}
	return n
}

// whole demands that everything is as if nothing had ever failed: each key has one answer, which every repeat gets, each
// order one charge and one entry, whatever the number of keys that paid it; the store holds no other payment, agrees with
// the provider, and is at rest.
func (g ground) whole(at *running, payments ...*insistence) {
	g.t.Helper()
	receipts := map[string]string{} // by order
	for _, p := range payments {
		for range 2 {
			a, err := at.ask(g.t.Context(), p.path, p.key, p.body)
			require.NoError(g.t, err)
			assert.Equal(g.t, http.StatusOK, a.status, a.body)
			assert.True(g.t, a.replayed, "%s has its outcome on record", p.key)
			p.final = append(p.final, a.body)
		}
		if receipts[p.order] == "" {
			receipts[p.order] = p.final[0]
		}
		for _, body := range p.final {
			assert.Equal(g.t, receipts[p.order], body, "every answer to one payment is the same, byte for byte")
		}
	}
	for order := range receipts {
		assert.Equal(g.t, 1, g.charges(order), "%s is charged once", order)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM orders WHERE status = 'PAID'`:                        len(receipts),
		`SELECT count(*) FROM orders WHERE status <> 'PAID'`:                       0,
		`SELECT count(*) FROM journal_entries`:                                     len(receipts),
		`SELECT count(*) FROM idempotency_records WHERE status = 'IN_PROGRESS'`:    0,
		`SELECT count(DISTINCT payment_id) FROM orders`:                            len(receipts),
		`SELECT count(DISTINCT source_document_id) FROM journal_entries`:           len(receipts),
		`SELECT count(*) FROM idempotency_records WHERE operation LIKE 'Confirm%'`: len(payments),
	} {
		assert.Equal(g.t, want, g.number(query), query)
	}
	g.agrees()
	g.rests()
}

// agrees demands that the store and the provider have nothing to tell about each other.
func (g ground) agrees() {
	g.t.Helper()
	assert.Equal(g.t, called{stdout: "{\"findings\":[\n],\"unresolved\":[\n]}\n"},
		quiet(alone(g.t, g.env, "reconcile", "--json")))
}
