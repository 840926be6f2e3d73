package main

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// opened is the answer to a GET whose body is still to be read.
func (r *running) opened(path string) *http.Response {
	r.t.Helper()
	response, err := http.Get(r.base + path) //nolint:noctx // it ends with the service
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (r *running) page(path string) string {
	r.t.Helper()
	response := r.opened(path)
	require.Equal(r.t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return string(text)
}

func TestInDemoModeTheFirstPageIsTheShop(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	assert.Contains(t, r.page("/"), `data-page="shop"`)
	assert.Contains(t, r.page("/"), "demo-alice", "with the command lines")
	assert.Contains(t, r.page("/second-tab"), `data-page="tab"`)
	r.stop()
}

func TestInJWTModeTheFirstPageTellsHowToConnectAndNothingIsShownWithoutAToken(t *testing.T) {
	r := serving(t, map[string]string{
		"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_AUTH": "jwt", "KAKUTEI_JWT_SECRET": jwtKey,
	})
	page := r.page("/")
	assert.NotContains(t, page, `data-page="shop"`)
	assert.Contains(t, page, "YOUR-TOKEN")
	for _, path := range []string{"/second-tab", "/api/live?actor=alice"} {
		assert.Equal(t, http.StatusNotFound, r.opened(path).StatusCode, path)
	}
	r.stop()
}

// Shutting down waits for what runs: a live view would run for ever.
func TestAnOpenLiveViewDoesNotKeepTheServiceFromEnding(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_SHUTDOWN_GRACE": "10m"})
	live := bufio.NewReader(r.opened("/api/live?actor=alice").Body)
	_, err := live.ReadString('\n')
	require.NoError(t, err, "somebody looks")
	r.stop()
	_, err = io.ReadAll(live)
	require.NoError(t, err, "the stream has ended, and was not cut off")
}
