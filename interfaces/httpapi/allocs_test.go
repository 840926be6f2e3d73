package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// The benchmarks of `make allocs`: what one request allocates on its way through the edge.

const (
	paying  = `{"amount":1000,"currency":"JPY"}`
	placing = `{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}`
)

func BenchmarkKeyHeader(b *testing.B) {
	for name, line := range map[string]string{
		"bare":   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		"quoted": `"8e03978e-40d5-43dd-bc93-6894a57f9324"`,
	} {
		b.Run(name, func(b *testing.B) {
			header := http.Header{headerKey: {line}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := keyIn(header); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBody(b *testing.B) {
	s := &Server{config: Config{
		Confirm: func(context.Context, checkout.ConfirmPayment) (idempotent.Answer, error) {
			return idempotent.Answer{}, nil
		},
	}}
	b.Run("confirm", func(b *testing.B) {
		in := command{customer: "alice", key: "k", orderID: "o", body: []byte(paying)}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.confirmPayment(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("place", func(b *testing.B) {
		body := []byte(placing)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := cartIn(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHandler answers whole requests, without a connection, on the store in memory.
func BenchmarkHandler(b *testing.B) {
	work, times := memory.New(time.Now), storetest.Times
	till := &checkout.Till{
		Executor: idempotent.New(work, Documents{}, port.Observers{}, times),
		Work:     work, Gateway: storetest.NewProvider(), Observer: port.Observers{},
		KeyRetention: storetest.KeyRetention, Lease: times.Lease,
		Books: checkout.Books{Company: storetest.Company, Zone: storetest.Zone},
	}
	config := Config{
		Till: till, Ready: func(context.Context) error { return nil }, Auth: DemoTokens{},
		Deadline: times.Deadline(), Lease: times.Lease, Retention: times.Retention,
		Logger: slog.New(slog.DiscardHandler),
	}
	s := New(config)
	config.Confirm = func(context.Context, checkout.ConfirmPayment) (idempotent.Answer, error) {
		return idempotent.Answer{Outcome: idempotency.Outcome{Document: []byte(`{}`)}}, nil
	}
	edgeAlone := New(config)

	b.Run("no-op", func(b *testing.B) {
		ask(b, edgeAlone, http.StatusOK, func(i int) *http.Request { return posted("/api/orders/o/confirm-payment", "k", paying) })
	})
	b.Run("place", func(b *testing.B) {
		run := fmt.Sprint("place", b.N)
		ask(b, s, http.StatusCreated, func(i int) *http.Request {
			return posted("/api/orders", fmt.Sprint(run, "-", i), placing)
		})
	})
	b.Run("confirm", func(b *testing.B) {
		run := fmt.Sprint("confirm", b.N)
		shop := storetest.Shop{Till: till}
		ask(b, s, http.StatusOK, func(i int) *http.Request {
			id, err := shop.Place(b.Context())
			require.NoError(b, err)
			return posted("/api/orders/"+string(id)+"/confirm-payment", fmt.Sprint(run, "-", i), paying)
		})
	})
	b.Run("replay", func(b *testing.B) {
		id, err := (storetest.Shop{Till: till}).Place(b.Context())
		require.NoError(b, err)
		again := func(int) *http.Request {
			return posted("/api/orders/"+string(id)+"/confirm-payment", string(id), paying)
		}
		s.ServeHTTP(httptest.NewRecorder(), again(0))
		ask(b, s, http.StatusOK, again)
	})
}

// ask makes as many requests as the benchmark has rounds, and has them answered.
func ask(b *testing.B, s *Server, status int, request func(i int) *http.Request) {
	b.Helper()
	requests, answers := make([]*http.Request, b.N), make([]httptest.ResponseRecorder, b.N)
	for i := range requests {
		requests[i], answers[i] = request(i), *httptest.NewRecorder()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range requests {
		s.ServeHTTP(&answers[i], requests[i])
	}
	b.StopTimer()
	for i := range answers {
		require.Equal(b, status, answers[i].Code, answers[i].Body)
	}
}

func posted(path, key, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer demo-alice")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerKey, key)
	return r
}
