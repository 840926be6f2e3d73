package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// postingFaults are in the order of checks, as orderPostFaults are. There is no check 5: the key is derived.
var postingFaults = []wrong{
	{"0", "another host", 403, "forbidden", func(r *request) { r.host = "shop.example" }},
	{"1", "no such route", 404, "not_found", func(r *request) { r.path += "/more" }},
	{"1", "no such method", 405, "method_not_allowed", func(r *request) { r.method = http.MethodPut }},
	{"2", "no token", 401, "unauthenticated", drop("Authorization")},
	{"2", "a bad token", 401, "unauthenticated", set("Authorization", "Bearer alice")},
	{"3", "the operator's token", 403, "forbidden", set("Authorization", "Bearer demo-operator@"+company)},
	{"4", "a query", 400, "invalid_request", func(r *request) { r.path += "?dryRun=1" }},
	{"6", "another content type", 415, "unsupported_media_type", set("Content-Type", "text/plain")},
	{"6", "a content encoding", 415, "unsupported_media_type", set("Content-Encoding", "gzip")},
	{"7", "too large a body", 413, "payload_too_large", func(r *request) { r.body += strings.Repeat(" ", 64<<10) }},
	{"8", "no JSON", 400, "invalid_request", func(r *request) { r.body = "x" + r.body }},
	{"8", "a wrong member", 400, "invalid_request", func(r *request) { r.body = `{"more":1,` + r.body[1:] }},
	{"8", "a wrong component", 400, "invalid_request", func(r *request) {
		r.body = strings.Replace(r.body, `"version":1`, `"version":-1`, 1)
	}},
	{"9", "another company", 403, "forbidden", func(r *request) { r.body = strings.Replace(r.body, company, "others", 1) }},
	{"10", "another content", 422, "idempotency_key_reused", func(r *request) {
		r.body = strings.Replace(r.body, `{"`, `{"currency":"EUR","`, 1)
	}},
}

func TestWhenTwoThingsAreWrongWithAPostingTheEarlierCheckAnswers(t *testing.T) {
	e := onMemory(t)
	e.booking(t, taxed("inv-1"))
	e.send(t, taxed("inv-1").with("companyId", "others").posted()).is(t, http.StatusCreated)
	for i, first := range postingFaults {
		for _, second := range postingFaults[i:] {
			if first.name != second.name && first.check == second.check || overrides(first, second) {
				continue
			}
			t.Run(first.name+" and "+second.name, func(t *testing.T) {
				r := taxed("inv-1").posted()
				second.spoil(&r)
				if first.name != second.name {
					first.spoil(&r)
				}
				a := e.send(t, r).isProblem(t, first.status, first.code)
				assertGeneral(t, a)
				assert.Empty(t, a.header.Get("Idempotent-Replayed"))
				assert.Empty(t, a.header.Get("Idempotency-Key"))
				assert.Empty(t, a.header.Get("Retry-After"))
			})
		}
	}
	e.repeating(t, taxed("inv-1"))
}

// A key that one can compute is no secret: a header that brings one is neither needed nor looked at.
func TestAKeyInTheHeaderOfAPostingIsNotLookedAt(t *testing.T) {
	e := onMemory(t)
	for i, lines := range [][]string{
		nil, {""}, {"k"}, {"k"}, {"not one key"}, {"a", "b"}, {`"k";a=1`}, {strings.Repeat("k", 300)},
	} {
		r := invoice("inv-" + itoa(i)).posted()
		r.header["Idempotency-Key"] = lines
		first := e.send(t, r).is(t, http.StatusCreated)
		again := e.send(t, r).is(t, http.StatusOK)
		assert.Equal(t, first.member(t, "journalEntryId"), again.member(t, "journalEntryId"))
		for _, a := range []answer{first, again, e.send(t, r.saying("x")), e.send(t, r.with("Authorization", ""))} {
			assert.Empty(t, a.header.Get("Idempotency-Key"))
		}
	}
	e.send(t, outcomeOf(placing().key("k"), "PlaceOrder")).isProblem(t, http.StatusNotFound, "not_found")
}

// counted is a store that counts how often it is asked.
type counted struct {
	port.UnitOfWork
	asked atomic.Int32
}

