package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// build builds the real program, once for all tests, as a release is built: without the race detector.
var build func() (path string, err error)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "kakutei-binary-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(folder) }()
		if err := os.Chmod(folder, 0o755); err != nil { // some tests run it as another user
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		build = sync.OnceValues(func() (string, error) {
			path := filepath.Join(folder, "kakutei")
			c := exec.CommandContext(context.Background(), "go", "build", "-trimpath",
				"-ldflags", "-X main.version=v1.2.3 -X main.commit=abc1234", "-o", path, ".")
			c.Env = append(os.Environ(), "CGO_ENABLED=0")
			said, err := c.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, said)
			}
			return path, err
		})
		return m.Run()
	}())
}

// binary is the real program's path.
func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

// started is the real program while it serves.
func started(t *testing.T, path string) (*exec.Cmd, *running) {
	t.Helper()
	r := &running{t: t, stdout: newOutput(), stderr: newOutput()}
	c := exec.CommandContext(t.Context(), path, "serve")
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), r.stdout, r.stderr
	c.Env = append(withoutKakutei(os.Environ()), "KAKUTEI_LISTEN=127.0.0.1:0")
	require.NoError(t, c.Start())
	r.base = r.stdout.await(t, `page +(http://\S+)/\n`)[1]
	return c, r
}

func withoutKakutei(env []string) []string {
	var rest []string
	for _, e := range env {
		if !strings.HasPrefix(e, "KAKUTEI_") {
			rest = append(rest, e)
		}
	}
	return rest
}

func TestTheRealProgram(t *testing.T) {
	path := binary(t)

	t.Run("tells what it was linked with", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), path, "version").Output()
		require.NoError(t, err)
		assert.Equal(t, "kakutei v1.2.3 (commit abc1234)\n", string(said))
	})

	t.Run("exits with 1 when it is called wrongly", func(t *testing.T) {
		err := exec.CommandContext(t.Context(), path, "pay").Run()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 1, exit.ExitCode())
	})

	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("finishes a slow payment after "+signal.String(), func(t *testing.T) {
			c, r := started(t, path)
			answer := slowPayment(r, "pm_slow_500")
			require.NoError(t, c.Process.Signal(signal))
			r.stderr.await(t, "stopping")
			got, answered := <-answer
			assert.True(t, answered)
			assert.Equal(t, http.StatusOK, got.status, got.body)
			require.NoError(t, c.Wait(), "exit 0")
			assert.FileExists(t, filepath.Join(c.Dir, "kakutei.db"), "the default store is a file here")
		})
	}

	t.Run("reads a posting request and prints its key", func(t *testing.T) {
		c := exec.CommandContext(t.Context(), path, "posting-key")
		c.Stdin = strings.NewReader(`{"companyId":"company-uuid","sourceDocumentType":"opening_balance",` +
			`"sourceDocumentId":"ob-2025","serviceDate":"2025-01-01","total":5000000}`)
		said, err := c.Output()
		require.NoError(t, err)
		assert.Equal(t, "company-uuid|opening_balance|ob-2025|0|2025-01-01|5000000\n"+
			"0c674b33687c887784900f1a0be8ad56c763b61f06584c2a9fb6a72d712e82d3\n", string(said))
	})

	t.Run("ends at the second signal", func(t *testing.T) {
		c, r := started(t, path)
		answer := slowPayment(r, "pm_slow_9000")
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		r.stderr.await(t, "stopping")
		require.NoError(t, c.Process.Signal(syscall.SIGINT))
		require.Error(t, c.Wait())
		assert.Equal(t, 1, c.ProcessState.ExitCode())
		_, answered := <-answer
		assert.False(t, answered)
	})
}

// slowPayment begins a payment and returns when it runs. The channel is closed without an answer when there is none.
func slowPayment(r *running, method string) <-chan answered {
	r.t.Helper()
	order := r.placed("place-1")
	answer := make(chan answered, 1)
	go func() {
		defer close(answer)
		a, err := r.send(http.MethodPost, order+"/confirm-payment", "pay-1",
			`{"amount":1000,"currency":"JPY","paymentMethod":"`+method+`"}`)
		if err == nil {
			answer <- a
		}
	}()
	require.Eventually(r.t, func() bool {
		a, err := r.send(http.MethodGet, "/api/idempotency-keys/pay-1?operation=ConfirmPayment", "", "")
		return err == nil && strings.Contains(a.body, `"status":"IN_PROGRESS"`)
	}, soon, 1)
	return answer
}

func TestTheHeapMayGrowAsTheOperatorSaysOrElseAsTheProgramDoes(t *testing.T) {
	for set, grows := range map[string]string{"": "400", "50": "50"} {
		i := groundOn(t, sqliteFile(t)).with("GOGC", set).start()
		i.shows("go_gc_gogc_percent " + grows)
	}
}
