package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/interfaces/httpapi"
)

func TestWhoADemoTokenStandsFor(t *testing.T) {
	long := strings.Repeat("a", 128)
	for token, want := range map[string]httpapi.Caller{
		"demo-alice":             {Actor: "alice", Customer: true},
		"demo-alice@company-1":   {Actor: "alice", Customer: true, Companies: []string{"company-1"}},
		"demo-demo-":             {Actor: "demo-", Customer: true},
		"demo-u1::x":             {Actor: "u1::x", Customer: true},
		"demo-!~":                {Actor: "!~", Customer: true},
		"demo-" + long:           {Actor: long, Customer: true},
		"demo-b@" + long:         {Actor: "b", Customer: true, Companies: []string{long}},
		"demo-Operator":          {Actor: "Operator", Customer: true},
		"demo-operator":          {Actor: "operator", Operator: true},
		"demo-operator@anywhere": {Actor: "operator", Operator: true, Companies: []string{"anywhere"}},
	} {
		got, err := httpapi.DemoTokens{}.Authenticate(t.Context(), token)
		require.NoError(t, err, token)
		assert.Equal(t, want, got)
	}
	for _, token := range []string{
		"", "alice", "demo", "demo-", "Demo-alice", "demo-@company", "demo-alice@", "demo-alice@a@b", "demo-a|b",
		"demo-a@b|c",
		"demo-a b", "demo-a\tb", "demo-煎茶", "demo-a\x7f", "demo-" + long + "a", "demo-b@" + long + "a", "xdemo-alice",
	} {
		_, err := httpapi.DemoTokens{}.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated, token)
	}
}

func TestAMissingOrBadTokenIsChallenged(t *testing.T) {
	e := onMemory(t)
	for _, lines := range [][]string{
		nil,
		{""},
		{"Bearer"},
		{"Bearer "},
		{"demo-alice"},
		{"Basic demo-alice"},
		{"Bearer demo-alice", "Bearer demo-alice"},
		{"Bearerdemo-alice"},
		{"Bearer\tdemo-alice"},
	} {
		r := get("/api/orders/x")
		r.header["Authorization"] = lines
		a := e.send(t, r).isProblem(t, http.StatusUnauthorized, "unauthenticated")
		assert.Equal(t, `Bearer realm="kakutei"`, a.header.Get("WWW-Authenticate"))
		assert.Equal(t, "after-fix", a.member(t, "retry"))
	}
	bad := e.send(t, get("/api/orders/x").token("alice")).isProblem(t, http.StatusUnauthorized, "unauthenticated")
	assert.Equal(t, `Bearer realm="kakutei", error="invalid_token"`, bad.header.Get("WWW-Authenticate"))
}

func TestTheSchemesCaseDoesNotMatter(t *testing.T) {
	e := onMemory(t)
	for _, scheme := range []string{"bearer ", "BEARER ", "bEaReR   "} {
		r := get("/api/orders/x").with("Authorization", scheme+"demo-alice")
		e.send(t, r).isProblem(t, http.StatusNotFound, "order_not_found")
	}
}

func TestTheDemoOperatorIsNoCustomer(t *testing.T) {
	e := onMemory(t)
	id := e.place(t)
	for _, token := range []string{"demo-operator", "demo-operator@company-1"} {
		for _, r := range []request{
			placing(), confirming(id), cancelling(id), get("/api/orders/" + id),
			get("/api/idempotency-keys/k?operation=PlaceOrder"),
		} {
			a := e.send(t, r.token(token)).isProblem(t, http.StatusForbidden, "forbidden")
			assert.Empty(t, a.header.Get("WWW-Authenticate"))
		}
	}
}

// authenticator is one of the test's own.
type authenticator func(token string) (httpapi.Caller, error)

func (a authenticator) Authenticate(_ context.Context, token string) (httpapi.Caller, error) {
	return a(token)
}

func TestAnotherAuthenticatorJoinsWithoutTheHandlers(t *testing.T) {
	e := onMemory(t, func(c *httpapi.Config) {
		c.Auth = authenticator(func(token string) (httpapi.Caller, error) {
			if token != "header.payload.signature" {
				return httpapi.Caller{}, port.ErrUnavailable.Because(errors.New("the key set cannot be read"))
			}
			return httpapi.Caller{Actor: "carol", Customer: true, Operator: true}, nil
		})
	})
	placed := e.send(t, placing().token("header.payload.signature")).is(t, http.StatusCreated)
	assert.Equal(t, "carol", placed.member(t, "customerId"))
	a := e.send(t, placing().token("other")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	assert.NotContains(t, a.body, "key set")
	assert.Empty(t, a.header.Get("WWW-Authenticate"))
}

func TestOnlyLoopbackHostsAreAnsweredInDemoMode(t *testing.T) {
	e := onMemory(t)
	for _, host := range []string{
		"localhost", "localhost:8080", "LocalHost:1", "127.0.0.1", "127.0.0.1:8080", "127.8.9.10", "[::1]",
		"[::1]:8080", "::1",
		"[::ffff:127.0.0.1]:80", "localhost:",
	} {
		r := get("/healthz")
		r.host = host
		assert.Equal(t, http.StatusOK, e.send(t, r).status, host)
	}
	for _, host := range []string{
		"example.com", "example.com:8080", "localhost.example.com", "127.0.0.1.example.com", "localhost.example.com:80",
		"10.0.0.1", "192.168.0.1:8080", "0.0.0.0", "[::]:8080", "[2001:db8::1]", "1", "127.1", "localhost:80:80",
		"localhost:x",
		"notlocalhost", "[::1", "2130706433",
	} {
		for _, path := range []string{"/healthz", "/", "/nothing", "/api/orders/x"} {
			r := get(path)
			r.host = host
			a := e.send(t, r).isProblem(t, http.StatusForbidden, "forbidden")
			assert.NotEmpty(t, a.header.Get("X-Request-Id"))
		}
	}
	r := placing().key("k")
	r.host = "example.com"
	assert.Equal(t, "k", e.send(t, r).header.Get("Idempotency-Key"), "whichever check fails")
}

func TestAnExposedDemoAnswersEveryHost(t *testing.T) {
	e := onMemory(t, func(c *httpapi.Config) { c.AnyHost = true })
	r := get("/healthz")
	r.host = "shop.example"
	assert.Equal(t, http.StatusOK, e.send(t, r).status)
}
