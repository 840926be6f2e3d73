package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

func TestTheAuditLogIsTheOperatorsAlone(t *testing.T) {
	e := onMemory(t)
	for _, token := range []string{"demo-alice", accountant, "demo-Operator", "demo-operators"} {
		e.send(t, auditing("").token(token)).isProblem(t, http.StatusForbidden, "forbidden")
		e.send(t, auditing("?limit=0").token(token)).isProblem(t, http.StatusForbidden, "forbidden")
	}
	for _, r := range []request{auditing("").with("Authorization", ""), auditing("?limit=0").token("operator")} {
		a := e.send(t, r).isProblem(t, http.StatusUnauthorized, "unauthenticated")
		assert.NotEmpty(t, a.header.Get("WWW-Authenticate"))
	}
	assertGeneral(t, e.send(t, auditing("")).is(t, http.StatusOK))
	e.send(t, auditing("").token(operator+"@"+company)).is(t, http.StatusOK)
}

func TestTheAuditLogsQuery(t *testing.T) {
	e := onMemory(t)
	e.repeats(t, 2)
	last := e.audited(t)[1].ID
	for _, query := range []string{
		"?limit=0", "?limit=501", "?limit=-1", "?limit=", "?limit", "?limit=1.0", "?limit=1e2", "?limit=01", "?limit=%2B1",
		"?limit=x", "?limit=99999999999999999999", "?limit=1&limit=1", "?limit=%201",
		"?kind=", "?kind", "?kind=Mismatch", "?kind=other", "?kind=mismatch,duplicate", "?kind=mismatch&kind=duplicate",
		"?kind=mismatch%20",
		"?after=", "?after", "?after=0", "?after=-1", "?after=x", "?after=%2B1", "?after=01", "?after=1.0",
		"?after=9999999", "?after=99999999999999999999", "?after=" + last + "&after=" + last, "?after=%20" + last,
		"?after=" + last + "%00", "?more=1", "?Limit=1", "?limit=1&more=1", "?before=" + last, "?%zz", "?a;b",
	} {
		a := e.send(t, auditing(query)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.False(t, a.has(t, "errors/0/pointer"), query)
		assert.Equal(t, a.member(t, "detail"), a.member(t, "errors/0/detail"))
		assert.Equal(t, "after-fix", a.member(t, "retry"))
		assertGeneral(t, a)
	}
	for query, entries := range map[string]int{
		"": 3, "?": 3, "?limit=1": 1, "?limit=500": 3, "?kind=duplicate": 3, "?kind=lease_lost": 0, "?kind=released": 0,
		"?kind=resolved&limit=1": 0, "?after=" + last: 1, "?after=" + last + "&kind=duplicate&limit=2": 1,
	} {
		assert.Len(t, e.audit(t, query).Entries, entries, query)
	}
}

func TestAPageHasAHundredEntriesUnlessMoreAreAskedFor(t *testing.T) {
	e := onMemory(t)
	e.booking(t, invoice("inv-1"))
	for range 120 {
		e.repeating(t, invoice("inv-1"))
	}
	require.Len(t, e.audited(t), 120)
	first := e.audit(t, "")
	assert.Len(t, first.Entries, 100)
	require.NotNil(t, first.Next)
	assert.Len(t, e.audit(t, "?after="+*first.Next).Entries, 21, "and the marker's")
	assert.Len(t, e.audit(t, "?limit=121").Entries, 121)
}

func TestOtherMethodsOfTheAuditLogAreNotAllowed(t *testing.T) {
	e := onMemory(t)
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch} {
		r := auditing("")
		r.method = method
		e.send(t, r).isProblem(t, http.StatusMethodNotAllowed, "method_not_allowed")
	}
}

// The log may be away for as long as it likes: nobody waits for it, and it is written when it is back.
func TestAnAuditLogThatCannotBeWrittenFailsNoWork(t *testing.T) {
	for name, fresh := range map[string]store{
		"memory":     inMemory,
		"SQLite":     onDatabase("SQLite"),
		"PostgreSQL": onDatabase("PostgreSQL"),
	} {
		t.Run(name, func(t *testing.T) {
			work := fresh(t)
			log := storetest.NewUnreliable(work)
			log.LeaveAfter(0)
			e := openAuditing(t, work, log)
			r := confirming(e.place(t))
			started := time.Now()
			first := e.send(t, r).is(t, http.StatusOK)
			e.send(t, r).isReplayOf(t, first)
			e.send(t, r.key(freshKey())).is(t, http.StatusOK)
			e.send(t, r.saying(`{"amount":1,"currency":"JPY"}`)).isProblem(t, 422, "idempotency_key_reused")
			e.repeats(t, 3)
			assert.Less(t, time.Since(started), 2*time.Second, "nobody waits")
			assert.Empty(t, e.audit(t, "").Entries)

			log.Return()
			audited := e.audited(t)
			require.Len(t, audited, 5, "nothing was lost")
			assert.Equal(t, "duplicate", audited[0].Kind)
			assert.Equal(t, "mismatch", audited[1].Kind)
		})
	}
}

func TestALogThatCannotBeReadIsUnavailable(t *testing.T) {
	work := memory.New(time.Now)
	e := open(t, work)
	require.NoError(t, work.Close())
	a := e.send(t, auditing("")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	assert.NotEmpty(t, a.header.Get("Retry-After"))
}
