package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/infrastructure/storetest"
)

// auditChecks are CONTRACT.md, Operators, GET /api/audit, as far as the store matters.
var auditChecks = []check{
	{"an empty log is an empty page, and the last one", emptyLog},
	{"a reused key is audited although its request was rolled back", mismatchIsAudited},
	{"an order that is confirmed again under a new key is audited", paidAgainIsAudited},
	{"repeats and mismatches of postings are audited under the entry's scope", postingsAreAudited},
	{"a takeover and the lease that it ended are audited", takeoverIsAudited},
	{"C12: an amount conflict is audited once, however often the client retries", conflictIsAuditedOnce},
	{"an entry shows within two seconds", entryShowsSoon},
	{"pages follow each other, oldest first, and the last one has no next", pagesFollow},
	{"a page of one kind leaves the others out", pagesOfOneKind},
	{"who reads on while entries are written misses none and reads none twice", readingOnMissesNone},
	{"an id that was swept is still an after", sweptIsStillAfter},
}

func emptyLog(t *testing.T, e edge) {
	assert.Contains(t, e.send(t, auditing("")).is(t, http.StatusOK).body, `{"entries":[],"next":null}`)
	e.send(t, auditing("?after=1")).isProblem(t, http.StatusBadRequest, "invalid_request")
}

