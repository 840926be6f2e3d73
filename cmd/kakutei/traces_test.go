package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes spans over HTTP, as OTLP has it.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*tracepb.Span
	services []string
	raw      []byte
}

func collecting(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collectpb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, body...)
		for _, resource := range sent.GetResourceSpans() {
			for _, a := range resource.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					c.services = append(c.services, a.GetValue().GetStringValue())
				}
			}
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// named are the names of the spans that came, in the trace.
func (c *collector) named(trace string) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		if hexOf(span.GetTraceId()) == trace {
			names = append(names, span.GetName())
		}
	}
	return names
}

func hexOf(id []byte) string {
	const digits = "0123456789abcdef"
	var text strings.Builder
	for _, b := range id {
		text.WriteByte(digits[b>>4])
		text.WriteByte(digits[b&15])
	}
	return text.String()
}

// traced is a service whose spans go to an address. OpenTelemetry's SDK reads the process's environment itself.
func traced(t *testing.T, address string, env map[string]string) *running {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
	env["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
	return serving(t, env)
}

// member is a member of a line of the log, or of a document.
func member(t *testing.T, document, name string) string {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(document), &members), document)
	text, _ := members[name].(string)
	return text
}

func TestAPaymentsSpansComeToTheCollectorAndItsTraceIsInLogAndProblem(t *testing.T) {
	onEachStore(t, func(t *testing.T, url string) {
		c := collecting(t)
		r := traced(t, c.URL, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "0"})
		order := r.placed("place-1f0c")
		problem := r.post(order+"/confirm-payment", "pay-1f0c", paidBy("pm_lost_answer"))
		require.Equal(t, http.StatusServiceUnavailable, problem.status)
		trace := member(t, problem.body, "traceId")
		require.Regexp(t, `^[0-9a-f]{32}$`, trace)
		requestID := member(t, problem.body, "requestId")
		r.stop() // what is left is sent

		names := c.named(trace)
		for _, want := range []string{"POST /api/orders/:orderId/confirm-payment", "reserve", "gateway charge", "abandon"} {
			assert.Contains(t, names, want)
		}
		assert.Equal(t, url != "memory:", slices.Contains(names, "exchange"), "memory has no statements")
		assert.Contains(t, c.services, "kakutei")
		var lines []string
		for line := range strings.Lines(r.stderr.String()) {
			if strings.Contains(line, requestID) {
				lines = append(lines, line)
				assert.Equal(t, trace, member(t, line, "traceId"), line)
			}
		}
		assert.Len(t, lines, 2, "the failure's and the request's")
		for _, planted := range []string{"1f0c", "demo-alice", "alice", strings.TrimPrefix(order, "/api/orders/"), "1000"} {
			assert.NotContains(t, string(c.raw), planted)
		}
	})
}

func TestARecordedProblemNamesNoTrace(t *testing.T) {
	r := traced(t, collecting(t).URL, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	order := r.placed("place-1")
	first := r.post(order+"/confirm-payment", "pay-1", paidBy("pm_declined"))
	require.Equal(t, http.StatusPaymentRequired, first.status)
	assert.NotContains(t, first.body, "traceId")
	assert.Equal(t, first.body, r.post(order+"/confirm-payment", "pay-1", paidBy("pm_declined")).body)
	r.stop()
}

func TestWithoutACollectorNothingIsTraced(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	problem := r.post("/api/orders", "k", `{}`)
	require.Equal(t, http.StatusBadRequest, problem.status)
	assert.NotContains(t, problem.body, "traceId")
	assert.NotContains(t, r.stderr.String(), "traceId")
}

// Nobody listens at one address; at the other somebody does, and says nothing.
func TestADeadCollectorCostsNothingAndDoesNotHoldUpTheEnd(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	require.NoError(t, gone.Close())
	for name, address := range map[string]string{"gone": gone.Addr().String(), "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			r := traced(t, "http://"+address, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
			for _, key := range []string{"1", "2", "3"} {
				order := r.placed("place-" + key)
				require.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-"+key, thousand).status)
			}
			began := time.Now()
			r.stop()
			assert.Less(t, time.Since(began), 15*time.Second, "the default grace")
		})
	}
}
