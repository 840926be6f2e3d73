package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/live"
)

// right is a request for each operation that succeeds.
var right = map[string]func(t *testing.T, e edge) request{
	"placeOrder":     func(*testing.T, edge) request { return placing() },
	"getOrder":       func(t *testing.T, e edge) request { return get("/api/orders/" + e.place(t)) },
	"confirmPayment": func(t *testing.T, e edge) request { return confirming(e.place(t)) },
	"cancelOrder": func(t *testing.T, e edge) request {
		return cancelling(e.place(t)).saying(`{"reason":"気が変わった"}`)
	},
	"getOutcome": func(t *testing.T, e edge) request {
		paying := confirming(e.place(t))
		e.send(t, paying).is(t, http.StatusOK)
		return outcomeOf(paying, "ConfirmPayment")
	},
	"postJournalEntry": func(*testing.T, edge) request { return invoice("inv-2025-001").posted() },
	"getJournalEntry": func(t *testing.T, e edge) request {
		return get(e.send(t, invoice("inv-2025-001").posted()).header.Get("Location")).token(accountant)
	},
	"getAudit":      func(*testing.T, edge) request { return get(pathAudit).token(operator) },
	"getUnresolved": func(*testing.T, edge) request { return listing() },
	"releaseRecord": func(t *testing.T, e edge) request {
		_, paying := e.leave(t, storetest.Unreachable)
		return releasing(paying)
	},
	"resolveRecord": func(t *testing.T, e edge) request {
		_, paying := e.leave(t, storetest.Unreachable)
		return charged(paying).to(pathResolve)
	},
	"getStart":       visiting("/"),
	"getHealth":      visiting("/healthz"),
	"getReadiness":   visiting("/readyz"),
	"getMetrics":     visiting("/metrics"),
	"getDescription": visiting("/openapi.json"),
	"getReference":   visiting("/docs"),
	"getPolicy":      visiting("/docs/idempotency"),
	"getProblem":     visiting("/problems/payment_declined"),
	"getAsset":       visiting("/assets/style.css"),
	"getLive":        visiting("/api/live?actor=alice"),
}

func visiting(path string) func(*testing.T, edge) request {
	return func(*testing.T, edge) request { return request{method: http.MethodGet, path: path} }
}

// occasion is how an answer comes about, beginning with a request that would succeed.
type occasion func(t *testing.T, e edge, r request) answer

// spoilt sends the request with something wrong about it.
func spoilt(spoil func(r *request)) occasion {
	return func(t *testing.T, e edge, r request) answer {
		spoil(&r)
		return e.send(t, r)
	}
}

// broke is an authenticator with a bug.
type broke struct{}

func (broke) Authenticate(context.Context, string) (httpapi.Caller, error) { panic("a bug") }

// forgetful is a store whose commits give no answer.
type forgetful struct{ port.UnitOfWork }

func (forgetful) Do(context.Context, port.Wait, func(port.Tx) error) error {
	return port.ErrCommitUnknown
}

// crowded is a store in which somebody else holds the record for longer than anybody waits.
type crowded struct{ port.UnitOfWork }

func (crowded) Do(context.Context, port.Wait, func(port.Tx) error) error {
	return idempotency.ErrInProgress
}

// elsewhere sends the request to another instance.
func elsewhere(opened func(t *testing.T, e edge) edge) occasion {
	return func(t *testing.T, e edge, r request) answer { return opened(t, e).send(t, r) }
}

// anywhere is how problems come about that many operations have.
var anywhere = map[string]occasion{
	"unauthenticated": spoilt(drop("Authorization")),
	"forbidden":       spoilt(func(r *request) { r.host = "shop.example" }),
	"invalid_request": spoilt(func(r *request) {
		separator := "?"
		if strings.Contains(r.path, "?") {
			separator = "&"
		}
		r.path += separator + "dryRun=1"
	}),
	"idempotency_key_missing": spoilt(drop("Idempotency-Key")),
	"idempotency_key_invalid": spoilt(set("Idempotency-Key", "two words")),
	"unsupported_media_type":  spoilt(set("Content-Type", "text/plain")),
	"payload_too_large":       spoilt(func(r *request) { r.body += strings.Repeat(" ", 64<<10) }),
	"rate_limited": func(t *testing.T, e edge, r request) answer {
		stands := time.Now()
		there, _ := e.again(t, func(c *httpapi.Config) { c.RateLimit, c.Clock = 1, func() time.Time { return stands } })
		there.send(t, r)
		there.send(t, r)
		return there.send(t, r)
	},
	"unavailable": elsewhere(func(t *testing.T, _ edge) edge {
		store := memory.New(time.Now)
		require.NoError(t, store.Close())
		return open(t, store, func(c *httpapi.Config) {
			c.Ready = func(context.Context) error { return errors.New("the store is closed") }
		})
	}),
	"internal": elsewhere(func(t *testing.T, _ edge) edge {
		return onMemory(t, func(c *httpapi.Config) { c.Auth = broke{} })
	}),
	"outcome_unknown": elsewhere(func(t *testing.T, e edge) edge { return open(t, forgetful{e.work}) }),
	"order_not_found": spoilt(func(r *request) {
		r.path = strings.Replace(r.path, strings.Split(r.path, "/")[3], "none", 1)
	}),
	"idempotency_key_reused": func(t *testing.T, e edge, r request) answer {
		e.send(t, r)
		return e.send(t, r.saying(strings.NewReplacer("煎茶", "番茶", "1000", "1001", "気が変わった", "飽きた").Replace(r.body)))
	},
	"idempotency_in_progress": elsewhere(func(t *testing.T, e edge) edge { return open(t, crowded{e.work}) }),
	"payment_in_progress": func(t *testing.T, e edge, r request) answer {
		paying, release := e.hold(t, 0)
		defer release()
		return e.send(t, r.to(strings.Replace(paying.path, "confirm-payment", strings.Split(r.path, "/")[4], 1)))
	},
	"lease_alive": func(t *testing.T, e edge, r request) answer {
		paying, release := e.hold(t, 0)
		defer release()
		if r.path == pathRelease {
			return e.send(t, releasing(paying))
		}
		return e.send(t, charged(paying).to(pathResolve))
	},
}

