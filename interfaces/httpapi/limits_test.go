package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// atMost sets the rate, by a clock that goes on when the test says so.
func atMost(perSecond int, clock *storetest.Clock) setting {
	return func(c *httpapi.Config) { c.RateLimit, c.Clock = perSecond, clock.Now }
}

func TestAnActorThatSendsTooMuchIsToldToWaitAndItsKeyStaysFree(t *testing.T) {
	clock := storetest.NewClock()
	e := onMemory(t, atMost(1, clock))
	id := e.place(t)
	r := confirming(id)
	e.send(t, get("/api/orders/"+id)).is(t, http.StatusOK)
	refused := e.send(t, r).isProblem(t, http.StatusTooManyRequests, "rate_limited")
	assert.Equal(t, "1", refused.header.Get("Retry-After"))
	assert.Equal(t, "same-key", refused.member(t, "retry"))
	assert.Equal(t, r.header.Get("Idempotency-Key"), refused.header.Get("Idempotency-Key"))
	assertGeneral(t, refused)

	e.send(t, r.token("demo-alice@company-1")).isProblem(t, http.StatusTooManyRequests, "rate_limited")
	e.send(t, get("/api/orders/"+id).token("demo-bob")).isProblem(t, http.StatusNotFound, "order_not_found")
	for range 5 {
		assert.Equal(t, http.StatusOK, e.send(t, get("/readyz")).status)
	}

	assert.Zero(t, e.provider.Charges())
	clock.Pass(time.Second)
	e.send(t, r).is(t, http.StatusOK)
	e.send(t, r).isProblem(t, http.StatusTooManyRequests, "rate_limited") // a replay is a request, too
	clock.Pass(2 * time.Second)
	e.send(t, r).is(t, http.StatusOK)
	e.send(t, outcomeOf(r, "ConfirmPayment")).is(t, http.StatusOK)
	e.send(t, outcomeOf(r, "ConfirmPayment")).isProblem(t, http.StatusTooManyRequests, "rate_limited")
}

func TestTheRateStandsBehindTheRoleAndBeforeTheRest(t *testing.T) {
	e := onMemory(t, atMost(1, storetest.NewClock()))
	for range 2 {
		e.send(t, get(anOrder)).isProblem(t, http.StatusNotFound, "order_not_found")
		e.send(t, get("/api/audit").token("demo-operator")).is(t, http.StatusOK)
	}
	for _, r := range []request{
		placing(), placing().to("/api/orders?x=1"), placing().with("Idempotency-Key", ""), placing().saying("x"),
		placing().with("Content-Type", "text/plain"), get(anOrder),
		get("/api/idempotency-keys/k"), post("/api/journal-entries/post", "{}"),
	} {
		e.send(t, r).isProblem(t, http.StatusTooManyRequests, "rate_limited")
	}
	e.send(t, get("/api/audit").token("demo-operator")).isProblem(t, http.StatusTooManyRequests, "rate_limited")
	for range 3 { // refused before the rate, so they take nothing from it, and nothing is told of it
		e.send(t, get("/api/audit")).isProblem(t, http.StatusForbidden, "forbidden")
		e.send(t, placing().token("demo-operator")).isProblem(t, http.StatusForbidden, "forbidden")
		e.send(t, placing().token("alice")).isProblem(t, http.StatusUnauthorized, "unauthenticated")
		e.send(t, get("/api/nothing")).isProblem(t, http.StatusNotFound, "not_found")
	}
}

func TestWithoutALimitNobodyIsCounted(t *testing.T) {
	e := onMemory(t)
	for range 50 {
		e.send(t, get(anOrder)).isProblem(t, http.StatusNotFound, "order_not_found")
	}
}
