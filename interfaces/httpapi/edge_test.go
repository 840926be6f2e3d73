package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/payment"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// edge is the real server on a port of its own.
type edge struct {
	server   *httpapi.Server
	address  string // host:port
	provider *storetest.Provider
	log      *journal
}

// setting changes how an edge is opened.
type setting func(c *httpapi.Config)

// open serves over a store, with a provider of the test's own.
func open(t *testing.T, work port.UnitOfWork, settings ...setting) edge {
	t.Helper()
	provider := storetest.NewProvider()
	e := openWith(t, work, provider, settings...)
	e.provider = provider
	return e
}

// openWith serves over a store and a gateway.
func openWith(t *testing.T, work port.UnitOfWork, gateway payment.Gateway, settings ...setting) edge {
	t.Helper()
	log := &journal{}
	times, nobody := storetest.Times, port.Observers{}
	config := httpapi.Config{
		Till: &checkout.Till{
			Executor: idempotent.New(work, httpapi.Documents{}, nobody, times),
			Work:     work, Gateway: gateway, Observer: nobody,
			KeyRetention: storetest.KeyRetention, Lease: times.Lease,
		},
		Ready: func(context.Context) error { return nil },
		Auth:  httpapi.DemoTokens{}, ExampleToken: "demo-alice",
		Deadline: times.Deadline(), Lease: times.Lease, Retention: times.Retention,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, set := range settings {
		set(&config)
	}
	server := httpapi.New(config)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	running := server.HTTPServer("")
	served := make(chan error, 1)
	go func() { served <- running.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, running.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return edge{server: server, address: listener.Addr().String(), log: log}
}

// onMemory serves over an empty store in memory.
func onMemory(t *testing.T, settings ...setting) edge {
	t.Helper()
	return open(t, memory.New(time.Now), settings...)
}

// journal is a log that tests can read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is the whole log.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// lines are those with this message, as objects.
func (j *journal) lines(t *testing.T, message string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(j.String()) {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object))
		if object["msg"] == message {
			found = append(found, object)
		}
	}
	return found
}

// place places the order of tea for 1000 yen and returns its id.
func (e edge) place(t *testing.T) string {
	t.Helper()
	id, isText := e.send(t, placing()).is(t, http.StatusCreated).member(t, "orderId").(string)
	require.True(t, isText)
	return id
}

// statusOf is the order's status as its customer sees it.
func (e edge) statusOf(t *testing.T, order string) any {
	t.Helper()
	return e.send(t, get("/api/orders/"+order)).is(t, http.StatusOK).member(t, "status")
}
