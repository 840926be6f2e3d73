package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// broken is a store that fails every transaction in its own way.
type broken func() error

func (b broken) Do(context.Context, port.Wait, func(port.Tx) error) error { return b() }
func (b broken) Read(context.Context, func(port.Tx) error) error          { return b() }

const anOrder = "/api/orders/01930000-0000-7000-8000-000000000000"

func TestAnErrorOfTheInsideIsA500ThatSaysNothingOfIt(t *testing.T) {
	secret := errors.New("pq: relation orders at 10.0.0.7 is broken")
	e := open(t, broken(func() error { return fmt.Errorf("reading: %w", secret) }))
	for _, r := range []request{get(anOrder), placing(), cancelling("x")} {
		a := e.send(t, r).isProblem(t, http.StatusInternalServerError, "internal")
		assert.Equal(t, "same-key", a.member(t, "retry"))
		assert.Equal(t, "1", a.header.Get("Retry-After"))
		assert.NotContains(t, a.body, "10.0.0.7")
		assertGeneral(t, a)

		var logged int
		for _, line := range e.log.lines(t, "request failed") {
			if line["requestId"] == a.member(t, "requestId") {
				logged++
				assert.Equal(t, "ERROR", line["level"])
				assert.Equal(t, "internal", line["code"])
				assert.Contains(t, line["error"], secret.Error())
			}
		}
		assert.Equal(t, 1, logged, "once")
	}
}

func TestAPanicIsA500LoggedWithItsStack(t *testing.T) {
	e := open(t, broken(func() error { panic("a bug in the store") }))
	a := e.send(t, placing().key("k")).isProblem(t, http.StatusInternalServerError, "internal")
	assert.NotContains(t, a.body, "a bug in the store")
	assert.Equal(t, "k", a.header.Get("Idempotency-Key"))
	assertGeneral(t, a)
	lines := e.log.lines(t, "request failed")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0]["error"], "a bug in the store")
	assert.Contains(t, lines[0]["stack"], "problem_test.go")
	assert.Len(t, e.log.lines(t, "request"), 1)
	assert.Equal(t, http.StatusOK, e.send(t, get("/healthz")).status, "the server goes on")
}

func TestAnAbortedHandlerClosesTheConnectionWithoutAnAnswer(t *testing.T) {
	e := open(t, broken(func() error { panic(http.ErrAbortHandler) }))
	_, err := e.try(t.Context(), get(anOrder))
	require.Error(t, err)
	assert.Empty(t, e.log.lines(t, "request failed"))
}

func TestAContextThatEndsIsA503(t *testing.T) {
	for _, cause := range []error{
		context.Canceled, context.DeadlineExceeded, fmt.Errorf("query: %w", context.DeadlineExceeded),
	} {
		e := open(t, broken(func() error { return cause }))
		for _, r := range []request{get(anOrder), placing()} {
			a := e.send(t, r).isProblem(t, http.StatusServiceUnavailable, "unavailable")
			assert.Equal(t, "1", a.header.Get("Retry-After"))
		}
	}
}

func TestAStoreThatIsAwayIsA503LoggedAsAWarning(t *testing.T) { // C21
	store := memory.New(time.Now)
	e := open(t, store)
	require.NoError(t, store.Close())
	r := placing()
	for _, r := range []request{get(anOrder), r, r, outcomeOf(r, "PlaceOrder")} {
		a := e.send(t, r).isProblem(t, http.StatusServiceUnavailable, "unavailable")
		assert.Equal(t, "same-key", a.member(t, "retry"))
		assert.Equal(t, "1", a.header.Get("Retry-After"))
		assert.NotContains(t, a.body, "memory:")
	}
	lines := e.log.lines(t, "request failed")
	require.Len(t, lines, 4)
	for _, line := range lines {
		assert.Equal(t, "WARN", line["level"])
		assert.Contains(t, line["error"], "memory: the store is closed")
	}
}

func TestAFaultWithoutAPublishedCodeIsABug(t *testing.T) {
	e := open(t, broken(func() error { return idempotency.ErrLost.Because(errors.New("x")) }))
	e.send(t, get(anOrder)).isProblem(t, http.StatusInternalServerError, "internal")
	e = open(t, broken(func() error { return port.ErrUnavailable.With("odd", func() {}) }))
	e.send(t, get(anOrder)).isProblem(t, http.StatusInternalServerError, "internal")
}

func TestRetryAfterIsWholeSecondsFromOneToTheLease(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", -time.Hour: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2",
		29 * time.Second: "29",
		30 * time.Second: "30", 30*time.Second + time.Millisecond: "30", 10 * time.Hour: "30",
	} { // C88
		e := open(t, broken(func() error { return idempotency.ErrInProgress.After(wait) }))
		a := e.send(t, get(anOrder)).isProblem(t, http.StatusConflict, "idempotency_in_progress")
		assert.Equal(t, want, a.header.Get("Retry-After"), wait)
	}
	for lease, want := range map[time.Duration]string{1500 * time.Millisecond: "1", 500 * time.Millisecond: "1"} {
		hour := broken(func() error { return idempotency.ErrInProgress.After(time.Hour) })
		e := open(t, hour, func(c *httpapi.Config) { c.Lease = lease })
		assert.Equal(t, want, e.send(t, get(anOrder)).header.Get("Retry-After"), lease)
	}
}