// scopeIn checks whose an audit entry is.
func scopeIn(t *testing.T, entry auditEntry, operation, actor string, key any) {
	t.Helper()
	assert.Equal(t, operation, entry.Operation)
	assert.Equal(t, actor, entry.Actor)
	assert.Equal(t, key, entry.IdempotencyKey)
	assert.NotEmpty(t, entry.Detail)
	assert.NotEmpty(t, entry.ID)
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`, entry.At)
	at, err := time.Parse(time.RFC3339, entry.At)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), at, time.Minute)
}

func mismatchIsAudited(t *testing.T, e edge) {
	r := confirming(e.place(t))
	e.send(t, r).is(t, http.StatusOK)
	e.send(t, r.saying(`{"amount":1,"currency":"JPY"}`)).isProblem(t, 422, "idempotency_key_reused")
	audited := e.audited(t)
	require.Len(t, audited, 1)
	assert.Equal(t, "mismatch", audited[0].Kind)
	scopeIn(t, audited[0], "ConfirmPayment", "alice", r.header.Get("Idempotency-Key"))
	e.send(t, r).is(t, http.StatusOK) // a replay is no news
	e.send(t, confirming("x").key(freshKey())).isProblem(t, 404, "order_not_found")
	assert.Len(t, e.audited(t), 1)
}

func paidAgainIsAudited(t *testing.T, e edge) {
	r := confirming(e.place(t))
	e.send(t, r).is(t, http.StatusOK)
	second := r.key(freshKey())
	for range 2 { // the second time is a replay of the second key
		e.send(t, second).is(t, http.StatusOK)
	}
	audited := e.audited(t)
	require.Len(t, audited, 1)
	assert.Equal(t, "duplicate", audited[0].Kind)
	scopeIn(t, audited[0], "ConfirmPayment", "alice", second.header.Get("Idempotency-Key"))
}

func postingsAreAudited(t *testing.T, e edge) {
	d := taxed("inv-1")
	first := e.booking(t, d)
	e.repeating(t, d)
	e.send(t, d.posted().with("Prefer", "handling=strict")).isProblem(t, 409, "duplicate_operation")
	e.send(t, d.posted().token("demo-bob@"+company)).is(t, http.StatusOK)
	e.send(t, invoice("inv-1").posted()).isProblem(t, 422, "idempotency_key_reused")
	audited := e.audited(t)
	require.Len(t, audited, 4)
	assert.Len(t, ofKind(audited, "duplicate"), 3)
	assert.Len(t, ofKind(audited, "mismatch"), 1)
	for _, entry := range audited {
		scopeIn(t, entry, "PostJournalEntry", company, first.member(t, "idempotencyKey"))
		assert.Contains(t, entry.Detail, first.member(t, "journalEntryId"))
	}
	assert.Contains(t, audited[2].Detail, "bob")
}

func takeoverIsAudited(t *testing.T, e edge) {
	held, call := storetest.Holding(storetest.Approving)
	e.provider.Next(call)
	r := confirming(e.place(t))
	key := r.header.Get("Idempotency-Key")
	first := make(chan answer, 1)
	go func() {
		a, err := e.try(context.WithoutCancel(t.Context()), r)
		assert.NoError(t, err)
		first <- a
	}()
	<-held.Reached
	scope := idempotency.Scope{Operation: checkout.OpConfirmPayment, Actor: "alice", Key: idempotency.Key(key)}
	require.NoError(t, storetest.Age(t.Context(), e.work, scope, storetest.Times.Lease+time.Second))
	there, _ := e.again(t)
	second := there.send(t, r).is(t, http.StatusOK)
	there.audited(t) // the takeover is written before the other instance writes that the lease is lost
	held.Release()
	(<-first).isReplayOf(t, second)

	audited := e.audited(t)
	require.Len(t, audited, 2)
	assert.Equal(t, []string{"takeover", "lease_lost"}, []string{audited[0].Kind, audited[1].Kind})
	for _, entry := range audited {
		scopeIn(t, entry, "ConfirmPayment", "alice", key)
	}
}

func conflictIsAuditedOnce(t *testing.T, e edge) {
	e.provider.Next(storetest.Taking(money.Of(999, money.JPY)))
	order := e.place(t)
	r := confirming(order)
	for range 4 {
		e.send(t, r).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	}
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, order))
	conflicts := ofKind(e.audited(t), "amount_conflict")
	require.Len(t, conflicts, 1)
	scopeIn(t, conflicts[0], "ConfirmPayment", "alice", r.header.Get("Idempotency-Key"))
	assert.Contains(t, conflicts[0].Detail, "999")

	e.provider.Next(storetest.Taking(money.Of(998, money.JPY)))
	e.send(t, confirming(e.place(t))).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	assert.Len(t, ofKind(e.audited(t), "amount_conflict"), 2, "another order's is another one")
}

func entryShowsSoon(t *testing.T, e edge) {
	e.booking(t, invoice("inv-1"))
	e.repeating(t, invoice("inv-1"))
	answered := time.Now()
	shown := false
	for !shown && time.Since(answered) < 2*time.Second {
		shown = len(e.audit(t, "").Entries) > 0
	}
	assert.True(t, shown)
}

// repeats have so many entries audited, of as many documents.
func (e edge) repeats(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		d := invoice(fmt.Sprint("inv-", i))
		e.booking(t, d)
		e.repeating(t, d)
	}
}

func pagesFollow(t *testing.T, e edge) {
	e.repeats(t, 7)
	all := e.audited(t)
	require.Len(t, all, 7)
	var read []auditEntry
	query := "?limit=3"
	for {
		page := e.audit(t, query)
		assert.LessOrEqual(t, len(page.Entries), 3)
		read = append(read, page.Entries...)
		if page.Next == nil {
			break
		}
		assert.Equal(t, page.Entries[len(page.Entries)-1].ID, *page.Next)
		query = "?limit=3&after=" + url.QueryEscape(*page.Next)
	}
	require.Len(t, read, 8, "and the marker's")
	assert.Equal(t, all, read[:7])
	at := ""
	for _, entry := range read {
		assert.GreaterOrEqual(t, entry.At, at[:min(len(at), 19)], "oldest first")
		at = entry.At
	}
	whole := e.audit(t, "?limit=8")
	assert.Equal(t, read, whole.Entries)
	assert.Nil(t, whole.Next, "a full page that is the last one has no next")
	assert.Empty(t, e.audit(t, "?after="+url.QueryEscape(read[7].ID)).Entries)
}

func pagesOfOneKind(t *testing.T, e edge) {
	for i := range 3 {
		d := invoice(fmt.Sprint("inv-", i))
		e.booking(t, d)
		e.repeating(t, d)
		e.send(t, d.with("currency", "EUR").posted()).isProblem(t, 422, "idempotency_key_reused")
	}
	mismatches := ofKind(e.audited(t), "mismatch")
	require.Len(t, mismatches, 3)
	first := e.audit(t, "?kind=mismatch&limit=2")
	assert.Equal(t, mismatches[:2], first.Entries)
	require.NotNil(t, first.Next)
	rest := e.audit(t, "?limit=2&kind=mismatch&after="+url.QueryEscape(*first.Next))
	assert.Equal(t, mismatches[2:], rest.Entries)
	assert.Nil(t, rest.Next)
	assert.Empty(t, e.audit(t, "?kind=resolved").Entries)
}

func readingOnMissesNone(t *testing.T, e edge) {
	const writers, each = 6, 15
	posted := make([]answer, writers*each)
	written := make(chan struct{})
	go func() {
		defer close(written)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					posted[w*each+i] = e.postTwice(context.WithoutCancel(t.Context()), fmt.Sprint("inv-", w, "-", i))
				}
			})
		}
		all.Wait()
	}()
	var read []auditEntry
	query := "?limit=7"
	next := func() (empty bool) {
		page := e.audit(t, query)
		if read = append(read, page.Entries...); len(read) > 0 {
			query = "?limit=7&after=" + url.QueryEscape(read[len(read)-1].ID)
		}
		return len(page.Entries) == 0
	}
	for running := true; running; {
		select {
		case <-written:
			running = false
		default:
			next()
		}
	}
	e.audited(t) // the rest is in the log now
	for empty := false; !empty; {
		empty = next()
	}
	var keys []string
	ids := map[string]bool{}
	for _, entry := range read {
		ids[entry.ID] = true
		if entry.Actor != marker {
			keys = append(keys, entry.IdempotencyKey)
		}
	}
	assert.Len(t, ids, len(read))
	var want []string
	for _, a := range posted {
		want = append(want, a.is(t, http.StatusOK).member(t, "idempotencyKey").(string))
	}
	assert.ElementsMatch(t, want, keys)
}

// postTwice posts a document and posts it again, which is audited; it is answered by the repeat's answer, or none.
func (e edge) postTwice(ctx context.Context, id string) (second answer) {
	for range 2 {
		a, err := e.try(ctx, invoice(id).posted())
		if err != nil {
			return answer{body: err.Error()}
		}
		second = a
	}
	return second
}

func sweptIsStillAfter(t *testing.T, e edge) {
	e.repeats(t, 2)
	before := e.audited(t)
	require.Len(t, before, 2)
	e.forget(t)
	e.send(t, taxed("inv-0").posted()).isProblem(t, 422, "idempotency_key_reused")
	require.Len(t, e.audited(t), 1)
	page := e.audit(t, "?after="+url.QueryEscape(before[0].ID))
	require.NotEmpty(t, page.Entries)
	assert.Equal(t, "mismatch", page.Entries[0].Kind)
}
