package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/pgtest"
	"kakutei/infrastructure/storetest"
	"kakutei/infrastructure/tracing"
)

// traced is a shop whose spans are kept, on a database.
type traced struct {
	storetest.Shop
	t      *testing.T
	traces *tracing.Tracing
	spans  *keeper
}

// keeper keeps the spans also when the tracing has ended.
type keeper struct{ *tracetest.InMemoryExporter }

func (keeper) Shutdown(context.Context) error { return nil }

// onEachDatabase runs the test on both kinds of databases.
func onEachDatabase(t *testing.T, test func(t *testing.T, s traced)) {
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "shop.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.Empty(t) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.WithoutCancel(t.Context())
			store, err := gormstore.Open(ctx, gormstore.Config{URL: url(t), Pool: 4, LockTimeout: 10 * time.Second})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			require.NoError(t, store.Migrate(t.Context()))

			s := traced{t: t, spans: &keeper{tracetest.NewInMemoryExporter()}}
			s.traces, err = tracing.New(ctx, s.spans, "v1", slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			s.Shop = storetest.OpenShop(store.Watched(s.traces), storetest.NewProvider())
			work, observers := s.traces.Work(s.Store), port.Observers{s.Seen, s.traces}
			s.Work, s.Observer = work, observers
			s.Gateway = s.traces.Provider(struct {
				payment.Gateway
				payment.Statement
			}{Gateway: s.Provider})
			s.Executor = idempotent.New(work, storetest.Documents{}, observers, storetest.Times)
			test(t, s)
		})
	}
}

// under does something under a request, which is answered 200.
func (s traced) under(do func(ctx context.Context)) {
	s.t.Helper()
	s.traces.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		do(r.Context())
		s.traces.Request(r.Context(), r.Method, "/api/orders/:orderId/confirm-payment", http.StatusOK, "")
		w.WriteHeader(http.StatusOK)
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/api/orders/x", nil))
}

// sent are all spans, once the tracing has ended, as a tree: "parent > span", in the order of their beginning.
func (s traced) sent() (tree []string, spans map[string]tracetest.SpanStub) {
	s.traces.End(s.t.Context())
	return treeOf(s.spans.GetSpans())
}

// sentOf are those of the trace in which there is a span of this name.
func (s traced) sentOf(name string) (tree []string, spans map[string]tracetest.SpanStub) {
	s.traces.End(s.t.Context())
	all := s.spans.GetSpans()
	i := slices.IndexFunc(all, func(span tracetest.SpanStub) bool { return span.Name == name })
	require.GreaterOrEqual(s.t, i, 0, "there is no span %s", name)
	trace := all[i].SpanContext.TraceID()
	return treeOf(slices.DeleteFunc(all, func(span tracetest.SpanStub) bool { return span.SpanContext.TraceID() != trace }))
}

func treeOf(kept tracetest.SpanStubs) (tree []string, spans map[string]tracetest.SpanStub) {
	names, byName := map[string]string{}, map[string]tracetest.SpanStub{}
	for _, span := range kept {
		names[span.SpanContext.SpanID().String()] = span.Name
		byName[span.Name] = span
	}
	for _, span := range kept {
		name := span.Name
		if parent, has := names[span.Parent.SpanID().String()]; has {
			name = parent + " > " + name
		}
		tree = append(tree, name)
	}
	return tree, byName
}

// about are a span's attributes.
func about(span tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range span.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

const request = "POST /api/orders/:orderId/confirm-payment"

func TestAConfirmationIsATreeOfItsSteps(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, s traced) {
		id, err := s.Place(t.Context())
		require.NoError(t, err)
		s.under(func(ctx context.Context) {
			_, err = s.ConfirmPayment(ctx, storetest.Payment(id, "key-1f0c"))
			require.NoError(t, err)
		})
		tree, spans := s.sentOf(request)
		for _, want := range []string{
			request, request + " > reserve", request + " > gateway charge", request + " > complete",
			"reserve > commit", "complete > commit",
		} {
			assert.Contains(t, tree, want)
		}
		for _, step := range []string{"reserve", "complete"} {
			asks := slices.Contains(tree, step+" > exchange")
			assert.Equal(t, about(spans["commit"])["db.system.name"] == "sqlite", asks, "on PostgreSQL it presumes the order")
		}
		asked := about(spans[request])
		assert.Equal(t, "ConfirmPayment", asked["kakutei.operation"])
		assert.Equal(t, "completed", asked["kakutei.outcome"])
		assert.Equal(t, "/api/orders/:orderId/confirm-payment", asked["http.route"])
		assert.Equal(t, "200", asked["http.response.status_code"])
		assert.Equal(t, "approved", about(spans["gateway charge"])["kakutei.answer"])
		assert.Equal(t, "1", about(spans["gateway charge"])["kakutei.attempt"])
		assert.Equal(t, "ConfirmPayment", about(spans["reserve"])["kakutei.operation"])
		assert.Contains(t, about(spans["commit"])["db.query.text"], "COMMIT")
		for _, span := range spans {
			assert.Equal(t, spans[request].SpanContext.TraceID(), span.SpanContext.TraceID(), span.Name)
		}
	})
}

