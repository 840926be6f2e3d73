package identity_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/identity"
)

func TestAFileIsReadAsItIsNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	source := identity.File(path)
	_, err := source(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.NotContains(t, err.Error(), path)
	for _, text := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := source(t.Context())
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
	}
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte(" "), 256<<10+1), 0o600))
	_, err = source(t.Context())
	require.Error(t, err)

	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, other := range []string{pipe, t.TempDir()} {
		_, err = identity.File(other)(t.Context())
		require.Error(t, err, other)
	}
}

func TestAURLIsAskedOnceAndBelievedNothingElse(t *testing.T) {
	held := make(chan struct{})
	answers := map[string]http.HandlerFunc{
		"/keys":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"/elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) },
		"/missing":   http.NotFound,
		"/created": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"keys":[]}`))
		},
		"/large":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(" "), 256<<10+1)) },
		"/truncated": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100") },
		"/headers":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 128<<10)) },
		"/silent":    func(http.ResponseWriter, *http.Request) { <-held },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answers[r.URL.Path](w, r) }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(held) })
	got, err := identity.URL(server.URL + "/keys?code=s3cret")(t.Context())
	require.NoError(t, err)
	assert.JSONEq(t, `{"keys":[]}`, string(got))
	for path := range answers {
		if path == "/keys" {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := identity.URL(server.URL + path + "?code=s3cret")(ctx)
		cancel()
		require.Error(t, err, path)
		assert.NotContains(t, err.Error(), "s3cret", path)
	}
	server.CloseClientConnections()
	_, err = identity.URL("http://127.0.0.1:1/?code=s3cret")(t.Context())
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "s3cret")
}
