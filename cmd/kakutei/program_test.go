package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// called is what one call of the program left behind.
type called struct {
	code           int
	stdout, stderr string
}

// call runs the program to its end, in this process. Its context is over already: a service that should have refused to
// start ends at once, with 0.
func call(t *testing.T, env map[string]string, args ...string) called {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	return callIn(over, env, args...)
}

// alone runs a command that ends by itself.
func alone(t *testing.T, env map[string]string, args ...string) called {
	t.Helper()
	return callIn(t.Context(), env, args...)
}

func callIn(ctx context.Context, env map[string]string, args ...string) called {
	return callReading(ctx, strings.NewReader(""), env, args...)
}

// callReading runs the program with something on its stdin.
func callReading(ctx context.Context, stdin io.Reader, env map[string]string, args ...string) called {
	var stdout, stderr bytes.Buffer
	code := run(ctx, program{
		args: args, env: func(name string) string { return env[name] },
		stdin: stdin, stdout: &stdout, stderr: &stderr,
		notify: func(chan<- os.Signal) {},
	})
	return called{code, stdout.String(), stderr.String()}
}

// soon is the longest that anything in these tests may take. Nothing is ordered by it.
const soon = 20 * time.Second

// running is a service in this process.
type running struct {
	t              *testing.T
	stdout, stderr *output
	base           string // of its URLs
	signals        chan<- os.Signal
	exit           <-chan int
}

// begin runs serve on a free port and returns before it serves.
func begin(t *testing.T, env map[string]string, change ...func(*program)) *running {
	t.Helper()
	exit, notified := make(chan int, 1), make(chan chan<- os.Signal, 1)
	r := &running{t: t, stdout: newOutput(), stderr: newOutput(), exit: exit}
	p := program{
		args: []string{"serve", "--listen", "127.0.0.1:0"},
		env:  func(name string) string { return env[name] }, stdin: strings.NewReader(""),
		stdout: r.stdout, stderr: r.stderr, notify: func(c chan<- os.Signal) { notified <- c },
	}
	for _, apply := range change {
		apply(&p)
	}
	go func() { exit <- run(context.Background(), p) }()
	select {
	case r.signals = <-notified:
	case code := <-exit:
		require.FailNow(t, "it did not start", "exit %d: %s", code, r.stderr)
	}
	t.Cleanup(func() {
		select {
		case r.signals <- syscall.SIGTERM:
		default: // it has had its two signals
		}
	})
	return r
}

// serving runs serve on a free port and returns when it serves.
func serving(t *testing.T, env map[string]string, change ...func(*program)) *running {
	t.Helper()
	r := begin(t, env, change...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("what the service has warned of:", r.stderr.warnings())
		}
	})
	r.base = r.stdout.await(t, `page +(http://\S+)/\n`)[1]
	return r
}

// stop ends the service by one signal and expects it to have ended well.
func (r *running) stop() {
	r.t.Helper()
	r.signals <- syscall.SIGTERM
	require.Equal(r.t, 0, r.exitCode(), r.stderr)
}

func (r *running) exitCode() int {
	r.t.Helper()
	select {
	case code := <-r.exit:
		return code
	case <-time.After(soon):
		require.FailNow(r.t, "it did not end", r.stderr)
		return -1
	}
}

// answered is an answer as it came.
type answered struct {
	status   int
	replayed bool
	body     string
}

// send is one request of alice's, on a connection of its own. It does not fail the test, so that it may run beside it.
func (r *running) send(method, path, key, body string) (answered, error) {
	return r.sendAs("demo-alice", method, path, key, body)
}

func (r *running) sendAs(token, method, path, key, body string) (answered, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+token)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answered{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", string(text)}, err
}

func (r *running) post(path, key, body string) answered {
	r.t.Helper()
	a, err := r.send(http.MethodPost, path, key, body)
	require.NoError(r.t, err)
	return a
}

func (r *running) get(path string) answered {
	r.t.Helper()
	a, err := r.send(http.MethodGet, path, "", "")
	require.NoError(r.t, err)
	return a
}

// placed places an order of 1000 JPY and returns its path.
func (r *running) placed(key string) string {
	r.t.Helper()
	a := r.post("/api/orders", key,
		`{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}`)
	require.Equal(r.t, http.StatusCreated, a.status, a.body)
	return "/api/orders/" + regexp.MustCompile(`"orderId":"([^"]+)"`).FindStringSubmatch(a.body)[1]
}

// output keeps what a program writes, and tells when it has written something.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// warnings are the log's lines that somebody should look at, without the rest of a busy test's.
func (o *output) warnings() string {
	var all strings.Builder
	for line := range strings.Lines(o.String()) {
		if strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) {
			all.WriteString("\n" + strings.TrimSuffix(line, "\n"))
		}
	}
	return all.String()
}

// await returns the pattern's match, once there is one, and its groups.
func (o *output) await(t *testing.T, pattern string) []string {
	t.Helper()
	wanted, late := regexp.MustCompile(pattern), time.After(soon)
	for {
		o.mu.Lock()
		found, changed := wanted.FindStringSubmatch(o.text.String()), o.changed
		o.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(t, "it never wrote "+pattern, o.String())
		}
	}
}
