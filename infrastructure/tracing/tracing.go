// Package tracing sends spans of requests, steps, exchanges with the database and calls of the provider to a collector.
// It hangs on the ports as an observer and by wrapping them: no inner layer knows of it. A span names operations and
// outcomes; no key, token, amount, name or text of an error is in one.
package tracing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracing makes spans. A nil one makes none, and wraps nothing.
type Tracing struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TraceContext
}

// Start has spans sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names, over HTTP; the other variables of
// OpenTelemetry are heeded by its SDK. It connects to nothing yet.
func Start(ctx context.Context, version string, log *slog.Logger) (*Tracing, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	return New(ctx, exporter, version, log)
}

// New has spans sent by an exporter, batch by batch and beside the work: what the exporter does not take in time is lost.
func New(ctx context.Context, exporter sdktrace.SpanExporter, version string, log *slog.Logger) (*Tracing, error) {
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "kakutei"), attribute.String("service.version", version),
	), resource.WithFromEnv()) // the last word
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(described),
		sdktrace.WithBatcher(&forgiving{SpanExporter: exporter, log: log}))
	return &Tracing{provider: provider, tracer: provider.Tracer("kakutei")}, nil
}

// farewell is what the last spans have to get away: a collector that is dead must not hold up the end of the service.
const farewell = 2 * time.Second

// End sends what is left, within farewell and ctx.
func (t *Tracing) End(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // forgiving has told
}

// TraceID is the trace that the context is in; empty for none.
func (t *Tracing) TraceID(ctx context.Context) string {
	if t == nil {
		return ""
	}
	if in := trace.SpanContextFromContext(ctx); in.HasTraceID() {
		return in.TraceID().String()
	}
	return ""
}

// complainsEvery is how often a collector that takes nothing is worth a line.
const complainsEvery = time.Minute

// forgiving logs what its exporter could not do: nobody else can mend it.
type forgiving struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex
	told time.Time
	lost int // since then
}

// ExportSpans implements sdktrace.SpanExporter.
func (f *forgiving) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := f.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost += len(spans)
	if time.Since(f.told) >= complainsEvery {
		f.log.WarnContext(ctx, "spans were lost: the collector did not take them", "spans", f.lost, "error", err.Error())
		f.told, f.lost = time.Now(), 0
	}
	return nil
}
