package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"kakutei/domain/fault"
)

// untraced are asked every few seconds, and say nothing of anybody's request.
var untraced = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

// Requests is the handler with a span for each request, in the caller's trace if it is in one. The span has neither the
// path nor the query, in which a key may stand: Request names the route.
func (t *Tracing) Requests(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if untraced[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Request tells the span of a request what became of it, once it is answered: its method, the route that it met (empty
// for none), the status, and the code of the problem unless that was a recorded one.
func (t *Tracing) Request(ctx context.Context, method, route string, status int, code fault.Code) {
	if t == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		method = "_OTHER" // a client can send any word
	}
	name := method
	if route != "" {
		name += " " + route
		span.SetAttributes(attribute.String("http.route", route))
	}
	span.SetName(name)
	span.SetAttributes(attribute.String("http.request.method", method), attribute.Int("http.response.status_code", status))
	if code != "" {
		span.SetAttributes(attribute.String(attrFault, string(code)))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}
