package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/infrastructure/storetest"
)

var operatorChecks = slices.Concat(unresolvedChecks, resolveChecks)

var unresolvedChecks = []check{
	{"nothing unresolved is an empty list", nothingUnresolved},
	{"an unresolved record is listed with its order, whosever it is", unresolvedIsListed},
	{"a record that names no order is listed without one", unresolvedWithoutOrder},
	{"unresolved records are listed oldest first, five hundred at most", oldestFirst},
	{"a release answers the record as it is listed and decides no money", releaseDecidesNoMoney},
	{"a release may be repeated, and each is audited with its operator", releaseIsRepeated},
	{"a released record is tried at the recovery's next round", releaseForgetsBackoff},
	{"an amount conflict is tried again by the recovery when an operator releases it", releaseForgetsConflict},
	{"only what is unresolved is released", onlyUnresolvedIsReleased},
	{"a record whose holder is alive is not released, and Retry-After tells when to ask", aliveIsNotReleased},
	{"a late holder is fenced off by a release", releaseFencesOff},
	{"a release that cannot be audited changes nothing", releaseNeedsAudit},
}

func nothingUnresolved(t *testing.T, e edge) {
	assert.JSONEq(t, `{"records":[]}`, e.send(t, listing()).is(t, http.StatusOK).body)
	e.send(t, confirming(e.place(t))).is(t, http.StatusOK)
	e.send(t, confirming(e.place(t)).saying(`{"amount":1,"currency":"JPY"}`)).isProblem(t, 422, "amount_mismatch")
	_, release := e.hold(t, 0)
	assert.JSONEq(t, `{"records":[]}`, e.send(t, listing()).body, "neither what is finished nor what runs is unresolved")
	release().is(t, http.StatusOK)
}

func unresolvedIsListed(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	e.provider.Next(storetest.Unreachable)
	e.send(t, paying).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown") // the second execution
	placing := placing().token("demo-bob")
	bobs, isText := e.send(t, placing).is(t, http.StatusCreated).member(t, "orderId").(string)
	require.True(t, isText)
	theirs := confirming(bobs).token("demo-bob")
	e.provider.Next(storetest.Unreachable)
	e.send(t, theirs).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")

	list := e.send(t, listing()).is(t, http.StatusOK)
	assert.Equal(t, "ConfirmPayment", list.member(t, "records/0/operation"))
	assert.Equal(t, "alice", list.member(t, "records/0/actor"))
	assert.Equal(t, paying.header.Get("Idempotency-Key"), list.member(t, "records/0/idempotencyKey"))
	assert.InDelta(t, 2, list.member(t, "records/0/executions"), 0)
	assert.Equal(t, order, list.member(t, "records/0/orderId"))
	found := e.send(t, outcomeOf(paying, "ConfirmPayment")).is(t, http.StatusOK)
	assert.Equal(t, found.member(t, "createdAt"), list.member(t, "records/0/createdAt"))
	ended, err := time.Parse(time.RFC3339, list.member(t, "records/0/leaseExpiredAt").(string))
	require.NoError(t, err)
	assert.True(t, ended.Equal(e.record(t, paying).LeaseEnds))
	assert.Equal(t, "bob", list.member(t, "records/1/actor"))
	assert.Equal(t, bobs, list.member(t, "records/1/orderId"))
	assert.False(t, list.has(t, "records/2"))

	e.send(t, paying).is(t, http.StatusOK)
	assert.Equal(t, []string{theirs.header.Get("Idempotency-Key")}, e.unresolved(t), "what has its outcome is gone")
}