func TestARefusalAndAFailureAreToldByTheirCodes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, s traced) {
		id, err := s.Place(t.Context())
		require.NoError(t, err)
		s.Provider.Next(storetest.Declining("card_declined"), storetest.Unreachable)
		s.under(func(ctx context.Context) {
			_, err = s.ConfirmPayment(ctx, storetest.Payment(id, "k"))
			require.NoError(t, err)
		})
		s.under(func(ctx context.Context) {
			_, err = s.ConfirmPayment(ctx, storetest.Payment(id, "k2"))
			require.Error(t, err)
		})
		s.traces.End(t.Context())
		var outcomes, refusals, answers []string
		var failed int
		for _, span := range s.spans.GetSpans() {
			a := about(span)
			if span.Name == request {
				outcomes, refusals = append(outcomes, a["kakutei.outcome"]), append(refusals, a["kakutei.refusal"])
			}
			if span.Name == "gateway charge" {
				answers = append(answers, a["kakutei.answer"])
				if span.Status.Code == codes.Error {
					failed++
				}
			}
		}
		assert.Equal(t, []string{"completed", "unknown"}, outcomes)
		assert.Equal(t, []string{"payment_declined", ""}, refusals)
		assert.Equal(t, []string{"declined", ""}, answers)
		assert.Equal(t, 1, failed)
	})
}

// Everything that must not be in a span is planted: where it comes from a caller, from the provider or out of an error.
func TestNoKeyTokenAmountOrNameIsInASpan(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, s traced) {
		id, err := s.Place(t.Context())
		require.NoError(t, err)
		const key = "key-1f0c"
		broken := errors.New("the provider said key-1f0c, demo-carol, 7777777")
		for _, play := range []storetest.Call{
			storetest.Unreachable,
			func(context.Context, payment.Attempt, storetest.Book) (payment.Answer, error) { return nil, broken },
			storetest.Approving,
		} {
			s.Provider.Next(play)
			s.under(func(ctx context.Context) { _, _ = s.ConfirmPayment(ctx, storetest.Payment(id, key)) })
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/idempotency-keys/"+key+"?operation="+key, nil)
		r.Header.Set("Authorization", "Bearer demo-carol")
		r.Header.Set("User-Agent", "demo-carol")
		s.traces.Requests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			s.traces.Request(r.Context(), key, "/api/idempotency-keys/:key", http.StatusNotFound, "not_found")
		})).ServeHTTP(httptest.NewRecorder(), r)

		s.traces.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(httptest.NewRecorder(), r)

		s.traces.End(t.Context())
		require.NotEmpty(t, s.spans.GetSpans())
		for _, span := range s.spans.GetSpans() {
			var said strings.Builder
			fmt.Fprintln(&said, span.Name, span.Status.Description)
			for _, a := range span.Attributes {
				fmt.Fprintln(&said, a.Key, a.Value.String())
			}
			for _, event := range span.Events {
				fmt.Fprintln(&said, event.Name, event.Attributes)
			}
			for _, planted := range []string{key, "carol", "alice", "1000", "7777777", string(id), "demo-"} {
				assert.NotContains(t, said.String(), planted, span.Name)
			}
		}
	})
}

func TestADuplicateIsNoErrorOfTheServices(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, s traced) {
		id, err := s.Place(t.Context())
		require.NoError(t, err)
		other := storetest.Payment(id, "k")
		other.Money = money.Of(1, money.JPY)
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		s.spans.Reset()
		s.under(func(ctx context.Context) {
			_, err = s.ConfirmPayment(ctx, other)
			require.ErrorIs(t, err, idempotency.ErrKeyReused)
		})
		_, spans := s.sent()
		assert.Equal(t, "idempotency_key_reused", about(spans["reserve"])["kakutei.fault"])
		assert.Equal(t, "mismatch", about(spans[request])["kakutei.outcome"])
		for _, span := range spans {
			assert.NotEqual(t, codes.Error, span.Status.Code, span.Name)
		}
	})
}

func TestTheRecoverysTryIsATraceOfItsOwn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, s traced) {
		id, err := s.Place(t.Context())
		require.NoError(t, err)
		s.Provider.Next(storetest.Unreachable)
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.Error(t, err)
		left, err := storetest.RecordIn(t.Context(), s.Store, storetest.ScopeOf(storetest.Payment(id, "k")))
		require.NoError(t, err)
		s.spans.Reset()
		_, err = s.traces.Resume(s.Resume)(t.Context(), left)
		require.NoError(t, err)
		tree, spans := s.sent()
		assert.Contains(t, tree, "recover")
		assert.Contains(t, tree, "recover > gateway charge")
		assert.Equal(t, "completed", about(spans["recover"])["kakutei.outcome"])
	})
}
