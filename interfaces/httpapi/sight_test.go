package httpapi_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// watcher keeps what it is told of requests.
type watcher struct {
	mu   sync.Mutex
	told []httpapi.Answered
	ids  []string // of the requests, as their contexts have them
}

func (w *watcher) setting(c *httpapi.Config) {
	c.Answered = func(ctx context.Context, a httpapi.Answered) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told, w.ids = append(w.told, a), append(w.ids, httpapi.RequestID(ctx))
	}
}

func TestEachRequestIsToldWithItsRouteItsStatusAndTheCodeOfItsProblem(t *testing.T) {
	var w watcher
	e := onMemory(t, w.setting)
	e.provider.Next(storetest.Declining("card_declined"))
	id := e.place(t)
	var ids []string
	for _, r := range []request{
		confirming(id), get("/api/orders/" + id), get(anOrder), get("/nowhere/" + id), placing().token("x"),
		{method: "BREW", path: "/api/orders", header: http.Header{}},
	} {
		ids = append(ids, e.send(t, r).header.Get("X-Request-Id"))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	type seen struct {
		method, route string
		status        int
		code          string
	}
	var told []seen
	for _, a := range w.told[1:] {
		told = append(told, seen{a.Method, a.Route, a.Status, string(a.Code)})
		assert.Positive(t, a.Took)
	}
	assert.Equal(t, []seen{
		{"POST", "/api/orders/:orderId/confirm-payment", 402, ""}, // a recorded problem
		{"GET", "/api/orders/:orderId", 200, ""},
		{"GET", "/api/orders/:orderId", 404, "order_not_found"},
		{"GET", "", 404, "not_found"},
		{"POST", "/api/orders", 401, "unauthenticated"},
		{"BREW", "/api/orders", 405, "method_not_allowed"},
	}, told)
	assert.Equal(t, ids, w.ids[1:])
}

func TestAPanicIsToldToo(t *testing.T) {
	var w watcher
	e := open(t, broken(func() error { panic("a bug in the store") }), w.setting)
	e.send(t, placing()).isProblem(t, http.StatusInternalServerError, "internal")
	require.Len(t, w.told, 1)
	assert.Equal(t, 500, w.told[0].Status)
	assert.EqualValues(t, "internal", w.told[0].Code)
}

// scraped has metrics answered.
func scraped(c *httpapi.Config) {
	c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
}

func TestMetricsAreAnsweredToAnybodyAndOnlyIfThereAreAny(t *testing.T) {
	e := onMemory(t, scraped)
	scrape := get("/metrics?format=text").with("Authorization", "")
	a := e.send(t, scrape)
	assert.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, "up 1\n", a.body)
	assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
	e.send(t, post("/metrics", "")).isProblem(t, http.StatusMethodNotAllowed, "method_not_allowed")
	onMemory(t).undescribed().send(t, scrape).isProblem(t, http.StatusNotFound, "not_found")
}

func TestAProblemNamesItsTraceIfThereIsOneUnlessItIsRecorded(t *testing.T) {
	trace := "4bf92f3577b34da6a3ce929d0e0e4736"
	e := onMemory(t, func(c *httpapi.Config) { c.TraceID = func(context.Context) string { return trace } })
	assert.Equal(t, trace, e.send(t, get(anOrder)).isProblem(t, 404, "order_not_found").member(t, "traceId"))
	e.provider.Next(storetest.Declining("card_declined"))
	assert.False(t, e.send(t, confirming(e.place(t))).isProblem(t, 402, "payment_declined").has(t, "traceId"))

	e = onMemory(t, func(c *httpapi.Config) { c.TraceID = func(context.Context) string { return "" } })
	assert.False(t, e.send(t, get(anOrder)).isProblem(t, 404, "order_not_found").has(t, "traceId"))
	assert.False(t, onMemory(t).send(t, get(anOrder)).has(t, "traceId"))
}