// leaveRaw stores records of a request that names no order, a second apart, the last one first.
func (e edge) leaveRaw(t *testing.T, keys ...string) {
	t.Helper()
	require.NoError(t, e.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		for i, key := range keys {
			held, err := tx.Records().Reserve(t.Context(), idempotency.Reservation{
				Scope:   idempotency.Scope{Operation: "Reindex", Actor: "alice", Key: idempotency.Key(key)},
				Request: idempotency.Request("").With("amount", "1"), Token: idempotency.NewToken(),
			}, time.Minute)
			if err != nil {
				return err
			}
			left := held.Abandoned(tx.Now())
			left.CreatedAt = tx.Now().Add(-time.Duration(i) * time.Second)
			if err := tx.Records().Replace(t.Context(), held, left); err != nil {
				return err
			}
		}
		return nil
	}))
}

func unresolvedWithoutOrder(t *testing.T, e edge) {
	e.leaveRaw(t, "k")
	list := e.send(t, listing()).is(t, http.StatusOK)
	assert.Equal(t, "Reindex", list.member(t, "records/0/operation"))
	assert.False(t, list.has(t, "records/0/orderId"))
}

func oldestFirst(t *testing.T, e edge) {
	var keys []string
	for i := range 501 {
		keys = append(keys, fmt.Sprintf("k%03d", i))
	}
	e.leaveRaw(t, keys...)
	slices.Reverse(keys)
	assert.Equal(t, keys[:500], e.unresolved(t))
}

func releaseDecidesNoMoney(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Losing(storetest.Approving))
	listed := e.send(t, listing()).is(t, http.StatusOK)
	before := e.record(t, paying)
	released := e.send(t, releasing(paying)).is(t, http.StatusOK)
	assert.Equal(t, listed.body, `{"records":[`+released.body+`]}`)
	assert.ElementsMatch(t, []string{
		"operation", "actor", "idempotencyKey", "executions", "createdAt", "leaseExpiredAt", "orderId",
	}, members(t, released.body))

	after := e.record(t, paying)
	assert.NotEqual(t, before.Token, after.Token)
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, order))
	assert.Equal(t, listed.body, e.send(t, listing()).body, "it is still unresolved")
	assert.Equal(t, 1, e.provider.Calls(), "nobody asked the provider")
	assert.Zero(t, e.provider.Lookups())
	e.send(t, paying).is(t, http.StatusOK)
	assert.Equal(t, 1, e.provider.Charges())
}

func releaseIsRepeated(t *testing.T, e edge) {
	_, paying := e.leave(t, storetest.Unreachable)
	first := e.send(t, releasing(paying)).is(t, http.StatusOK)
	again := e.send(t, releasing(paying)).is(t, http.StatusOK)
	assert.Equal(t, first.body, again.body)
	entries := e.audit(t, "?kind=released").Entries
	require.Len(t, entries, 2)
	for _, entry := range entries {
		scopeIn(t, entry, "ConfirmPayment", "alice", paying.header.Get("Idempotency-Key"))
		assert.Contains(t, entry.Detail, "operator")
	}
}

func releaseForgetsBackoff(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	e.provider.Next(storetest.Unreachable)
	require.Len(t, e.recovers(t), 1)
	require.Empty(t, e.recovers(t), "it has an hour of backoff")
	e.send(t, releasing(paying)).is(t, http.StatusOK)
	tried := e.recovers(t)
	require.Len(t, tried, 1)
	require.NoError(t, tried[0].Err)
	assert.Equal(t, "PAID", e.statusOf(t, order))
	assert.Equal(t, 1, e.provider.Charges())
}

func releaseForgetsConflict(t *testing.T, e edge) {
	_, paying := e.leave(t, storetest.Taking(money.Of(999, money.JPY)))
	require.Empty(t, e.recovers(t), "the recovery leaves it to an operator")
	e.send(t, releasing(paying)).is(t, http.StatusOK)
	assert.Len(t, e.recovers(t), 1)
	assert.Empty(t, e.recovers(t), "the provider still says other money")
}

