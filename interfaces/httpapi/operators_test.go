package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// CONTRACT.md, Operators: unresolved records, release and resolve, on every store.

func TestOperatorsOnMemory(t *testing.T) { suite(t, inMemory, operatorChecks...) }

func TestOperatorsOnDatabases(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			suite(t, func(t *testing.T) port.UnitOfWork { return patiently(t, database(t)) }, operatorChecks...)
		})
	}
}

const (
	pathUnresolved = "/api/unresolved"
	pathRelease    = "/api/unresolved/release"
	pathResolve    = "/api/unresolved/resolve"
)

func listing() request { return get(pathUnresolved).token(operator) }

// naming is the members that name the record of alice's payment.
func naming(r request) document {
	return document{"operation": "ConfirmPayment", "actor": "alice", "idempotencyKey": r.header.Get("Idempotency-Key")}
}

func (d document) to(path string) request { return post(path, d.body()).token(operator).key("") }

func releasing(r request) request { return naming(r).to(pathRelease) }

// charged says that the provider took the order's money, notCharged that it took none.
func charged(r request) document {
	return naming(r).with("outcome", "charged").with("chargeId", "ch_seen").with("note", "rang them up")
}

func notCharged(r request) document {
	return naming(r).with("outcome", "not_charged").with("note", "rang them up")
}

// leave is an order and its payment, which has ended in an unknown outcome.
func (e edge) leave(t *testing.T, call storetest.Call) (order string, paying request) {
	t.Helper()
	order = e.place(t)
	paying = confirming(order)
	e.provider.Next(call)
	e.send(t, paying).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	return order, paying
}

// hold sends a payment that stays at the provider until the release, and ages its lease by so much.
func (e edge) hold(t *testing.T, aged time.Duration) (paying request, release func() answer) {
	t.Helper()
	held, call := storetest.Holding(storetest.Approving)
	e.provider.Next(call)
	paying = confirming(e.place(t))
	ended := make(chan answer, 1)
	go func() {
		a, err := e.try(context.WithoutCancel(t.Context()), paying)
		assert.NoError(t, err)
		ended <- a
	}()
	<-held.Reached
	if aged > 0 {
		require.NoError(t, storetest.Age(t.Context(), e.work, scopeOf(paying), aged))
	}
	return paying, func() answer {
		held.Release()
		return <-ended
	}
}

func scopeOf(r request) idempotency.Scope {
	return idempotency.Scope{
		Operation: checkout.OpConfirmPayment, Actor: "alice", Key: idempotency.Key(r.header.Get("Idempotency-Key")),
	}
}

// record is what the store has of a payment's request.
func (e edge) record(t *testing.T, r request) idempotency.Record {
	t.Helper()
	stands, err := storetest.RecordIn(t.Context(), e.work, scopeOf(r))
	require.NoError(t, err)
	return stands
}

// unresolved are the keys that are listed, in their order.
func (e edge) unresolved(t *testing.T) []string {
	t.Helper()
	var list struct {
		Records []struct{ IdempotencyKey string }
	}
	require.NoError(t, json.Unmarshal([]byte(e.send(t, listing()).is(t, http.StatusOK).body), &list))
	keys := []string{}
	for _, r := range list.Records {
		keys = append(keys, r.IdempotencyKey)
	}
	return keys
}

// again is another instance of the service over the same store and provider, and its use cases.
func (e edge) again(t *testing.T, settings ...setting) (there edge, till *checkout.Till) {
	t.Helper()
	provider := e.provider
	there = open(t, e.work, append([]setting{func(c *httpapi.Config) {
		c.Till.Gateway, till = provider, c.Till
	}}, settings...)...)
	there.provider = provider
	return there, till
}

// recovers has the recovery make a round, an hour of backoff between tries.
func (e edge) recovers(t *testing.T) (tried []idempotent.Tried) {
	t.Helper()
	_, till := e.again(t)
	tried, err := idempotent.NewRecovery(e.work, time.Hour, map[idempotency.Operation]idempotent.Resume{
		checkout.OpConfirmPayment: till.Resume,
	}).Round(t.Context(), 100)
	require.NoError(t, err)
	return tried
}

// speaking are requests of an operator's that are right, over unresolved records.
func speaking(t *testing.T, e edge) map[string]request {
	t.Helper()
	_, one := e.leave(t, storetest.Unreachable)
	_, two := e.leave(t, storetest.Unreachable)
	return map[string]request{pathRelease: releasing(one), pathResolve: charged(two).to(pathResolve)}
}

