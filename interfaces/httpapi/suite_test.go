package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// store opens an empty store for one check.
type store func(t *testing.T) port.UnitOfWork

// patience is how long a store here waits for its turn: the answers of a race are to be seen, not how many of a hundred
// requests a slow machine serves in the default second.
const patience = 10 * time.Second

func inMemory(*testing.T) port.UnitOfWork { return memory.New(time.Now, memory.LockTimeout(patience)) }

func onDatabase(name string) store {
	return func(t *testing.T) port.UnitOfWork { return patiently(t, gormtest.All[name](t)) }
}

// patiently opens a store on a database.
func patiently(t *testing.T, d gormtest.Database) port.UnitOfWork {
	t.Helper()
	return d.OpenWaiting(t, 16, patience)
}

// check is one fact that clients may rely on; its name is the sentence that states it.
type check struct {
	name string
	run  func(t *testing.T, e edge)
}

// suite is what clients may rely on whatever the store. Each check has a store of its own.
func suite(t *testing.T, fresh store, checks ...check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t, fresh(t))) })
	}
}

var allChecks = slices.Concat(orderChecks, journalChecks, bookingChecks, auditChecks)

var orderChecks = []check{
	{"an order is placed, read, paid and read again", orderIsPaid},
	{"a placed order is cancelled, with its reason", orderIsCancelled},
	{"every operation is replayed byte for byte", operationsAreReplayed},
	{"a recorded refusal is replayed byte for byte and names no request", refusalsAreReplayed},
	{"the same key for another request is refused and has no effect", keysAreNotReused},
	{"a duplicate of a running request is told so at once", duplicatesDoNotWait},
	{"a hundred identical requests charge once", identicalRequestsChargeOnce},
	{"a decline leaves the order open for a new key", declineLeavesOrderOpen},
	{"an unknown outcome is settled by the same request", unknownOutcomeIsSettled},
	{"the look-up tells what became of a request", lookUpTells},
	{"the look-up of a running request says when to ask again", lookUpOfRunning},
	{"another customer's orders and keys do not exist", strangersSeeNothing},
	{"a failed look for the order uses no key", unknownOrderUsesNoKey},
	{"the same instant is the same text everywhere", sameInstantSameText},
	{"C22: the order of members, blanks and escapes are not part of the request", membersInAnyOrder},
	{"C24: amounts are integers, and a wrong one leaves the key as it was", amountsAreIntegers},
	{"C26: a query is refused and uses no key", queryUsesNoKey},
	{"C28: headers and framing are not part of the request", headersAreNotPartOfRequest},
	{"C29: members given twice or in another case are refused", membersOnce},
	{"C33: no key is cut off", longKeys},
	{"C37: bytes that a store might refuse are refused before it", bytesStoresRefuse},
	{"C39: actor and key are never joined", actorAndKeyAreNotJoined},
	{"C41: odd texts come back as they were sent", textsComeBack},
	{"C47: a request that is not valid uses no key", invalidUsesNoKey},
	{"C92: yen are not multiplied", yenStayYen},
	{"C94: only the path names the order", pathNamesOrder},
	{"C96: a large body is refused and uses no key", largeBodyUsesNoKey},
}

func TestTheEdgeOnMemory(t *testing.T) { suite(t, inMemory, allChecks...) }

func TestTheEdgeOnDatabases(t *testing.T) {
	for name := range gormtest.All {
		t.Run(name, func(t *testing.T) { suite(t, onDatabase(name), allChecks...) })
	}
}

func orderIsPaid(t *testing.T, e edge) {
	placed := e.send(t, placing()).is(t, http.StatusCreated)
	id := placed.member(t, "orderId").(string)
	assert.Equal(t, "/api/orders/"+id, placed.header.Get("Location"))
	assert.Equal(t, "PLACED", placed.member(t, "status"))
	assert.Equal(t, "alice", placed.member(t, "customerId"))
	assert.Equal(t, placed.body, e.send(t, get(placed.header.Get("Location"))).is(t, http.StatusOK).body)

	paid := e.send(t, confirming(id)).is(t, http.StatusOK)
	assert.Equal(t, "PAID", paid.member(t, "status"))
	assert.InDelta(t, 1000, paid.member(t, "amount"), 0)
	assert.False(t, paid.has(t, "chargeId"), "the provider's id is not published")

	read := e.send(t, get("/api/orders/"+id)).is(t, http.StatusOK)
	for _, name := range []string{"status", "paidAt", "paymentId"} {
		assert.Equal(t, paid.member(t, name), read.member(t, name), name)
	}
}