// particular is how the problems come about that one operation has, or has in a way of its own.
var particular = map[string]occasion{
	"placeOrder invalid_request": spoilt(func(r *request) {
		r.body = strings.Replace(r.body, `"quantity":2`, `"quantity":0`, 1)
	}),
	"getOutcome not_found":      spoilt(func(r *request) { r.path = "/api/idempotency-keys/none?operation=ConfirmPayment" }),
	"getJournalEntry not_found": spoilt(func(r *request) { r.path = pathEntries + "none" }),
	"releaseRecord not_found":   spoilt(func(r *request) { r.body = strings.Replace(r.body, "alice", "nobody", 1) }),
	"resolveRecord not_found":   spoilt(func(r *request) { r.body = strings.Replace(r.body, "alice", "nobody", 1) }),
	"getLive invalid_request":   spoilt(func(r *request) { r.path = "/api/live" }),
	"getLive not_found":         elsewhere(func(t *testing.T, _ edge) edge { return onMemory(t) }), // no demo mode
	"getLive unavailable": func(t *testing.T, e edge, r request) answer {
		e.server.Drain()
		return e.send(t, r)
	},
	"getProblem not_found": spoilt(func(r *request) { r.path = "/problems/none" }),
	"getAsset not_found":   spoilt(func(r *request) { r.path = "/assets/none" }),
	"confirmPayment payment_declined": func(t *testing.T, e edge, r request) answer {
		e.provider.Next(storetest.Declining("card_declined"))
		return e.send(t, r)
	},
	"confirmPayment amount_mismatch": spoilt(func(r *request) { r.body = `{"amount":999,"currency":"JPY"}` }),
	"confirmPayment invalid_state": func(t *testing.T, e edge, r request) answer {
		e.send(t, cancelling(strings.Split(r.path, "/")[3])).is(t, http.StatusOK)
		return e.send(t, r)
	},
	"cancelOrder invalid_state": func(t *testing.T, e edge, r request) answer {
		e.send(t, confirming(strings.Split(r.path, "/")[3])).is(t, http.StatusOK)
		return e.send(t, r)
	},
	"resolveRecord charge_found": func(t *testing.T, e edge, _ request) answer {
		_, paying := e.leave(t, storetest.Losing(storetest.Approving))
		return e.send(t, notCharged(paying).to(pathResolve))
	},
	"postJournalEntry duplicate_operation": func(t *testing.T, e edge, r request) answer {
		e.send(t, r).is(t, http.StatusCreated)
		return e.send(t, r.with("Prefer", "handling=strict"))
	},
	"postJournalEntry idempotency_key_reused": func(t *testing.T, e edge, r request) answer {
		e.send(t, r).is(t, http.StatusCreated)
		return e.send(t, taxed("inv-2025-001").posted())
	},
}