func TestOnlyTheAdviceToWaitHasRetryAfter(t *testing.T) {
	for _, p := range published {
		e := open(t, broken(func() error { return fault.New(p.code, p.retry, "why").After(time.Minute) }))
		a := e.send(t, get(anOrder)).isProblem(t, p.status, string(p.code))
		assert.Equal(t, p.retry == fault.SameKey, a.header.Get("Retry-After") != "", p.code)
		assert.Equal(t, string(p.retry), a.member(t, "retry"))
		assert.Equal(t, a.header.Get("X-Request-Id"), a.member(t, "requestId"))
	}
}

func TestALaterVersionsRefusalKeepsItsStatus(t *testing.T) {
	for document, status := range map[string]int{
		`{"type":"/problems/from_the_future","status":410,"code":"from_the_future"}`: http.StatusGone,
		`{"status":200}`: http.StatusServiceUnavailable, // what a store holds is no bug
		`nothing`:        http.StatusServiceUnavailable,
	} {
		store := memory.New(time.Now)
		e := open(t, store).undescribed() // by this version
		r := placing()
		e.send(t, r).is(t, http.StatusCreated)
		key := idempotency.Key(r.header.Get("Idempotency-Key"))
		scope := idempotency.Scope{Operation: "PlaceOrder", Actor: "alice", Key: key}
		require.NoError(t, store.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			record, err := tx.Records().Find(t.Context(), scope)
			if err != nil {
				return err
			}
			next := record
			next.Status = idempotency.Failed
			next.Outcome = idempotency.Outcome{Refusal: "from_the_future", Document: []byte(document)}
			return tx.Records().Replace(t.Context(), record, next)
		}))
		a := e.send(t, r)
		assert.Equal(t, status, a.status, a.body)
		assert.Equal(t, status == http.StatusGone, a.header.Get("Idempotent-Replayed") == "true")
		if status == http.StatusGone {
			assert.Equal(t, document, a.body)
			assert.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
		}
	}
}

func TestTheLogNamesKeysByTheirDigestAndHasNoTokens(t *testing.T) {
	const key, token = "a-key-that-is-secret", "demo-carol@a-company"
	began := time.Now()
	e := onMemory(t)
	e.provider.Next(storetest.Unreachable)
	id := e.send(t, placing().key(key).token(token)).is(t, 201).member(t, "orderId").(string)
	e.send(t, confirming(id).key(key).token(token)).isProblem(t, 503, "outcome_unknown")
	e.send(t, outcomeOf(placing().key(key), "PlaceOrder").token(token)).is(t, http.StatusOK)
	e.send(t, get("/api/idempotency-keys/"+key+"/more").token(token)).isProblem(t, 404, "not_found")
	e.send(t, placing().key(key).token("wrong-"+token)).isProblem(t, 401, "unauthenticated")
	e.send(t, placing().key(key+" "+key).token(token)).isProblem(t, 400, "idempotency_key_invalid")
	e.send(t, placing().to("/api/orders?"+key+"=%zz").token(token)).isProblem(t, 400, "invalid_request")
	quoting := open(t, broken(func() error { return fmt.Errorf("duplicate key (%s)", key) }))
	quoting.send(t, placing().key(key).token(token)).isProblem(t, 500, "internal")

	for _, log := range []string{e.log.String(), quoting.log.String()} {
		assert.NotContains(t, log, key)
		assert.NotContains(t, log, token)
	}
	lines := e.log.lines(t, "request")
	require.Len(t, lines, 7)
	at, err := time.Parse(time.RFC3339Nano, lines[0]["time"].(string))
	require.NoError(t, err)
	assert.WithinRange(t, at, began, time.Now())
	assert.Equal(t, "INFO", lines[0]["level"])
	assert.Equal(t, "POST", lines[0]["method"])
	assert.Equal(t, "/api/orders", lines[0]["route"])
	assert.InDelta(t, 201, lines[0]["status"], 0)
	assert.Equal(t, "carol", lines[0]["actor"])
	assert.NotEmpty(t, lines[0]["requestId"])
	assert.Contains(t, lines[0], "duration")
	assert.Len(t, lines[0]["keyHash"], 12)
	assert.Equal(t, lines[0]["keyHash"], lines[1]["keyHash"])
	assert.Equal(t, lines[0]["keyHash"], lines[2]["keyHash"])
	assert.NotContains(t, lines[4], "actor", "nobody was signed in")
	assert.Contains(t, quoting.log.String(), strings.TrimSpace(lines[0]["keyHash"].(string)))
}
