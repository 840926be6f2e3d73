package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"kakutei/infrastructure/tracing"
)

func kept(t *testing.T) (*tracing.Tracing, *keeper) {
	t.Helper()
	spans := &keeper{tracetest.NewInMemoryExporter()}
	traces, err := tracing.New(t.Context(), spans, "v1", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return traces, spans
}

func TestARequestGoesOnInTheTraceThatItCameIn(t *testing.T) {
	traces, spans := kept(t)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/orders/x", nil)
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	var seen string
	traces.Requests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = traces.TraceID(r.Context())
	})).ServeHTTP(httptest.NewRecorder(), r)
	traces.End(t.Context())
	assert.Equal(t, trace, seen)
	require.Len(t, spans.GetSpans(), 1)
	assert.Equal(t, trace, spans.GetSpans()[0].SpanContext.TraceID().String())
	assert.Equal(t, "00f067aa0ba902b7", spans.GetSpans()[0].Parent.SpanID().String())
}

func TestProbesAndScrapesAreNotTraced(t *testing.T) {
	traces, spans := kept(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		traces.Requests(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	}
	traces.End(t.Context())
	assert.Empty(t, spans.GetSpans())
}

func TestWithoutTracingNothingIsWrappedAndNoTraceIsNamed(t *testing.T) {
	var none *tracing.Tracing
	assert.Empty(t, none.TraceID(t.Context()))
	assert.Nil(t, none.Work(nil))
	assert.Nil(t, none.Provider(nil))
	assert.Nil(t, none.Resume(nil))
	assert.Nil(t, none.Requests(nil))
	none.Request(t.Context(), http.MethodGet, "", http.StatusOK, "")
	none.End(t.Context())
}

// dead is a collector that is away: an export takes until its context ends.
type dead struct {
	mu    sync.Mutex
	asked int
}

func (d *dead) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	d.mu.Lock()
	d.asked++
	d.mu.Unlock()
	<-ctx.Done()
	return errors.New("connection refused")
}

func (d *dead) Shutdown(context.Context) error { return nil }

func TestADeadCollectorHoldsUpNeitherRequestsNorTheEnd(t *testing.T) {
	traces, err := tracing.New(t.Context(), &dead{}, "v1", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	handler := traces.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 10_000 { // more than its queue holds
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	grace, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	traces.End(grace)
	assert.Less(t, time.Since(began), 10*time.Second, "the grace ends it")

	traces, err = tracing.New(t.Context(), &dead{}, "v1", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	traces.Requests(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	began = time.Now()
	traces.End(t.Context())
	assert.Less(t, time.Since(began), 10*time.Second, "its own patience is two seconds")
}

// refusing takes nothing, at once.
type refusing struct{}

func (refusing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("connection refused")
}
func (refusing) Shutdown(context.Context) error { return nil }

func TestLostSpansAreWorthALineAMinute(t *testing.T) {
	var log bytes.Buffer
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1") // each span is a batch of its own
	traces, err := tracing.New(t.Context(), refusing{}, "v1", slog.New(slog.NewJSONHandler(&log, nil)))
	require.NoError(t, err)
	for range 20 {
		traces.Requests(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	traces.End(t.Context())
	assert.Equal(t, 1, strings.Count(log.String(), "spans were lost"), log.String())
	assert.Contains(t, log.String(), "connection refused")
}
