package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wrong is one thing that can be wrong with a request, as a change to a right one, and its answer.
type wrong struct {
	check  string // as docs/contract.md, General, Order of checks counts them
	name   string
	status int
	code   string
	spoil  func(r *request)
}

// set is a header with these lines.
func set(name string, lines ...string) func(r *request) {
	return func(r *request) { r.header[http.CanonicalHeaderKey(name)] = lines }
}

func drop(name string) func(r *request) { return func(r *request) { r.header.Del(name) } }

// Each list is in the order of checks. One element per list position is right by itself.
var orderPostFaults = []wrong{
	{"0", "another host", 403, "forbidden", func(r *request) { r.host = "shop.example" }},
	{"1", "no such route", 404, "not_found", func(r *request) { r.path += "/more" }},
	{"1", "no such method", 405, "method_not_allowed", func(r *request) { r.method = http.MethodPut }},
	{"2", "no token", 401, "unauthenticated", drop("Authorization")},
	{"2", "a bad token", 401, "unauthenticated", set("Authorization", "Bearer alice")},
	{"3", "the operator's token", 403, "forbidden", set("Authorization", "Bearer demo-operator")},
	{"4", "a query", 400, "invalid_request", func(r *request) { r.path += "?dryRun=1" }},
	{"5", "no key", 400, "idempotency_key_missing", drop("Idempotency-Key")},
	{"5", "a malformed key", 400, "idempotency_key_invalid", set("Idempotency-Key", "a b")},
	{"6", "another content type", 415, "unsupported_media_type", set("Content-Type", "text/plain")},
	{"6", "a content encoding", 415, "unsupported_media_type", set("Content-Encoding", "gzip")},
	{"7", "too large a body", 413, "payload_too_large", func(r *request) { r.body += strings.Repeat(" ", 64<<10) }},
	{"8", "no JSON", 400, "invalid_request", func(r *request) { r.body = "x" + r.body }},
	{"8", "a wrong member", 400, "invalid_request", func(r *request) { r.body = `{"more":1,` + r.body[1:] }},
	{"10", "a key of another request", 422, "idempotency_key_reused", set("Idempotency-Key", usedKey)},
	{"11", "no such order", 404, "order_not_found", func(r *request) {
		r.path = strings.Replace(r.path, "/api/orders/", "/api/orders/0", 1)
	}},
}

const usedKey = "used-already"

func TestWhenTwoThingsAreWrongTheEarlierCheckAnswers(t *testing.T) {
	e := onMemory(t)
	paid := e.place(t)
	e.send(t, confirming(paid).key(usedKey)).is(t, http.StatusOK)
	order := e.place(t)
	for i, first := range orderPostFaults {
		for _, second := range orderPostFaults[i+1:] {
			if first.check == second.check || overrides(first, second) {
				continue
			}
			t.Run(first.name+" and "+second.name, func(t *testing.T) {
				r := confirming(order)
				second.spoil(&r)
				first.spoil(&r)
				a := e.send(t, r).isProblem(t, first.status, first.code)
				assert.Equal(t, hasValidKey(r) && !routeIsWrong(first), a.header.Get("Idempotency-Key") != "",
					"the key is answered whichever check fails")
				assertGeneral(t, a)
			})
		}
	}
	assert.Equal(t, "PLACED", e.statusOf(t, order))
}

// overrides tells that the first fault undoes the second: both change the same header.
func overrides(first, second wrong) bool {
	return first.check == "5" && second.check == "10" || first.name == "no such route" && second.check == "4"
}

func routeIsWrong(w wrong) bool { return w.check == "1" }

func hasValidKey(r request) bool {
	lines := r.header["Idempotency-Key"]
	return len(lines) == 1 && !strings.Contains(lines[0], " ") &&
		r.method == http.MethodPost && strings.HasSuffix(strings.Split(r.path, "?")[0], "/confirm-payment")
}

// assertGeneral is what every answer under /api/ has.
func assertGeneral(t *testing.T, a answer) {
	t.Helper()
	require.NotEmpty(t, a.header.Get("X-Request-Id"))
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	if a.header.Get("Content-Type") == "application/problem+json" && a.status != 402 {
		require.Equal(t, a.header.Get("X-Request-Id"), a.member(t, "requestId"))
	}
}