func (c *counted) Do(ctx context.Context, wait port.Wait, fn func(port.Tx) error) error {
	c.asked.Add(1)
	return c.UnitOfWork.Do(ctx, wait, fn)
}

func (c *counted) Read(ctx context.Context, fn func(port.Tx) error) error {
	c.asked.Add(1)
	return c.UnitOfWork.Read(ctx, fn)
}

func TestAnotherCompanysDocumentIsRefusedBeforeAnyLookUp(t *testing.T) {
	store := &counted{UnitOfWork: memory.New(time.Now)}
	e := open(t, store)
	e.booking(t, invoice("booked"))
	for _, token := range []string{
		"demo-alice", "demo-alice@other", "demo-alice@" + company + "2", "demo-alice@Company-uuid", "demo-" + company,
	} {
		var answers []answer
		before := store.asked.Load()
		for _, id := range []string{"booked", "unknown"} {
			r := invoice(id).posted().token(token).with("X-Request-Id", "one").with("Prefer", "handling=strict")
			answers = append(answers, e.send(t, r).isProblem(t, http.StatusForbidden, "forbidden"))
		}
		assert.Equal(t, before, store.asked.Load(), token)
		assert.Equal(t, answers[0].body, answers[1].body, "booked or not is no different")
		for _, a := range answers {
			a.header.Del("Date")
		}
		assert.Equal(t, answers[0].header, answers[1].header)
	}
	e.repeating(t, invoice("booked"))
	e.booking(t, invoice("unknown"))
}

func TestTheDemoOperatorHasNoBooks(t *testing.T) {
	e := onMemory(t)
	path := e.booking(t, invoice("inv-1")).header.Get("Location")
	for _, r := range []request{
		get(path), get(pathEntries + "none"), invoice("inv-1").posted(), invoice("inv-2").posted(),
	} {
		for _, token := range []string{operator, operator + "@" + company} {
			e.send(t, r.token(token)).isProblem(t, http.StatusForbidden, "forbidden")
		}
	}
	e.booking(t, invoice("inv-2"))
}

func TestIdenticalPostingsToTwoInstancesBookOne(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			postIdentically(t, open(t, patiently(t, d)), open(t, patiently(t, d)))
		})
	}
}

// The entry is the record: its posting leaves no other, and a payment's entry is one row.
func TestTheTablesHoldOneEntryPerDocumentAndNoRecordOfItsPosting(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			e := open(t, patiently(t, d))
			count := func(table string) (rows int) {
				row := d.SQL(t).QueryRowContext(t.Context(), "SELECT count(*) FROM "+table)
				require.NoError(t, row.Scan(&rows))
				return rows
			}
			e.booking(t, taxed("inv-1"))
			e.repeating(t, taxed("inv-1"))
			e.send(t, taxed("inv-1").posted().with("Prefer", "handling=strict")).isProblem(t, 409, "duplicate_operation")
			e.send(t, invoice("inv-1").posted()).isProblem(t, 422, "idempotency_key_reused")
			e.send(t, invoice("inv-1").with("version", -1).posted()).isProblem(t, 400, "invalid_request")
			e.send(t, invoice("inv-2").posted().token("demo-bob")).isProblem(t, 403, "forbidden")
			assert.Equal(t, 1, count("journal_entries"))
			assert.Zero(t, count("idempotency_records"))

			e.provider.Next(storetest.Losing(storetest.Approving))
			paid := confirming(e.place(t))
			e.send(t, paid).isProblem(t, 503, "outcome_unknown")
			assert.Equal(t, 1, count("journal_entries"), "an unknown outcome books nothing")
			first := e.send(t, paid).is(t, http.StatusOK)
			e.send(t, paid).isReplayOf(t, first)
			e.send(t, paid.key(freshKey())).is(t, http.StatusOK)
			e.send(t, paid.saying(`{"amount":1,"currency":"JPY"}`)).isProblem(t, 422, "idempotency_key_reused")
			declined := confirming(e.place(t))
			e.provider.Next(storetest.Declining("card_declined"))
			e.send(t, declined).isProblem(t, 402, "payment_declined")
			e.send(t, cancelling(e.place(t))).is(t, http.StatusOK)
			assert.Equal(t, 2, count("journal_entries"), "the invoice, and the one payment")
			assert.Equal(t, 7, count("idempotency_records"), "three orders, three confirmations' keys, one cancellation")
		})
	}
}
