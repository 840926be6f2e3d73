package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
)

// withholding is a payment provider that books each charge and, until it is told otherwise, answers none. It outlives
// the services that ask it.
type withholding struct {
	url   string
	asked chan string // the gateway key of each charge that is booked and not answered

	mu       sync.Mutex
	answers  bool
	calls    map[string][]time.Time // by gateway key
	released chan struct{}
}

func withholdingProvider(t *testing.T) *withholding {
	t.Helper()
	p := &withholding{asked: make(chan string, 1000), calls: map[string][]time.Time{}, released: make(chan struct{})}
	simulator := gateway.NewHandler(gateway.HandlerConfig{
		Book: gateway.NewMemoryBook(), Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || p.comes(r.Header.Get("Idempotency-Key")) {
			simulator.ServeHTTP(w, r)
			return
		}
		simulator.ServeHTTP(httptest.NewRecorder(), r)
		p.asked <- r.Header.Get("Idempotency-Key")
		select {
		case <-r.Context().Done():
		case <-p.released:
		}
		panic(http.ErrAbortHandler) // the answer never arrives
	}))
	t.Cleanup(server.Close)
	t.Cleanup(sync.OnceFunc(func() { close(p.released) }))
	p.url = server.URL
	return p
}

// comes notes a charge that is asked for, and tells whether it shall be answered.
func (p *withholding) comes(gatewayKey string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[gatewayKey] = append(p.calls[gatewayKey], time.Now())
	return p.answers
}

// answer has everything answered from now on.
func (p *withholding) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = true
}

func (p *withholding) callsOf(order string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[strings.TrimPrefix(order, "/api/orders/")+":1"]
}

// another is the real program as an instance of the service, in a process of its own.
func another(t *testing.T, path string, env map[string]string, change ...func(*exec.Cmd)) (*exec.Cmd, *running) {
	t.Helper()
	r := &running{t: t, stdout: newOutput(), stderr: newOutput()}
	c := exec.CommandContext(t.Context(), path, "serve")
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), r.stdout, r.stderr
	c.Env = append(withoutKakutei(os.Environ()), "KAKUTEI_LISTEN=127.0.0.1:0")
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	for _, ch := range change {
		ch(c)
	}
	require.NoError(t, c.Start())
	r.base = r.stdout.await(t, `page +(http://\S+)/\n`)[1]
	return c, r
}

// killed is what an instance leaves that is killed while the provider has all these orders' charges: it has taken the
// money for each of them, and answered nobody.
func killed(t *testing.T, path string, env map[string]string, p *withholding, orders int) (left []string) {
	t.Helper()
	c, r := another(t, path, env)
	for i := range orders {
		left = append(left, r.placed(fmt.Sprint("place-", i)))
	}
	var clients sync.WaitGroup
	for i, order := range left {
		clients.Go(func() {
			_, err := r.send(http.MethodPost, order+"/confirm-payment", fmt.Sprint("pay-", i), thousand)
			assert.Error(t, err, "nobody is answered")
		})
	}
	late := time.After(soon)
	for range orders {
		select {
		case <-p.asked:
		case <-late:
			require.FailNow(t, "the charges do not come", r.stderr)
		}
	}
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	clients.Wait()
	return left
}

func TestASecondInstanceRecoversWhatAKilledOneHasLeft(t *testing.T) {
	path := binary(t)
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		const lease = 3 * time.Second
		p := withholdingProvider(t)
		env := map[string]string{
			"KAKUTEI_DATABASE_URL": url, "KAKUTEI_GATEWAY": p.url,
			"KAKUTEI_LEASE": lease.String(), "KAKUTEI_GATEWAY_TIMEOUT": "2900ms", "KAKUTEI_RECOVERY_INTERVAL": "50ms",
		}
		order := killed(t, path, env, p, 1)[0]
		p.answer()

		r := serving(t, env)
		assert.Equal(t, http.StatusConflict, r.post(order+"/confirm-payment", "pay-0", thousand).status,
			"until its lease is over nobody knows that the holder is dead")
		r.becomes(order, "PAID")
		calls := p.callsOf(order)
		require.Len(t, calls, 2, "the charge was asked for once more, under the same gateway key")
		assert.Greater(t, calls[1].Sub(calls[0]), lease-time.Second)
		replay := r.post(order+"/confirm-payment", "pay-0", thousand)
		assert.Equal(t, http.StatusOK, replay.status)
		assert.True(t, replay.replayed)
		r.stop()
		assert.Equal(t, called{code: 0, stderr: ""}, quiet(alone(t, env, "reconcile")))
	})
}

func TestTwoInstancesRecoverFiftyOrdersOfAKilledOneEachOnce(t *testing.T) {
	path := binary(t)
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		const orders = 50
		p := withholdingProvider(t)
		env := map[string]string{
			"KAKUTEI_DATABASE_URL": url, "KAKUTEI_GATEWAY": p.url,
			"KAKUTEI_LEASE": "6s", "KAKUTEI_GATEWAY_TIMEOUT": "5900ms", "KAKUTEI_RECOVERY_INTERVAL": "100ms",
			"KAKUTEI_LOCK_TIMEOUT": "5s", // no completion waits in vain, so none is asked for twice
		}
		left := killed(t, path, env, p, orders)
		p.answer()

		_, one := another(t, path, env)
		two := serving(t, env)
		for _, order := range left {
			two.becomes(order, "PAID")
		}
		for i, order := range left {
			assert.Len(t, p.callsOf(order), 2, "one of the two asked once")
			first := one.post(order+"/confirm-payment", fmt.Sprint("pay-", i), thousand)
			second := two.post(order+"/confirm-payment", fmt.Sprint("pay-", i), thousand)
			assert.Equal(t, http.StatusOK, first.status, first.body)
			assert.True(t, first.replayed)
			assert.Equal(t, first, second, "the same bytes from both")
		}
		recovered := strings.Count(one.stderr.String(), `"msg":"recovered"`) +
			strings.Count(two.stderr.String(), `"msg":"recovered"`)
		assert.Equal(t, orders, recovered)
		assert.Eventually(t, func() bool {
			return strings.Count(two.operators("/api/audit?limit=500&kind=takeover"), `"kind":"takeover"`) == orders
		}, soon, 10*time.Millisecond, "each is audited once")
		two.stop()
		got := alone(t, env, "reconcile")
		assert.Equal(t, called{code: 0}, quiet(got))
		assert.Contains(t, got.stderr, fmt.Sprintf("compared %d charges and %d payments", orders, orders))
		assert.JSONEq(t, `{"records":[]}`, alone(t, env, "stuck", "--json").stdout)
	})
}

// quiet is what a command ended with and has found.
func quiet(got called) called { return called{code: got.code, stdout: got.stdout} }

// A lease of a process that is gone does not outlive a restart of the same instance either.
func TestARestartRecoversWhatItsOwnDeathHasLeft(t *testing.T) {
	path := binary(t)
	p := withholdingProvider(t)
	env := map[string]string{
		"KAKUTEI_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "shop.db"), "KAKUTEI_GATEWAY": p.url,
		"KAKUTEI_LEASE": "3s", "KAKUTEI_GATEWAY_TIMEOUT": "2900ms", "KAKUTEI_RECOVERY_INTERVAL": "50ms",
	}
	order := killed(t, path, env, p, 1)[0]
	p.answer()
	_, r := another(t, path, env)
	r.becomes(order, "PAID")
	assert.Len(t, p.callsOf(order), 2)
}
