package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/logging"
	"kakutei/infrastructure/metrics"
	"kakutei/interfaces/httpapi"
)

// constantOrder is the order that each confirmation of the no-op is about.
const constantOrder = "01930000-0000-7000-8000-000000000000"

// constantReceipt is what the no-op answers.
const constantReceipt = `{"orderId":"` + constantOrder + `","status":"PAID","paidAt":"2026-11-30T01:02:03.123456Z",` +
	`"amount":1000,"currency":"JPY","paymentId":"01930000-0000-7000-8000-000000000001"}`

// noop is the service's edge as the service has it, in front of nothing: a confirmation is authenticated, its key and its
// body are read, it is counted and logged, and its answer is constant.
func noop(log *slog.Logger) *http.Server {
	counted := metrics.New("bench", "")
	answer := idempotent.Answer{Outcome: idempotency.Outcome{Document: []byte(constantReceipt)}}
	edge := httpapi.New(httpapi.Config{
		Till: &checkout.Till{},
		Confirm: func(context.Context, checkout.ConfirmPayment) (idempotent.Answer, error) {
			return answer, nil
		},
		Ready: func(context.Context) error { return nil }, Auth: httpapi.DemoTokens{},
		Logger:      slog.New(logging.Marked(log.Handler(), logging.Mark{Name: "requestId", Of: httpapi.RequestID})),
		MaxInFlight: 256, Deadline: 15 * time.Second, Lease: 30 * time.Second, Retention: 24 * time.Hour,
		Metrics: counted.Handler(),
		Answered: func(_ context.Context, a httpapi.Answered) {
			counted.Request(a.Method, a.Route, a.Status, a.Took, a.Code)
		},
	})
	return edge.HTTPServer("")
}

// serveNoop is the no-op as a process of its own, until ctx ends.
func serveNoop(ctx context.Context, address string, out io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := noop(slog.New(slog.NewJSONHandler(out, nil))) //nolint:contextcheck // each request brings its own
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
