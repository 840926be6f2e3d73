package main

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simulating runs the payment provider simulator on a free port, in this process, and returns when it serves.
func simulating(t *testing.T, env map[string]string, args ...string) *running {
	t.Helper()
	r := begin(t, env, func(p *program) { p.args = append([]string{"gateway", "--listen", "127.0.0.1:0"}, args...) })
	r.base = r.stdout.await(t, `gateway +(http://\S+)\n`)[1]
	return r
}

func book(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "book.db")
}

// charged asks the provider at the address for 1000 yen. There may be no answer.
func charged(t *testing.T, base, key, method string, header ...string) (answered, error) {
	orderID, attempt, _ := strings.Cut(key, ":")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/charges", strings.NewReader(
		`{"orderId":"`+orderID+`","attempt":`+attempt+`,"amount":1000,"currency":"JPY","paymentMethod":"`+method+`"}`))
	if err != nil {
		return answered{}, err
	}
	req.GetBody, req.Close = nil, true
	req.Header.Set("Idempotency-Key", key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answered{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answered{status: res.StatusCode, body: string(text)}, err
}

func mustCharge(t *testing.T, base, key, method string, header ...string) answered {
	t.Helper()
	a, err := charged(t, base, key, method, header...)
	require.NoError(t, err)
	return a
}

func TestTheSimulatorTreatsAMethodAsTheContractSays(t *testing.T) {
	for name, args := range map[string][]string{"memory": {"--book", "memory:"}, "file": {"--book", book(t)}} {
		t.Run(name, func(t *testing.T) {
			r := simulating(t, nil, args...)
			for method, want := range map[string][]int{
				"pm_ok": {201, 200}, "pm_declined": {402, 402}, "pm_insufficient_funds": {402, 402}, "pm_new": {402, 402},
				"pm_unavailable": {503, 201, 200}, "pm_down": {503, 503}, "pm_slow_1": {201, 200},
				"pm_lost_answer": {0, 200, 200},
			} {
				for i, status := range want {
					a, err := charged(t, r.base, method+":1", method)
					if status == 0 {
						require.Error(t, err, "%s, call %d: %d", method, i+1, a.status)
						continue
					}
					require.NoError(t, err, "%s, call %d", method, i+1)
					assert.Equal(t, status, a.status, "%s, call %d: %s", method, i+1, a.body)
				}
			}
			assert.Equal(t, http.StatusOK, r.get("/healthz").status)
			r.stop()
		})
	}
}

func TestTheSimulatorDemandsTheTokenThatItIsGiven(t *testing.T) {
	r := simulating(t, map[string]string{"KAKUTEI_GATEWAY_TOKEN": "s3cret"}, "--book", "memory:")
	assert.Equal(t, http.StatusUnauthorized, mustCharge(t, r.base, "o:1", "pm_ok").status)
	assert.Equal(t, http.StatusUnauthorized, mustCharge(t, r.base, "o:1", "pm_ok", "Authorization", "Bearer other").status)
	assert.Equal(t, http.StatusCreated, mustCharge(t, r.base, "o:1", "pm_ok", "Authorization", "Bearer s3cret").status)
	assert.NotContains(t, r.stdout.String()+r.stderr.String(), "s3cret")
}

func TestASimulatorThatCannotStartSaysWhyInOneLine(t *testing.T) {
	for name, args := range map[string][]string{
		"--book":   {"--book", filepath.Join(t.TempDir(), "no", "such", "folder", "book.db")},
		"--book ":  {"--book", "postgres://localhost/book"},
		"--book  ": {"--book", "sqlite:book.db"},
		"--listen": {"--listen", "8081", "--book", "memory:"},
	} {
		got := call(t, nil, append([]string{"gateway"}, args...)...)
		assert.Equal(t, 1, got.code, args)
		assert.Regexp(t, `\Akakutei: `+strings.TrimSpace(name)+`: .+\n\z`, got.stderr, args)
		assert.Empty(t, got.stdout, args)
	}
	first := simulating(t, nil, "--book", "memory:")
	taken := call(t, nil, "gateway", "--book", "memory:", "--listen", strings.TrimPrefix(first.base, "http://"))
	assert.Equal(t, 1, taken.code)
	assert.Regexp(t, `\Akakutei: --listen: .*in use\n\z`, taken.stderr)
}

func TestTheServicesSettingsAreNotTheSimulators(t *testing.T) {
	env := map[string]string{"KAKUTEI_LISTEN": "nonsense", "KAKUTEI_DATABASE_URL": "nonsense"}
	r := simulating(t, env, "--book", "memory:")
	assert.Equal(t, http.StatusOK, r.get("/healthz").status)
}

func TestALateAnswerStillComesAfterSIGTERM(t *testing.T) {
	r := simulating(t, nil, "--book", "memory:")
	answer := make(chan answered, 1)
	go func() {
		defer close(answer)
		if a, err := charged(t, r.base, "o:1", "pm_slow_800"); err == nil {
			answer <- a
		}
	}()
	require.Eventually(t, func() bool { // it is booked before it is answered
		return strings.Contains(r.get("/charges?orderId=o").body, "approved")
	}, soon, 1)
	r.stop()
	assert.Equal(t, http.StatusCreated, (<-answer).status)
}

func TestTheRealSimulatorKeepsItsBook(t *testing.T) {
	path, dir := binary(t), t.TempDir()
	start := func() (*exec.Cmd, *running) {
		r := &running{t: t, stdout: newOutput(), stderr: newOutput()}
		c := exec.CommandContext(t.Context(), path, "gateway", "--listen", "127.0.0.1:0")
		c.Dir, c.Stdout, c.Stderr = dir, r.stdout, r.stderr
		c.Env = withoutKakutei(c.Environ())
		require.NoError(t, c.Start())
		r.base = r.stdout.await(t, `gateway +(http://\S+)\n`)[1]
		return c, r
	}
	killed, before := start()
	first := mustCharge(t, before.base, "o:1", "pm_ok")
	require.Equal(t, http.StatusCreated, first.status)
	_, err := charged(t, before.base, "o:2", "pm_lost_answer")
	require.Error(t, err)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	assert.FileExists(t, filepath.Join(dir, "kakutei-gateway.db"), "the default")

	ended, after := start()
	again := mustCharge(t, after.base, "o:1", "pm_ok")
	assert.Equal(t, answered{status: http.StatusOK, body: first.body}, again)
	assert.Equal(t, http.StatusOK, mustCharge(t, after.base, "o:2", "pm_lost_answer").status)
	assert.Equal(t, 2, strings.Count(after.get("/charges?since=2026-01-01T00:00:00Z").body, `"approved"`))
	require.NoError(t, ended.Process.Signal(syscall.SIGTERM))
	require.NoError(t, ended.Wait(), "exit 0")
}

func TestAShopPaysAtTheSimulatorNextDoor(t *testing.T) {
	onEachStore(t, func(t *testing.T, url string) {
		provider := simulating(t, map[string]string{"KAKUTEI_GATEWAY_TOKEN": "s3cret"}, "--book", book(t))
		r := serving(t, map[string]string{
			"KAKUTEI_DATABASE_URL": url, "KAKUTEI_GATEWAY": provider.base, "KAKUTEI_GATEWAY_TOKEN": "s3cret",
			"KAKUTEI_RECOVERY_INTERVAL": "0", // nobody but the client asks again
		})
		for method, want := range map[string][]int{
			"pm_ok": {200}, "pm_declined": {402}, "pm_slow_10": {200}, "pm_lost_answer": {503, 200},
			"pm_unavailable": {503, 200}, "pm_down": {503, 503},
		} {
			order := r.placed("place-" + method)
			body := strings.Replace(thousand, "}", `,"paymentMethod":"`+method+`"}`, 1)
			for i, status := range want {
				a := r.post(order+"/confirm-payment", "pay-"+method, body)
				assert.Equal(t, status, a.status, "%s, call %d: %s", method, i+1, a.body)
			}
		}
		r.stop()
		assert.NotContains(t, r.stderr.String()+provider.stderr.String(), "s3cret")
	})
}