func TestEachFaultAloneHasItsOwnAnswer(t *testing.T) {
	e := onMemory(t)
	paid := e.place(t)
	e.send(t, confirming(paid).key(usedKey)).is(t, http.StatusOK)
	order := e.place(t)
	for _, w := range orderPostFaults {
		t.Run(w.name, func(t *testing.T) {
			r := confirming(order)
			w.spoil(&r)
			a := e.send(t, r).isProblem(t, w.status, w.code)
			assertGeneral(t, a)
			assert.Equal(t, "/problems/"+w.code, a.member(t, "type"))
			assert.InDelta(t, w.status, a.member(t, "status"), 0)
			retry := "after-fix"
			if w.code == "idempotency_key_reused" {
				retry = "new-key"
			}
			assert.Equal(t, retry, a.member(t, "retry"))
			assert.Empty(t, a.header.Get("Retry-After"))
			assert.Equal(t, w.code == "idempotency_key_missing",
				a.header.Get("Link") == `</docs/idempotency>; rel="describedby"`)
		})
	}
}

func TestReadingChecksInTheSameOrder(t *testing.T) {
	e := onMemory(t)
	faults := []wrong{
		{"0", "another host", 403, "forbidden", func(r *request) { r.host = "shop.example" }},
		{"1", "no such method", 405, "method_not_allowed", func(r *request) { r.method = http.MethodDelete }},
		{"2", "no token", 401, "unauthenticated", drop("Authorization")},
		{"3", "the operator's token", 403, "forbidden", set("Authorization", "Bearer demo-operator")},
		{"4", "an unknown parameter", 400, "invalid_request", func(r *request) { r.path += "&more=1" }},
		{"11", "nothing there", 404, "", func(*request) {}},
	}
	for path, notFound := range map[string]string{
		"/api/orders/none?": "order_not_found",
		"/api/idempotency-keys/none?operation=ConfirmPayment": "not_found",
		"/api/idempotency-keys/no%20key?operation=PlaceOrder": "not_found",
		"/api/journal-entries/none?":                          "not_found",
	} {
		faults[len(faults)-1].code = notFound
		for i, first := range faults {
			for _, second := range faults[i:] {
				sameHeader := first.check == "2" && second.check == "3"
				if sameHeader || first.check == second.check && first.name != second.name {
					continue
				}
				t.Run(path+" "+first.name+" and "+second.name, func(t *testing.T) {
					r := get(path)
					second.spoil(&r)
					if first.name != second.name {
						first.spoil(&r)
					}
					a := e.send(t, r).isProblem(t, first.status, first.code)
					assertGeneral(t, a)
					assert.Empty(t, a.header.Get("Idempotency-Key"))
				})
			}
		}
	}
}

func TestTheLookUpsQuery(t *testing.T) {
	e := onMemory(t)
	for _, query := range []string{
		"", "?", "?operation", "?operation=", "?operation=PostJournalEntry", "?operation=placeorder",
		"?Operation=PlaceOrder",
		"?operation=PlaceOrder&operation=PlaceOrder", "?operation=PlaceOrder&operation=CancelOrder",
		"?operation=PlaceOrder&more=", "?operation=PlaceOrder;", "?operation=%zz",
	} {
		a := e.send(t, get("/api/idempotency-keys/k"+query)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.False(t, a.has(t, "errors/0/pointer"), query)
		assert.Equal(t, a.member(t, "detail"), a.member(t, "errors/0/detail"))
	}
}

func TestTheLookUpsKeyIsDecodedOnce(t *testing.T) {
	e := onMemory(t)
	for _, key := range []string{
		"a/b", "a%2Fb", "%", "a?b#c", "{}|^`<>", "+", "a=b&c", "...", "~", "/", "//", "a/../b", "@:!$'()*[]",
	} {
		r := placing().key(key)
		e.send(t, r).is(t, http.StatusCreated)
		found := e.send(t, outcomeOf(r, "PlaceOrder")).is(t, http.StatusOK)
		assert.Equal(t, key, found.member(t, "idempotencyKey"))
	}
	e.send(t, placing().key("aZ")).is(t, http.StatusCreated)
	for path, status := range map[string]int{
		"a%5A": 200, "%61Z": 200, "a%255A": 404, "az": 404, "%22aZ%22": 404, "a%00": 404, "%20aZ": 404,
		"%E9%8D%B5": 404,
		"..":        404, ".": 404, strings.Repeat("k", 256): 404,
	} {
		assert.Equal(t, status, e.send(t, get("/api/idempotency-keys/"+path+"?operation=PlaceOrder")).status, path)
	}
}
