package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"kakutei/application/port"
	"kakutei/infrastructure/logging"
	"kakutei/infrastructure/metrics"
	"kakutei/infrastructure/tracing"
	"kakutei/interfaces/httpapi"
)

// tracesConfig says where spans go.
type tracesConfig struct{ collector string }

func (c *tracesConfig) variables() []variable {
	return []variable{{
		name: "OTEL_EXPORTER_OTLP_ENDPOINT", bare: true, set: into(&c.collector, collectorURL),
		means: "the collector that spans are sent to, over HTTP; empty: none are made. Then the other OTEL_ variables count",
	}}
}

// collectorURL reads where a collector is; empty is none. The error does not show the text: it may hold a password.
func collectorURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("not a URL like http://localhost:4318")
	}
	return text, nil
}

// sight is what operators see of a service beside its log: metrics always, spans if there is a collector.
type sight struct {
	metrics *metrics.Metrics
	traces  *tracing.Tracing // nil: there is none
}

// open begins to look. The log is the one that the service is to use: its lines name request and trace.
func (c *tracesConfig) open(ctx context.Context, log *slog.Logger) (sight, *slog.Logger, error) {
	version, commit := built()
	s := sight{metrics: metrics.New(version, commit)}
	if c.collector != "" {
		var err error
		if s.traces, err = tracing.Start(ctx, version, log); err != nil {
			return sight{}, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
	}
	return s, slog.New(logging.Marked(log.Handler(),
		logging.Mark{Name: "requestId", Of: httpapi.RequestID}, logging.Mark{Name: "traceId", Of: s.traces.TraceID})), nil
}

// unseen is for a command that nobody scrapes: it ends before anybody could.
func unseen() sight { return sight{metrics: metrics.New(built())} }

// observers are those who watch beside the given ones.
func (s sight) observers(others ...port.Observer) port.Observers {
	all := append(port.Observers(others), s.metrics)
	if s.traces != nil {
		all = append(all, s.traces)
	}
	return all
}

// store is the store, watched. What a transaction takes is measured around its spans.
func (s sight) store(o opened) opened {
	if o.database != nil && s.traces != nil {
		o.database.Watched(s.traces)
	}
	return opened{seenStore{o.store, s.metrics.Work(s.traces.Work(o.store))}, o.book, o.database}
}

// seenStore is a store whose transactions are looked at.
type seenStore struct {
	store
	work port.UnitOfWork
}

// Do implements port.UnitOfWork.
func (s seenStore) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	return s.work.Do(ctx, wait, fn)
}

// Read implements port.UnitOfWork.
func (s seenStore) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	return s.work.Read(ctx, fn)
}

// provider is the payment provider, watched.
func (s sight) provider(p paymentProvider) paymentProvider {
	return s.metrics.Provider(s.traces.Provider(p))
}

// answered is told of each request.
func (s sight) answered(ctx context.Context, a httpapi.Answered) {
	s.metrics.Request(a.Method, a.Route, a.Status, a.Took, a.Code)
	s.traces.Request(ctx, a.Method, a.Route, a.Status, a.Code)
}

// server is the edge's server, its requests traced.
func (s sight) server(api *httpapi.Server, listen string) *http.Server {
	server := api.HTTPServer(listen)
	server.Handler = s.traces.Requests(server.Handler)
	return server
}

// standing has a scrape show how things stand.
func (s sight) standing(store opened, inner parts) {
	standing := metrics.Standing{Backlog: inner.desk.Backlog, Audit: inner.auditing.Backlog}
	if store.database != nil {
		standing.Connections = store.database.Connections
	}
	s.metrics.Watch(standing)
}
