package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/audit"
	"kakutei/infrastructure/memory"
)

// provider is a payment provider whose answers the test holds back.
type provider struct {
	url     string
	asked   chan struct{} // a charge has come
	release func()        // lets the answers go out
}

func heldProvider(t *testing.T) provider {
	t.Helper()
	released := make(chan struct{})
	p := provider{asked: make(chan struct{}, 10), release: sync.OnceFunc(func() { close(released) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.asked <- struct{}{}
		<-released
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"chargeId":"ch_1","status":"approved","amount":1000,"currency":"JPY",`+
			`"chargedAt":"2026-11-30T01:02:03Z"}`)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(p.release)
	p.url = server.URL
	return p
}

// paying is a service that is in the middle of a payment, and the channel that the payment's answer comes to; it is
// closed when there is none.
func paying(t *testing.T, p provider, env map[string]string) (*running, <-chan answered) {
	t.Helper()
	env["KAKUTEI_GATEWAY"], env["KAKUTEI_DATABASE_URL"] = p.url, "memory:"
	r := serving(t, env)
	order := r.placed("place-1")
	answer := make(chan answered, 1)
	go func() {
		defer close(answer)
		if a, err := r.send(http.MethodPost, order+"/confirm-payment", "pay-1", thousand); err == nil {
			answer <- a
		}
	}()
	<-p.asked
	return r, answer
}

// C60, first run.
func TestTheFirstSignalFinishesWhatRunsAndTakesNothingNew(t *testing.T) {
	p := heldProvider(t)
	r, answer := paying(t, p, map[string]string{})
	r.signals <- syscall.SIGTERM
	r.stderr.await(t, "stopping")
	assert.Eventually(t, r.refuses, time.Second, 10*time.Millisecond)
	assert.Empty(t, r.exit, "it waits for the payment")

	p.release()
	got := <-answer
	assert.Equal(t, http.StatusOK, got.status, got.body)
	assert.Equal(t, 0, r.exitCode())
}

// C60, second run.
func TestWhatRunsLongerThanTheGraceIsCutOff(t *testing.T) {
	p := heldProvider(t)
	r, answer := paying(t, p, map[string]string{"KAKUTEI_SHUTDOWN_GRACE": "200ms"})
	r.signals <- syscall.SIGINT
	begun := time.Now()
	assert.Equal(t, 1, r.exitCode())
	assert.Less(t, time.Since(begun), 1200*time.Millisecond)
	_, answeredAtAll := <-answer
	assert.False(t, answeredAtAll)
	assert.Regexp(t, `kakutei: running requests were cut off; .+\n\z`, r.stderr.String())
	p.release()
}

// C60, third run.
func TestASecondSignalCutsOffAtOnce(t *testing.T) {
	p := heldProvider(t)
	r, answer := paying(t, p, map[string]string{})
	r.signals <- syscall.SIGTERM
	r.stderr.await(t, "stopping")
	r.signals <- syscall.SIGTERM
	begun := time.Now()
	assert.Equal(t, 1, r.exitCode())
	assert.Less(t, time.Since(begun), time.Second)
	_, answeredAtAll := <-answer
	assert.False(t, answeredAtAll)
	p.release()
}

// What cannot be written any more is counted at least.
func TestAServiceThatIsCutOffSaysHowManyAuditEntriesAreLost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	said := newOutput()
	log := slog.New(slog.NewJSONHandler(said, nil))
	hanging := &hangingStore{UnitOfWork: memory.New(time.Now), reached: make(chan struct{})}
	auditing := audit.NewWriter(hanging, log, time.Now)
	ctx, stop := context.WithCancel(t.Context())
	cut, cutOff := context.WithCancel(t.Context())
	s := service{
		server: &http.Server{ReadHeaderTimeout: soon}, listener: listener, store: memory.New(time.Now), grace: soon, log: log,
		unready: func() {}, last: auditing.Run, dropped: auditing.Drop, lastly: nothing,
	}
	err = s.run(ctx, cut, func() {
		for range 3 {
			auditing.Observe(ctx, port.Event{What: port.Mismatch})
		}
		<-hanging.reached
		stop()
		cutOff()
	})
	require.ErrorIs(t, err, errCutOff)
	assert.Contains(t, said.String(), `"msg":"audit entries were lost: there was no time to write them","entries":3`)
}

// hangingStore does not come back from a transaction.
type hangingStore struct {
	port.UnitOfWork
	reached chan struct{}
}

func (s *hangingStore) Do(ctx context.Context, _ port.Wait, _ func(port.Tx) error) error {
	close(s.reached)
	<-ctx.Done()
	return ctx.Err()
}

func TestItSaysThatItIsNotReadyBeforeItClosesTheListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var dialled error
	ctx, stop := context.WithCancel(t.Context())
	s := service{
		server: &http.Server{ReadHeaderTimeout: soon}, listener: listener, store: memory.New(time.Now),
		grace: soon, log: slog.New(slog.DiscardHandler), last: nothing, dropped: func() {}, lastly: nothing,
		unready: func() {
			var c net.Conn
			if c, dialled = net.Dial("tcp", listener.Addr().String()); dialled == nil {
				_ = c.Close()
			}
		},
	}
	dialled = errors.New("it never said so")
	require.NoError(t, s.run(ctx, t.Context(), stop))
	assert.NoError(t, dialled)
}

func TestAServiceThatIsNotReadyIsNotReadyForThoseWhoAsk(t *testing.T) {
	c := readAs(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"}, "--listen", "127.0.0.1:0")
	store, err := c.store.open(t.Context(), slog.New(slog.DiscardHandler), soon)
	require.NoError(t, err)
	s, err := c.assemble(t.Context(), store, unseen(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(s.listener.Close(), s.store.Close())) }()
	readyz := func() int {
		answer := httptest.NewRecorder()
		s.server.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/readyz", nil))
		return answer.Code
	}
	require.Equal(t, http.StatusOK, readyz())
	s.unready()
	assert.Equal(t, http.StatusServiceUnavailable, readyz())
}

func TestAListenerThatFailsEndsTheService(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	background := make(chan struct{})
	s := service{
		server: &http.Server{ReadHeaderTimeout: soon}, listener: listener, store: memory.New(time.Now),
		background: []func(context.Context){func(ctx context.Context) { <-ctx.Done(); close(background) }},
		grace:      soon, log: slog.New(slog.DiscardHandler), unready: func() {}, last: nothing, dropped: func() {},
		lastly: nothing,
	}
	err = s.run(t.Context(), t.Context(), func() { _ = listener.Close() })
	require.ErrorContains(t, err, "the listener failed")
	<-background
}

func nothing(context.Context) {}

// What is told something until the end ends after those who tell it, and before the store.
func TestWhatComesLastEndsAfterAllElse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	store := memory.New(time.Now)
	ctx, stop := context.WithCancel(t.Context())
	isOpen := func() bool { return store.Ready(t.Context()) == nil }
	var ended []string
	s := service{
		server: &http.Server{ReadHeaderTimeout: soon}, listener: listener, store: store,
		background: []func(context.Context){func(ctx context.Context) {
			<-ctx.Done()
			ended = append(ended, "background")
		}},
		last: func(ctx context.Context) {
			<-ctx.Done()
			ended = append(ended, "last")
			if isOpen() {
				ended = append(ended, "the store is open")
			}
		},
		grace: soon, log: slog.New(slog.DiscardHandler), unready: func() {}, dropped: func() {}, lastly: nothing,
	}
	require.NoError(t, s.run(ctx, t.Context(), stop))
	assert.Equal(t, []string{"background", "last", "the store is open"}, ended)
	assert.False(t, isOpen())
}

func TestAShortGraceIsEnoughWhenNothingRuns(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_SHUTDOWN_GRACE": "200ms"})
	r.stop()
}

// Browsers and load balancers connect before they have anything to ask.
func TestAConnectionThatHasAskedNothingHoldsNobodyUp(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_SHUTDOWN_GRACE": "2s"})
	for _, begun := range []string{"", "GET /heal"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Write([]byte(begun))
		require.NoError(t, err)
	}
	r.get("/healthz") // the service has taken the connections that came before this one
	r.stop()
}

func TestNothingOfAServiceIsLeftWhenItHasEnded(t *testing.T) {
	onEachStore(t, func(t *testing.T, url string) {
		before := left(nil) // by a test before: a SQLite file that is lost is not closed
		r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_SWEEP_INTERVAL": "1ms"})
		r.post(r.placed("place-1")+"/confirm-payment", "pay-1", thousand)
		r.stop()
		if !assert.Eventually(t, func() bool { return len(left(before)) == 0 }, soon, 10*time.Millisecond) {
			t.Log(left(before))
		}
	})
}

// left are the stacks of goroutines that only a service starts, by their names, without those that were there before.
func left(before map[string]string) map[string]string {
	var all strings.Builder
	found := map[string]string{}
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2)
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "testing.tRunner(") || strings.Contains(stack, ".left(") { // the test itself
			continue
		}
		for _, part := range []string{"/cmd/kakutei.", "net/http.(*Server).Serve", "database/sql.", "pgxpool."} {
			if name, _, _ := strings.Cut(stack, " ["); strings.Contains(stack, part) && before[name] == "" {
				found[name] = stack
			}
		}
	}
	return found
}

func (r *running) refuses() bool {
	c, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
