package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsNoRouteIsNotFoundWithoutAToken(t *testing.T) {
	e := onMemory(t)
	for _, path := range []string{
		"/api", "/api/", "/api/orders/", "/api/orders//", "/api//orders", "/API/orders", "/api/orders/x/",
		"/api/orders/x/y",
		"/api/orders/x/confirm-payment/", "/api/orders/x/confirm%2Dpayment/y", "/api/idempotency-keys",
		"/api/idempotency-keys/", "/api/idempotency-keys/a/b", "/api/idempotency-keys/a/", "/problems", "/problems/",
		"/problems/internal/", "/problems/internal/x", "/assets", "/assets/", "/assets/style.css/x", "/nothing", "/healthz/",
		"/api/journal-entries", "/api/journal-entries/", "/api/journal-entries/post/", "/api/journal-entries/x/y",
		"/api/journal-entries/post/x", "/api/audit/", "/api/audit/1",
		"/docs/idempotency/", "//", "/favicon.ico", "/api/orders/%2e%2e%2fx/y",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := request{method: method, path: path, header: http.Header{"Idempotency-Key": {"k"}}}
			a := e.send(t, r)
			a.isProblem(t, http.StatusNotFound, "not_found")
			assert.NotEmpty(t, a.header.Get("X-Request-Id"))
			assert.Empty(t, a.header.Get("Location"), "nothing redirects")
			assert.Empty(t, a.header.Get("Idempotency-Key"))
			assert.Equal(t, strings.HasPrefix(path, "/api/"), a.header.Get("Cache-Control") == "no-store", path)
		}
	}
}

func TestAnotherMethodIsToldWhichAreAllowed(t *testing.T) {
	e := onMemory(t)
	for path, allowed := range map[string]string{
		"/api/orders":                   "POST",
		"/api/orders/x":                 "GET",
		"/api/orders/x/confirm-payment": "POST",
		"/api/orders/x/cancel":          "POST",
		"/api/idempotency-keys/x":       "GET",
		"/api/journal-entries/x":        "GET",
		"/api/journal-entries/post":     "GET, POST",
		"/api/audit":                    "GET",
		"/healthz":                      "GET, HEAD",
		"/readyz":                       "GET, HEAD",
		"/docs/idempotency":             "GET, HEAD",
		"/problems/internal":            "GET, HEAD",
		"/assets/style.css":             "GET, HEAD",
		"/":                             "GET, HEAD",
	} {
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "BREW",
		} {
			r := request{method: method, path: path, header: http.Header{"Idempotency-Key": {"k"}}}
			a := e.send(t, r)
			if strings.Contains(allowed, method) {
				assert.NotEqual(t, http.StatusMethodNotAllowed, a.status, method+" "+path)
				continue
			}
			assert.Equal(t, http.StatusMethodNotAllowed, a.status, method+" "+path)
			assert.Equal(t, allowed, a.header.Get("Allow"))
			assert.Empty(t, a.header.Get("Idempotency-Key"))
			if method != http.MethodHead {
				a.isProblem(t, http.StatusMethodNotAllowed, "method_not_allowed")
			}
		}
	}
}

func TestServiceRoutesNeedNoTokenAndIgnoreTheQuery(t *testing.T) {
	e := onMemory(t)
	for path, mediaType := range map[string]string{
		"/":                           "text/html; charset=UTF-8",
		"/docs/idempotency":           "text/html; charset=UTF-8",
		"/problems/payment_declined":  "text/html; charset=UTF-8",
		"/assets/style.css":           "text/css; charset=utf-8",
		"/healthz":                    "application/json",
		"/readyz":                     "application/json",
		"/healthz?x=1&x=2":            "application/json",
		"/problems/internal?%zz;&&=?": "text/html; charset=UTF-8",
	} {
		got := e.send(t, request{method: http.MethodGet, path: path})
		assert.Equal(t, http.StatusOK, got.status, path)
		assert.Equal(t, mediaType, got.header.Get("Content-Type"), path)
		assert.NotEmpty(t, got.header.Get("X-Request-Id"))
		head := e.send(t, request{method: http.MethodHead, path: path})
		assert.Equal(t, http.StatusOK, head.status, path)
		assert.Empty(t, head.body)
		assert.Equal(t, got.header.Get("Content-Length"), head.header.Get("Content-Length"))
	}
}

func TestTheRequestIDIsTheClientsIfItCanStandInALog(t *testing.T) {
	e := onMemory(t)
	for _, given := range []string{"abc-123", "4bf92f35:77b34", strings.Repeat("x", 64)} {
		a := e.send(t, get("/api/nothing").with("X-Request-Id", given)).isProblem(t, http.StatusNotFound, "not_found")
		assert.Equal(t, given, a.header.Get("X-Request-Id"))
		assert.Equal(t, given, a.member(t, "requestId"))
	}
	seen := map[string]bool{}
	for _, given := range []string{"", " ", "a b", "é", strings.Repeat("x", 65), "a\x80b"} {
		a := e.send(t, get("/healthz").with("X-Request-Id", given))
		id := a.header.Get("X-Request-Id")
		assert.NotEmpty(t, id)
		assert.NotEqual(t, given, id)
		assert.False(t, seen[id], "each request has another")
		seen[id] = true
	}
	twice := get("/healthz")
	twice.header["X-Request-Id"] = []string{"one", "two"}
	assert.NotContains(t, []string{"one", "two"}, e.send(t, twice).header.Get("X-Request-Id"))
}
