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

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/infrastructure/audit"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// edge is the real server on a port of its own.
type edge struct {
	server   *httpapi.Server
	address  string // host:port
	work     port.UnitOfWork
	provider *storetest.Provider
	log      *logText
	client   *http.Client
}

// undescribed is the edge for clients that take any answer.
func (e edge) undescribed() edge {
	e.client = plainClient
	return e
}

// setting changes how an edge is opened.
type setting func(c *httpapi.Config)

// open serves over a store, with a provider of the test's own.
func open(t *testing.T, work port.UnitOfWork, settings ...setting) edge {
	t.Helper()
	return openAuditing(t, work, work, settings...)
}

// openAuditing is open with the audit log's writer on another unit of work.
func openAuditing(t *testing.T, work, auditing port.UnitOfWork, settings ...setting) edge {
	t.Helper()
	log, provider := &logText{}, storetest.NewProvider()
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	times, observer := storetest.Times, auditingIn(t, auditing, logger)
	config := httpapi.Config{
		Till: &checkout.Till{
			Executor: idempotent.New(work, httpapi.Documents{}, observer, times),
			Work:     work, Gateway: provider, Observer: observer,
			KeyRetention: storetest.KeyRetention, Lease: times.Lease,
			Books: checkout.Books{Company: storetest.Company, Zone: storetest.Zone},
		},
		Ledger: &bookkeeping.Ledger{Work: work, Observer: observer, Deadline: times.Deadline()},
		Desk:   &oversight.Desk{Work: work},
		Ready:  func(context.Context) error { return nil },
		Auth:   httpapi.DemoTokens{}, ExampleToken: "demo-alice",
		Deadline: times.Deadline(), Lease: times.Lease, Retention: times.Retention,
		Logger: logger,
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
	e := edge{
		server: server, address: listener.Addr().String(), work: work, provider: provider, log: log, client: client,
	}
	if _, lies := work.(broken); lies {
		return e.undescribed() // such a store says things that no store would
	}
	return e
}

// auditingIn runs the audit log's writer until the test ends, after the server.
func auditingIn(t *testing.T, work port.UnitOfWork, log *slog.Logger) port.Observer {
	t.Helper()
	writer := audit.NewWriter(work, log, time.Now)
	writing, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		writer.Run(writing)
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
	})
	return writer
}

// onMemory serves over an empty store in memory.
func onMemory(t *testing.T, settings ...setting) edge {
	t.Helper()
	return open(t, memory.New(time.Now), settings...)
}

// onMemoryAt serves over an empty store in memory whose time is the clock's.
func onMemoryAt(t *testing.T, clock func() time.Time) edge {
	t.Helper()
	return open(t, memory.New(clock))
}

// logText is a log that tests can read.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is the whole log.
func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lines are those with this message, as objects.
func (l *logText) lines(t *testing.T, message string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
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