// succeeding is how each example of a success comes about, where a request that is right is not enough.
var succeeding = map[string]occasion{
	"getOrder paid": func(t *testing.T, e edge, r request) answer {
		e.send(t, confirming(strings.TrimPrefix(r.path, "/api/orders/"))).is(t, http.StatusOK)
		return e.send(t, r)
	},
	"getOrder cancelled": func(t *testing.T, e edge, r request) answer {
		id := strings.TrimPrefix(r.path, "/api/orders/")
		e.send(t, cancelling(id).saying(`{"reason":"気が変わった"}`)).is(t, http.StatusOK)
		return e.send(t, r)
	},
	"getOutcome failed": func(t *testing.T, e edge, _ request) answer {
		e.provider.Next(storetest.Declining("card_declined"))
		paying := confirming(e.place(t))
		e.send(t, paying).isProblem(t, http.StatusPaymentRequired, "payment_declined")
		return e.send(t, outcomeOf(paying, "ConfirmPayment"))
	},
	"getOutcome inProgress": func(t *testing.T, e edge, _ request) answer {
		_, paying := e.leave(t, storetest.Unreachable)
		return e.send(t, outcomeOf(paying, "ConfirmPayment"))
	},
	"postJournalEntry repeated": func(t *testing.T, e edge, r request) answer {
		e.send(t, r).is(t, http.StatusCreated)
		return e.send(t, r)
	},
	"getAudit page": func(t *testing.T, e edge, r request) answer {
		paying := confirming(e.place(t))
		e.send(t, paying).is(t, http.StatusOK)
		e.send(t, paying.saying(`{"amount":1001,"currency":"JPY"}`)).isProblem(t, 422, "idempotency_key_reused")
		e.audited(t)
		return e.send(t, r.to(pathAudit+"?kind=mismatch"))
	},
	"getUnresolved one": func(t *testing.T, e edge, r request) answer {
		e.leave(t, storetest.Unreachable)
		return e.send(t, r)
	},
	"resolveRecord notCharged": func(t *testing.T, e edge, _ request) answer {
		_, paying := e.leave(t, storetest.Unreachable)
		return e.send(t, notCharged(paying).to(pathResolve))
	},
}

// Whatever the description says that an operation may answer, it does answer, as the example says: nothing is described
// that does not happen.
func TestEveryDescribedAnswerIsGiven(t *testing.T) {
	exact := map[string]bool{} // problems whose example was met
	for path, item := range described.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				for media, content := range response.Value.Content {
					if !strings.HasSuffix(media, "json") {
						continue
					}
					for name, example := range content.Examples {
						t.Run(method+" "+path+" "+status+" "+name, func(t *testing.T) {
							e := onMemory(t, func(c *httpapi.Config) { c.Live = live.NewFeed(time.Now) }, scraped)
							a := comeAbout(operation.OperationID, name, status)(t, e, right[operation.OperationID](t, e))
							require.Equal(t, status, strconv.Itoa(a.status), a.body)
							want, got := masked(example.Value.Value), maskedText(t, a.body)
							if a.status < http.StatusBadRequest {
								require.Equal(t, want, got)
								return
							}
							require.Equal(t, name, a.member(t, "code"))
							exact[name] = exact[name] || assert.ObjectsAreEqual(want, got)
						})
					}
				}
			}
		}
	}
	e := onMemory(t)
	r := placing()
	r.method = http.MethodPut
	exact["method_not_allowed"] = assert.ObjectsAreEqual(
		masked(described.Components.Examples["method_not_allowed"].Value.Value), maskedText(t, e.send(t, r).body))
	for code := range described.Components.Examples {
		assert.True(t, exact[code], "no answer is the example of %s", code)
	}
	for _, code := range httpapi.Codes() {
		assert.Contains(t, described.Components.Examples, code)
	}
}

// comeAbout finds how this answer comes about.
func comeAbout(operation, example, status string) occasion {
	if how, found := particular[operation+" "+example]; found {
		return how
	}
	if how, found := succeeding[operation+" "+example]; found {
		return how
	}
	if status < "400" {
		return spoilt(func(*request) {})
	}
	return func(t *testing.T, e edge, r request) answer {
		how, found := anywhere[example]
		require.True(t, found, "nobody knows how %s comes about", example)
		return how(t, e, r)
	}
}

// Every request that is an example can be sent.
func TestEveryDescribedRequestIsServed(t *testing.T) {
	for path, item := range described.Paths.Map() {
		for method, operation := range item.Operations() {
			require.Contains(t, right, operation.OperationID)
			if operation.RequestBody == nil {
				continue
			}
			for name, example := range operation.RequestBody.Value.Content["application/json"].Examples {
				t.Run(method+" "+path+" "+name, func(t *testing.T) {
					e := onMemory(t)
					r := right[operation.OperationID](t, e)
					body, err := json.Marshal(example.Value.Value)
					require.NoError(t, err)
					var sent struct{ IdempotencyKey string }
					require.NoError(t, json.Unmarshal([]byte(r.body), &sent))
					a := e.send(t, r.saying(strings.Replace(string(body), exampleKey, sent.IdempotencyKey, 1)))
					assert.True(t, a.wasServed(), a.body)
				})
			}
		}
	}
}

// exampleKey is the key in all examples.
const exampleKey = "8e03978e-40d5-43dd-bc93-6894a57f9324"

// masked is a JSON value without what is another one each time.
func masked(value any) any {
	switch value := value.(type) {
	case map[string]any:
		same := make(map[string]any, len(value))
		for name, member := range value {
			same[name] = masked(member)
		}
		return same
	case []any:
		same := make([]any, len(value))
		for i, item := range value {
			same[i] = masked(item)
		}
		return same
	case string:
		return likeness(value)
	}
	return value
}

func maskedText(t *testing.T, body string) any {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(body), &value), body)
	return masked(value)
}
