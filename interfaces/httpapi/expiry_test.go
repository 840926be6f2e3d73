package httpapi_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

func onEveryStore(t *testing.T, test func(t *testing.T, work port.UnitOfWork)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, inMemory(t)) })
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) { test(t, patiently(t, database(t))) })
	}
}

// C85, C90: past its retention a key is new, swept or not. The order still stands between the shopper and a second
// charge.
func TestAnExpiredKeyIsNewOnDatabases(t *testing.T) {
	onEveryStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work)
		first, other := e.place(t), e.place(t)
		paid := e.send(t, confirming(first).key("k")).is(t, http.StatusOK)
		scope := idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "k"}
		e.send(t, confirming(other).key("k")).isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		require.NoError(t, storetest.Age(t.Context(), work, scope, storetest.Times.Retention))

		e.send(t, get("/api/idempotency-keys/k?operation=ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
		for _, clean := range []func(){func() {}, func() { swept(t, work, 1) }} {
			clean()
			again := e.send(t, confirming(first).key("k")).is(t, http.StatusOK)
			assert.Equal(t, paid.body, again.body, "the order has the original receipt")
			assert.Empty(t, again.header.Get("Idempotent-Replayed"), "the key was new")
			require.NoError(t, storetest.Age(t.Context(), work, scope, storetest.Times.Retention))
		}

		var racing sync.WaitGroup
		for range 20 {
			racing.Go(func() {
				a, err := e.try(t.Context(), confirming(other).key("k"))
				if err != nil {
					t.Error(err)
					return
				}
				assert.Contains(t, []int{http.StatusOK, http.StatusConflict}, a.status, a.body)
			})
		}
		racing.Wait()
		e.send(t, confirming(other).key("k")).is(t, http.StatusOK)
		assert.Equal(t, 2, e.provider.Charges())
	})
}

// swept sweeps, and demands that so many records were there to be deleted.
func swept(t *testing.T, work port.UnitOfWork, records int) {
	t.Helper()
	n, err := idempotent.Sweep(t.Context(), work, idempotent.Pace{})
	require.NoError(t, err)
	require.Equal(t, records, n)
}

// C12: a recorded refusal is an answer like any other, and its key belongs to its request.
func TestARefusedKeyStaysItsRequestsOnDatabases(t *testing.T) {
	onEveryStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work)
		id := e.place(t)
		e.send(t, cancelling(id)).is(t, http.StatusOK)
		refused := e.send(t, confirming(id).key("k")).isProblem(t, http.StatusConflict, "invalid_state")
		e.send(t, confirming(id).key("k")).isReplayOf(t, refused)
		e.send(t, confirming(id).key("k").saying(`{"amount":2000,"currency":"JPY"}`)).
			isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		assert.Equal(t, "CANCELLED", e.statusOf(t, id))
	})
}

// C58: what is slow mixes with nothing else: every answer is of its own request.
func TestSlowPaymentsAndQuickReadsDoNotMix(t *testing.T) {
	e := open(t, inMemory(t))
	var ids []string
	for range 10 {
		ids = append(ids, e.place(t))
	}
	slow := func(i int) bool { return i%2 == 0 }
	held, calls := make([]*storetest.Held, 0, 5), make([]storetest.Call, 0, 5)
	for range 5 {
		h, call := storetest.Holding(storetest.Approving)
		held, calls = append(held, h), append(calls, call)
	}
	e.provider.Next(calls...)
	var running sync.WaitGroup
	for i, id := range ids {
		if slow(i) {
			running.Go(func() {
				a, err := e.try(t.Context(), confirming(id))
				if err != nil {
					t.Error(err)
					return
				}
				assert.Contains(t, a.body, id)
			})
		}
	}
	for _, h := range held {
		<-h.Reached
	}
	for i, id := range ids {
		for range 10 {
			running.Go(func() {
				a, err := e.try(t.Context(), get("/api/orders/"+id))
				if err != nil {
					t.Error(err)
					return
				}
				assert.Contains(t, a.body, id)
				assert.Equal(t, 1, strings.Count(a.body, "orderId"), i)
			})
		}
	}
	time.AfterFunc(0, func() {
		for _, h := range held {
			h.Release()
		}
	})
	running.Wait()
}