func orderIsCancelled(t *testing.T, e edge) {
	id := e.place(t)
	cancelled := e.send(t, cancelling(id).saying(`{"reason":"気が変わった"}`)).is(t, http.StatusOK)
	assert.Equal(t, "CANCELLED", cancelled.member(t, "status"))
	assert.Equal(t, "気が変わった", cancelled.member(t, "cancelReason"))
	again := e.send(t, cancelling(id).saying(`{"reason":"another"}`)).is(t, http.StatusOK)
	assert.Equal(t, cancelled.body, again.body, "the original reason and time")
	assert.Empty(t, again.header.Get("Idempotent-Replayed"), "this key's own execution")
	e.send(t, confirming(id)).isProblem(t, http.StatusConflict, "invalid_state")
}

func operationsAreReplayed(t *testing.T, e edge) {
	paid, cancelled := e.place(t), e.place(t)
	for _, r := range []request{placing(), confirming(paid), cancelling(cancelled)} {
		first := e.send(t, r)
		require.Less(t, first.status, 300, first.body)
		assert.Empty(t, first.header.Get("Idempotent-Replayed"))
		assert.False(t, strings.HasSuffix(first.body, "\n"), "no final newline")
		e.send(t, r).isReplayOf(t, first)
		e.send(t, r).isReplayOf(t, first)
	}
}

func refusalsAreReplayed(t *testing.T, e edge) {
	id := e.place(t)
	cancelled := e.place(t)
	e.send(t, cancelling(cancelled)).is(t, http.StatusOK)
	for _, c := range []struct {
		request request
		status  int
		code    string
		member  string
		value   any
	}{
		{confirming(id).saying(`{"amount":999,"currency":"JPY"}`), 422, "amount_mismatch", "retry", "new-key"},
		{confirming(id).saying(`{"amount":1000,"currency":"EUR"}`), 422, "amount_mismatch", "retry", "new-key"},
		{
			confirming(id).saying(`{"amount":1000,"currency":"JPY","paymentMethod":"pm_declined"}`),
			402, "payment_declined", "declineCode", "card_declined",
		},
		{confirming(cancelled), 409, "invalid_state", "orderStatus", "CANCELLED"},
	} {
		first := e.send(t, c.request).isProblem(t, c.status, c.code)
		assert.Equal(t, c.value, first.member(t, c.member))
		assert.False(t, first.has(t, "requestId"))
		assert.Empty(t, first.header.Get("Retry-After"))
		e.send(t, c.request).isReplayOf(t, first)
	}
}

func keysAreNotReused(t *testing.T, e edge) {
	first, other := e.place(t), e.place(t)
	r := confirming(first)
	e.send(t, r).is(t, http.StatusOK)
	for _, reused := range []request{
		r.saying(`{"amount":1001,"currency":"JPY"}`),
		r.saying(`{"amount":1000,"currency":"JPY","paymentMethod":"pm_ok"}`),
		r.to(confirming(other).path),
		r.to("/api/orders/nothing/confirm-payment"),
	} {
		a := e.send(t, reused).isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		assert.Equal(t, "new-key", a.member(t, "retry"))
		assert.Empty(t, a.header.Get("Idempotent-Replayed"))
		assert.Equal(t, a.header.Get("X-Request-Id"), a.member(t, "requestId"))
	}
	assert.Equal(t, "PLACED", e.statusOf(t, other))
	e.send(t, r.to(cancelling(other).path).saying(`{}`)).is(t, http.StatusOK) // another operation's key is another key
}

func duplicatesDoNotWait(t *testing.T, e edge) {
	held, call := storetest.Holding(storetest.Approving)
	e.provider.Next(call)
	r := confirming(e.place(t))
	first := make(chan answer, 1)
	go func() {
		a, err := e.try(t.Context(), r)
		assert.NoError(t, err)
		first <- a
	}()
	<-held.Reached

	duplicate := e.send(t, r).isProblem(t, http.StatusConflict, "idempotency_in_progress")
	assert.Equal(t, "same-key", duplicate.member(t, "retry"))
	assertWaits(t, duplicate)
	e.send(t, r.saying(`{"amount":7,"currency":"JPY"}`)).isProblem(t, 422, "idempotency_key_reused")
	second := e.send(t, r.key(freshKey())).isProblem(t, http.StatusConflict, "payment_in_progress")
	assertWaits(t, second)
	cancel := r.key(freshKey()).to(strings.Replace(r.path, "confirm-payment", "cancel", 1)).saying(`{}`)
	e.send(t, cancel).isProblem(t, http.StatusConflict, "payment_in_progress")

	held.Release()
	final := (<-first).is(t, http.StatusOK)
	e.send(t, r).isReplayOf(t, final)
}

// assertWaits checks that the answer advises to wait, from one second to the lease.
func assertWaits(t *testing.T, a answer) {
	t.Helper()
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, seconds, 1)
	assert.LessOrEqual(t, time.Duration(seconds)*time.Second, storetest.Times.Lease)
}

