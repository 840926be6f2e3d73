package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

const checkoutPage = "https://checkout.example"

func sharingWith(origins ...string) setting {
	return func(c *httpapi.Config) { c.Origins = origins }
}

// from is the request as a page of this origin sends it.
func (r request) from(origin string) request { return r.with("Origin", origin) }

// preflight is a browser's question before the request.
func (r request) preflight() request {
	return request{method: http.MethodOptions, path: r.path, host: r.host, header: http.Header{
		"Origin":                         r.header["Origin"],
		"Access-Control-Request-Method":  {r.method},
		"Access-Control-Request-Headers": {"authorization,content-type,idempotency-key,prefer"},
	}}
}

// named are the elements of a list in a header, in lower case and sorted.
func (a answer) named(header string) []string {
	names := strings.Split(strings.ToLower(strings.Join(a.header.Values(header), ",")), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	slices.Sort(names)
	return names
}

var exposed = []string{
	"idempotency-key", "idempotent-replayed", "link", "location", "preference-applied", "retry-after", "www-authenticate",
	"x-request-id",
}

// isSharedWith checks that a page of this origin may read the answer.
func (a answer) isSharedWith(t *testing.T, origin string) answer {
	t.Helper()
	assert.Equal(t, []string{origin}, a.header.Values("Access-Control-Allow-Origin"))
	assert.Equal(t, exposed, a.named("Access-Control-Expose-Headers"))
	assert.Contains(t, a.named("Vary"), "origin")
	assert.Empty(t, a.header.Get("Access-Control-Allow-Credentials"))
	return a
}

func (a answer) isSharedWithNobody(t *testing.T) answer {
	t.Helper()
	for name := range a.header {
		assert.False(t, strings.HasPrefix(name, "Access-Control-"), name)
	}
	return a
}

func TestABrowsersQuestionIsAnsweredWithoutTokenAndKey(t *testing.T) { // C114
	e := onMemory(t, sharingWith("https://other.example", checkoutPage), allowing(1))
	for path, methods := range map[string][]string{
		"/api/orders":                   {"post"},
		"/api/orders/x":                 {"get"},
		"/api/orders/x/confirm-payment": {"post"},
		"/api/orders/x/cancel":          {"post"},
		"/api/idempotency-keys/x":       {"get"},
		"/api/journal-entries/post":     {"get", "post"},
		"/api/journal-entries/x":        {"get"},
		"/api/audit":                    {"get"},
		"/api/unresolved/resolve":       {"post"},
	} {
		a := e.send(t, post(path, "").from(checkoutPage).preflight())
		assert.Equal(t, http.StatusNoContent, a.status, path)
		assert.Empty(t, a.body)
		a.isSharedWith(t, checkoutPage)
		assert.Equal(t, methods, a.named("Access-Control-Allow-Methods"), path)
		assert.Equal(t, []string{"authorization", "content-type", "idempotency-key", "prefer"},
			a.named("Access-Control-Allow-Headers"))
		assert.Equal(t, "600", a.header.Get("Access-Control-Max-Age"))
		assert.NotEmpty(t, a.header.Get("X-Request-Id"))
		assert.Empty(t, a.header.Get("Idempotency-Key"))
	}
}

func TestEveryAnswerIsSharedWithTheConfiguredOrigins(t *testing.T) { // C114
	clock := storetest.NewClock()
	e := onMemory(t, sharingWith(checkoutPage, "http://localhost:3000"))
	id := e.place(t)
	r := confirming(id)
	held, call := storetest.Holding(storetest.Losing(storetest.Approving))
	e.provider.Next(call)
	lost := make(chan answer, 1)
	go func() {
		a, err := e.try(t.Context(), r.from(checkoutPage))
		assert.NoError(t, err)
		lost <- a
	}()
	<-held.Reached
	e.send(t, r.from(checkoutPage)).isProblem(t, 409, "idempotency_in_progress").isSharedWith(t, checkoutPage)
	held.Release()
	a := <-lost
	a.isProblem(t, 503, "outcome_unknown").isSharedWith(t, checkoutPage)

	for _, origin := range []string{checkoutPage, "http://localhost:3000"} {
		e.send(t, placing().from(origin)).is(t, 201).isSharedWith(t, origin)
		e.send(t, r.from(origin)).is(t, 200).isSharedWith(t, origin)
		e.send(t, r.saying("{}").from(origin)).isProblem(t, 400, "invalid_request").isSharedWith(t, origin)
		e.send(t, placing().key("").from(origin)).isProblem(t, 400, "idempotency_key_missing").isSharedWith(t, origin)
		e.send(t, placing().token("x").from(origin)).isProblem(t, 401, "unauthenticated").isSharedWith(t, origin)
		e.send(t, get("/api/audit").from(origin)).isProblem(t, 403, "forbidden").isSharedWith(t, origin)
		e.send(t, get("/api/nothing").from(origin)).isProblem(t, 404, "not_found").isSharedWith(t, origin)
		e.send(t, get("/api/orders").from(origin)).isProblem(t, 405, "method_not_allowed").isSharedWith(t, origin)
		e.send(t, placing().saying(strings.Repeat(" ", 65<<10)).from(origin)).isProblem(t, 413, "payload_too_large").
			isSharedWith(t, origin)
		e.send(t, r.saying(`{"amount":7,"currency":"JPY"}`).from(origin)).isProblem(t, 422, "idempotency_key_reused").
			isSharedWith(t, origin)
		other := placing().from(origin)
		other.host = "shop.example" // in demo mode
		e.send(t, other).isProblem(t, 403, "forbidden").isSharedWith(t, origin)
		e.send(t, other.preflight()).isProblem(t, 403, "forbidden")
	}

	limited := onMemory(t, sharingWith(checkoutPage), atMost(1, clock))
	for range 2 {
		limited.send(t, get(anOrder).from(checkoutPage))
	}
	limited.send(t, get(anOrder).from(checkoutPage)).isProblem(t, 429, "rate_limited").isSharedWith(t, checkoutPage)
}

func TestAShedRequestsAnswerIsShared(t *testing.T) {
	e := onMemory(t, sharingWith(checkoutPage), allowing(1))
	id := e.place(t)
	held, call := storetest.Holding(storetest.Approving)
	e.provider.Next(call)
	paid := make(chan answer, 1)
	go func() {
		a, err := e.try(t.Context(), confirming(id))
		assert.NoError(t, err)
		paid <- a
	}()
	<-held.Reached
	e.send(t, placing().from(checkoutPage)).isShed(t).isSharedWith(t, checkoutPage)
	assert.Equal(t, http.StatusNoContent, e.send(t, placing().from(checkoutPage).preflight()).status)
	held.Release()
	a := <-paid
	a.is(t, http.StatusOK)
}

func TestNothingIsSharedWithOtherOrigins(t *testing.T) {
	e := onMemory(t, sharingWith(checkoutPage))
	for _, origin := range []string{
		"", "null", "*", "https://evil.example", "http://checkout.example", "https://checkout.example:8443",
		"https://checkout.example.evil.example", "https://checkout.example/", "HTTPS://CHECKOUT.EXAMPLE", "https://evil.example, " + checkoutPage,
	} {
		a := e.send(t, placing().from(origin)).is(t, http.StatusCreated).isSharedWithNobody(t)
		assert.Contains(t, a.named("Vary"), "origin", "the answer would be another for another origin")
		asked := e.send(t, placing().from(origin).preflight()).isProblem(t, 405, "method_not_allowed")
		assert.Equal(t, "POST", asked.isSharedWithNobody(t).header.Get("Allow"))
	}
	twice := placing()
	twice.header["Origin"] = []string{checkoutPage, checkoutPage}
	e.send(t, twice).is(t, http.StatusCreated).isSharedWithNobody(t)
	// Other uses of OPTIONS are what they were.
	options := request{method: http.MethodOptions, path: "/api/orders", header: http.Header{"Origin": {checkoutPage}}}
	e.send(t, options).isProblem(t, 405, "method_not_allowed").isSharedWith(t, checkoutPage)
	// Pages are for people, who need no scripts of other pages to read them.
	for _, path := range []string{"/", "/healthz", "/problems/internal"} {
		a := e.send(t, get(path).from(checkoutPage)).isSharedWithNobody(t)
		assert.Equal(t, http.StatusOK, a.status)
	}
}

func TestWithoutOriginsThereIsNoSharing(t *testing.T) {
	e := onMemory(t)
	a := e.send(t, placing().from(checkoutPage)).is(t, http.StatusCreated).isSharedWithNobody(t)
	assert.Empty(t, a.header.Get("Vary"))
	e.send(t, placing().from(checkoutPage).preflight()).isProblem(t, 405, "method_not_allowed").isSharedWithNobody(t)
}

func TestEveryAnswerTellsABrowserToTrustNothingInIt(t *testing.T) {
	e := onMemory(t, sharingWith(checkoutPage))
	other := get("/")
	other.host = "evil.example"
	for _, r := range []request{
		placing(), placing().token("x"), placing().saying("<script>"), get(anOrder), get("/nothing"), get("/api/orders"),
		get("/healthz"), get("/readyz"), get("/"), get("/docs/idempotency"), get("/problems/internal"), other,
		placing().from(checkoutPage).preflight(),
	} {
		a := e.send(t, r)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			assert.Equal(t, []string{want}, a.header.Values(name), r.path)
		}
		policy := a.header.Values("Content-Security-Policy")
		assert.Len(t, policy, 1)
		assert.Contains(t, policy[0], "default-src 'none'")
		assert.Contains(t, policy[0], "frame-ancestors 'none'")
		assert.NotContains(t, policy[0], "unsafe")
		assert.Equal(t, a.header.Get("Content-Type") == "text/html; charset=UTF-8", strings.Contains(policy[0], "style-src"))
		assert.Empty(t, a.header.Get("Server"))
	}
}