// operatorFaults are in the order of checks; what is right by itself stands in none of them.
var operatorFaults = []wrong{
	{"0", "another host", 403, "forbidden", func(r *request) { r.host = "shop.example" }},
	{"1", "no such route", 404, "not_found", func(r *request) { r.path += "/more" }},
	{"1", "no such method", 405, "method_not_allowed", func(r *request) { r.method = http.MethodPut }},
	{"2", "no token", 401, "unauthenticated", drop("Authorization")},
	{"2", "a bad token", 401, "unauthenticated", set("Authorization", "Bearer operator")},
	{"3", "a customer's token", 403, "forbidden", set("Authorization", "Bearer demo-alice")},
	{"3", "a token for a company", 403, "forbidden", set("Authorization", "Bearer demo-alice@shop")},
	{"4", "a query", 400, "invalid_request", func(r *request) { r.path += "?force=1" }},
	{"6", "another content type", 415, "unsupported_media_type", set("Content-Type", "text/plain")},
	{"6", "no content type", 415, "unsupported_media_type", drop("Content-Type")},
	{"6", "a content encoding", 415, "unsupported_media_type", set("Content-Encoding", "gzip")},
	{"7", "too large a body", 413, "payload_too_large", func(r *request) { r.body += strings.Repeat(" ", 64<<10) }},
	{"8", "no JSON", 400, "invalid_request", func(r *request) { r.body = "x" + r.body }},
	{"8", "an unknown member", 400, "invalid_request", func(r *request) { r.body = `{"force":true,` + r.body[1:] }},
	{"12", "no such record", 404, "not_found", func(r *request) {
		r.body = strings.Replace(r.body, `"alice"`, `"nobody"`, 1)
	}},
}

func TestAnOperatorsWordIsCheckedInTheOrderOfTheContract(t *testing.T) {
	e := onMemory(t)
	for path, right := range speaking(t, e) {
		for i, first := range operatorFaults {
			t.Run(path+": "+first.name, func(t *testing.T) {
				r := right
				r.header = right.header.Clone()
				first.spoil(&r)
				a := e.send(t, r).isProblem(t, first.status, first.code)
				assertGeneral(t, a)
				assert.Equal(t, first.status == 401, a.header.Get("WWW-Authenticate") != "")
			})
			for _, second := range operatorFaults[i+1:] {
				if first.check == second.check || first.name == "no such route" && second.check == "4" {
					continue
				}
				t.Run(path+": "+first.name+" and "+second.name, func(t *testing.T) {
					r := right
					r.header = right.header.Clone()
					second.spoil(&r)
					first.spoil(&r)
					e.send(t, r).isProblem(t, first.status, first.code)
				})
			}
		}
		e.send(t, right).is(t, http.StatusOK)
	}
	assert.Len(t, e.audited(t), 3, "released, resolved and that one's takeover: what is refused leaves nothing")
}

func TestWhoMayListUnresolvedRecordsAndHow(t *testing.T) {
	e := onMemory(t)
	e.send(t, listing().with("Authorization", "")).isProblem(t, http.StatusUnauthorized, "unauthenticated")
	e.send(t, listing().token("demo-alice")).isProblem(t, http.StatusForbidden, "forbidden")
	e.send(t, listing().token("demo-alice").to(pathUnresolved+"?limit=1")).isProblem(t, 403, "forbidden")
	for _, query := range []string{"?limit=1", "?after=x", "?x", "?="} {
		e.send(t, listing().to(pathUnresolved+query)).isProblem(t, http.StatusBadRequest, "invalid_request")
	}
	assertGeneral(t, e.send(t, listing()).is(t, http.StatusOK))
	for path, allow := range map[string]string{pathUnresolved: "GET", pathRelease: "POST", pathResolve: "POST"} {
		for _, method := range []string{http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			r := listing().to(path)
			r.method = method
			a := e.send(t, r)
			assert.Equal(t, http.StatusMethodNotAllowed, a.status, "%s %s", method, path)
			assert.Equal(t, allow, a.header.Get("Allow"), path)
		}
		e.send(t, listing().to(path+"/")).isProblem(t, http.StatusNotFound, "not_found")
	}
}

// both is an authenticator for a token that is a customer's and an operator's at once.
type both struct{}

func (both) Authenticate(context.Context, string) (httpapi.Caller, error) {
	return httpapi.Caller{Actor: "alice", Customer: true, Operator: true}, nil
}

func TestWhoHasBothRolesMayDoBoth(t *testing.T) {
	e := onMemory(t, func(c *httpapi.Config) { c.Auth = both{} })
	_, paying := e.leave(t, storetest.Unreachable)
	assert.Len(t, e.unresolved(t), 1)
	e.send(t, releasing(paying)).is(t, http.StatusOK)
	e.send(t, charged(paying).to(pathResolve)).is(t, http.StatusOK)
	e.send(t, paying).is(t, http.StatusOK)
}

func TestReleaseAndResolveNeedNoIdempotencyKeyAndIgnoreOne(t *testing.T) {
	e := onMemory(t)
	for _, right := range speaking(t, e) {
		for _, key := range []string{"a b", `""`, "k", strings.Repeat("k", 300)} {
			missing := e.send(t, right.saying(strings.Replace(right.body, `"alice"`, `"nobody"`, 1)).key(key))
			missing.isProblem(t, http.StatusNotFound, "not_found")
			assert.Empty(t, missing.header.Get("Idempotency-Key"))
		}
		done := e.send(t, right.key("k")).is(t, http.StatusOK)
		assert.Empty(t, done.header.Get("Idempotency-Key"))
		assert.Empty(t, done.header.Get("Idempotent-Replayed"))
	}
}