func identicalRequestsChargeOnce(t *testing.T, e edge) { // C16
	r := confirming(e.place(t))
	answers := make([]answer, 100)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			a, err := e.try(context.WithoutCancel(t.Context()), r)
			assert.NoError(t, err)
			answers[i] = a
		})
	}
	all.Wait()
	final := e.send(t, r).is(t, http.StatusOK)
	for _, a := range answers {
		if a.status == http.StatusConflict {
			a.isProblem(t, http.StatusConflict, "idempotency_in_progress")
			assertWaits(t, a)
			continue
		}
		assert.Equal(t, final.body, a.is(t, http.StatusOK).body)
	}
	assert.Equal(t, 1, e.provider.Charges())
}

func declineLeavesOrderOpen(t *testing.T, e edge) {
	id := e.place(t)
	e.provider.Next(storetest.Declining("insufficient_funds"))
	declined := e.send(t, confirming(id)).isProblem(t, http.StatusPaymentRequired, "payment_declined")
	assert.Equal(t, "insufficient_funds", declined.member(t, "declineCode"))
	assert.Equal(t, "PLACED", e.statusOf(t, id))
	e.send(t, confirming(id)).is(t, http.StatusOK)
	assert.Equal(t, 1, e.provider.Charges())
}

func unknownOutcomeIsSettled(t *testing.T, e edge) {
	e.provider.Next(storetest.Losing(storetest.Approving))
	id := e.place(t)
	r := confirming(id)
	unknown := e.send(t, r).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	assert.Equal(t, "same-key", unknown.member(t, "retry"))
	assertWaits(t, unknown)
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, id))
	e.send(t, cancelling(id)).isProblem(t, http.StatusConflict, "payment_in_progress")
	settled := e.send(t, r).is(t, http.StatusOK)
	assert.Empty(t, settled.header.Get("Idempotent-Replayed"), "it is this request's own execution")
	assert.Equal(t, 1, e.provider.Charges())
}

func lookUpTells(t *testing.T, e edge) {
	id := e.place(t)
	paying := confirming(id)
	refused := confirming(id).saying(`{"amount":1,"currency":"JPY"}`)
	wrong := e.send(t, refused).isProblem(t, 422, "amount_mismatch")
	paid := e.send(t, paying).is(t, http.StatusOK)

	found := e.send(t, outcomeOf(paying, "ConfirmPayment")).is(t, http.StatusOK)
	assert.Equal(t, "SUCCEEDED", found.member(t, "status"))
	assert.Equal(t, "ConfirmPayment", found.member(t, "operation"))
	assert.Equal(t, paying.header.Get("Idempotency-Key"), found.member(t, "idempotencyKey"))
	assert.InDelta(t, 1, found.member(t, "executions"), 0)
	assert.Contains(t, found.body, `"response":`+paid.body+`}`)
	assert.True(t, found.has(t, "createdAt") && found.has(t, "completedAt") && found.has(t, "expiresAt"))
	assert.False(t, found.has(t, "problem"))
	assert.Empty(t, found.header.Get("Retry-After"))

	found = e.send(t, outcomeOf(refused, "ConfirmPayment")).is(t, http.StatusOK)
	assert.Equal(t, "FAILED", found.member(t, "status"))
	assert.Contains(t, found.body, `"problem":`+wrong.body+`}`)
	assert.False(t, found.has(t, "response"))

	e.send(t, outcomeOf(paying, "CancelOrder")).isProblem(t, http.StatusNotFound, "not_found")
}

func outcomeOf(r request, operation string) request {
	return get("/api/idempotency-keys/" + pathEscape(r.header.Get("Idempotency-Key")) + "?operation=" + operation)
}

func lookUpOfRunning(t *testing.T, e edge) {
	e.provider.Next(storetest.Unreachable)
	r := confirming(e.place(t))
	e.send(t, r).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	found := e.send(t, outcomeOf(r, "ConfirmPayment")).is(t, http.StatusOK)
	assert.Equal(t, "IN_PROGRESS", found.member(t, "status"))
	assertWaits(t, found)
	for _, name := range []string{"completedAt", "expiresAt", "response", "problem"} {
		assert.False(t, found.has(t, name), name)
	}
}

func strangersSeeNothing(t *testing.T, e edge) {
	paying := confirming(e.place(t))
	e.send(t, paying).is(t, http.StatusOK)
	order := strings.TrimSuffix(paying.path, "/confirm-payment")
	theirs := e.send(t, get(order).token("demo-bob")).isProblem(t, http.StatusNotFound, "order_not_found")
	nobodys := e.send(t, get("/api/orders/01930000-0000-7000-8000-000000000000")).isProblem(t, 404, "order_not_found")
	assert.Equal(t, nobodys.member(t, "detail"), theirs.member(t, "detail"))
	e.send(t, paying.token("demo-bob")).isProblem(t, http.StatusNotFound, "order_not_found")
	e.send(t, outcomeOf(paying, "ConfirmPayment").token("demo-bob")).isProblem(t, http.StatusNotFound, "not_found")
	e.send(t, get(order).token("demo-alice@company-1")).is(t, http.StatusOK)
}