func onlyUnresolvedIsReleased(t *testing.T, e edge) {
	paid := confirming(e.place(t))
	e.send(t, paid).is(t, http.StatusOK)
	refused := confirming(e.place(t)).saying(`{"amount":1,"currency":"JPY"}`)
	e.send(t, refused).isProblem(t, 422, "amount_mismatch")
	_, left := e.leave(t, storetest.Unreachable)
	name := naming(left)
	for what, d := range map[string]document{
		"a paid one": naming(paid), "a refused one": naming(refused),
		"another actor's": name.with("actor", "bob"), "another key": name.with("idempotencyKey", "none"),
		"a key in other capitals": name.with("idempotencyKey", strings.ToUpper(left.header.Get("Idempotency-Key"))),
		"another operation":       name.with("operation", "CancelOrder"),
		"no operation at all":     name.with("operation", "confirmPayment"),
		"a key that cannot be":    name.with("idempotencyKey", "a b"),
		"a key that is too long":  name.with("idempotencyKey", strings.Repeat("茶", 256)),
		"an actor that cannot be": name.with("actor", "alice|bob"),
	} {
		a := e.send(t, d.to(pathRelease)).isProblem(t, http.StatusNotFound, "not_found")
		assert.Equal(t, "after-fix", a.member(t, "retry"), what)
		e.send(t, d.with("outcome", "not_charged").with("note", "n").to(pathResolve)).isProblem(t, 404, "not_found")
	}
	assert.Empty(t, e.audit(t, "?kind=released").Entries)
	require.NoError(t, storetest.Age(t.Context(), e.work, scopeOf(paid), storetest.Times.Retention+time.Minute))
	e.send(t, releasing(paid)).isProblem(t, http.StatusNotFound, "not_found")
}

func aliveIsNotReleased(t *testing.T, e edge) {
	paying, release := e.hold(t, 0)
	for _, r := range []request{
		releasing(paying), charged(paying).to(pathResolve), notCharged(paying).to(pathResolve),
	} {
		a := e.send(t, r).isProblem(t, http.StatusConflict, "lease_alive")
		assert.Equal(t, "same-key", a.member(t, "retry"))
		assertWaits(t, a)
	}
	release().is(t, http.StatusOK)
	assert.Empty(t, e.audited(t))
	e.send(t, releasing(paying)).isProblem(t, http.StatusNotFound, "not_found")
}

func releaseFencesOff(t *testing.T, e edge) {
	paying, release := e.hold(t, storetest.Times.Lease+time.Second)
	require.Len(t, e.unresolved(t), 1, "it is late, not dead")
	e.send(t, releasing(paying)).is(t, http.StatusOK)
	late := release().is(t, http.StatusOK)
	e.send(t, paying).isReplayOf(t, late)
	assert.Equal(t, 1, e.provider.Charges())
	assert.Equal(t, 2, e.record(t, paying).Executions, "what the first execution brought back was not taken")
	audited := e.audited(t)
	require.Len(t, audited, 3)
	assert.Equal(t, []string{"released", "lease_lost", "takeover"},
		[]string{audited[0].Kind, audited[1].Kind, audited[2].Kind})
}

// speechless is a store whose audit log cannot be written.
type speechless struct{ port.UnitOfWork }

var errSpeechless = errors.New("the audit log is full")

func (s speechless) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	return s.UnitOfWork.Do(ctx, wait, func(tx port.Tx) error { return fn(speechlessTx{tx}) })
}

type speechlessTx struct{ port.Tx }

func (t speechlessTx) Audit() port.AuditLog { return speechlessLog{t.Tx.Audit()} }

type speechlessLog struct{ port.AuditLog }

func (speechlessLog) Append(context.Context, []port.AuditEntry) error {
	return port.ErrUnavailable.Because(errSpeechless)
}

func releaseNeedsAudit(t *testing.T, e edge) {
	_, paying := e.leave(t, storetest.Unreachable)
	before := e.record(t, paying)
	there := openAuditing(t, speechless{e.work}, e.work)
	a := there.send(t, releasing(paying)).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	assertWaits(t, a)
	assert.Equal(t, before, e.record(t, paying))
	assert.Empty(t, e.audited(t))
	e.send(t, releasing(paying)).is(t, http.StatusOK)
}