func TestTheMembersOfAnOperatorsWord(t *testing.T) {
	e := onMemory(t)
	_, paying := e.leave(t, storetest.Unreachable)
	release, yes, no := naming(paying), charged(paying), notCharged(paying)
	long := strings.Repeat("茶", 257)
	for _, c := range []struct {
		name    string
		request request
		pointer string
	}{
		{"an empty object", document{}.to(pathRelease), "/operation"},
		{"no operation", release.without("operation").to(pathRelease), "/operation"},
		{"no actor", release.without("actor").to(pathRelease), "/actor"},
		{"no key", release.without("idempotencyKey").to(pathRelease), "/idempotencyKey"},
		{"an actor that is null", release.with("actor", nil).to(pathRelease), "/actor"},
		{"an empty actor", release.with("actor", "").to(pathRelease), "/actor"},
		{"a key that is a number", release.with("idempotencyKey", 7).to(pathRelease), "/idempotencyKey"},
		{"a note on a release", release.with("note", "x").to(pathRelease), "/note"},
		{"an outcome on a release", release.with("outcome", "charged").to(pathRelease), "/outcome"},
		{"no operation", yes.without("operation").to(pathResolve), "/operation"},
		{"no actor", yes.without("actor").to(pathResolve), "/actor"},
		{"no key", yes.without("idempotencyKey").to(pathResolve), "/idempotencyKey"},
		{"no outcome", yes.without("outcome").to(pathResolve), "/outcome"},
		{"an outcome that is null", yes.with("outcome", nil).to(pathResolve), "/outcome"},
		{"another outcome", yes.with("outcome", "unknown").to(pathResolve), "/outcome"},
		{"an outcome in capitals", yes.with("outcome", "CHARGED").to(pathResolve), "/outcome"},
		{"an empty outcome", yes.with("outcome", "").to(pathResolve), "/outcome"},
		{"charged without a charge", yes.without("chargeId").to(pathResolve), "/chargeId"},
		{"charged with null as a charge", yes.with("chargeId", nil).to(pathResolve), "/chargeId"},
		{"an empty charge", yes.with("chargeId", "").to(pathResolve), "/chargeId"},
		{"a charge that is a number", yes.with("chargeId", 1).to(pathResolve), "/chargeId"},
		{"a charge of 257 characters", yes.with("chargeId", long).to(pathResolve), "/chargeId"},
		{"a control character in a charge", yes.with("chargeId", "ch\n1").to(pathResolve), "/chargeId"},
		{"not charged with a charge", no.with("chargeId", "ch_1").to(pathResolve), "/chargeId"},
		{"no note", yes.without("note").to(pathResolve), "/note"},
		{"no note", no.without("note").to(pathResolve), "/note"},
		{"a note that is null", no.with("note", nil).to(pathResolve), "/note"},
		{"an empty note", no.with("note", "").to(pathResolve), "/note"},
		{"a note of 257 characters", no.with("note", long).to(pathResolve), "/note"},
		{"an amount", yes.with("amount", 1000).to(pathResolve), "/amount"},
		{"an operator", yes.with("by", "olga").to(pathResolve), "/by"},
	} {
		t.Run(c.request.path+": "+c.name, func(t *testing.T) {
			a := e.send(t, c.request).isProblem(t, http.StatusBadRequest, "invalid_request")
			assert.Equal(t, c.pointer, a.member(t, "errors/0/pointer"))
		})
	}
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, strings.Split(paying.path, "/")[3]))
	accepted := no.with("chargeId", nil).with("note", strings.Repeat("茶", 256))
	e.send(t, accepted.to(pathResolve)).is(t, http.StatusOK)
}

// Several things that are wrong are told at once.
func TestAllMissingMembersAreNamed(t *testing.T) {
	e := onMemory(t)
	a := e.send(t, document{}.to(pathResolve)).isProblem(t, http.StatusBadRequest, "invalid_request")
	for i, pointer := range []string{"/operation", "/actor", "/idempotencyKey", "/outcome", "/note"} {
		assert.Equal(t, pointer, a.member(t, "errors/"+itoa(i)+"/pointer"))
	}
}

// members are the names of an object's members.
func members(t *testing.T, text string) []string {
	t.Helper()
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &object))
	names := []string{}
	for name := range maps.Keys(object) {
		names = append(names, name)
	}
	return names
}

// stalled is a store whose commits give no answer until the request's time is over.
type stalled struct{ port.UnitOfWork }

func (stalled) Do(context.Context, port.Wait, func(port.Tx) error) error {
	return fmt.Errorf("%w: %w", port.ErrCommitUnknown, context.DeadlineExceeded)
}

// However a commit's answer was lost, nobody is told that nothing was done.
func TestAReleaseWhoseCommitStallsIsAnUnknownOutcome(t *testing.T) {
	e := open(t, stalled{inMemory(t)})
	e.send(t, post("/api/unresolved/release", `{"operation":"ConfirmPayment","actor":"alice","idempotencyKey":"k"}`).
		token("demo-operator")).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
}
