package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

var resolveChecks = []check{
	{"what a person says was charged pays the order", chargedPaysOrder},
	{"what a person says was not charged is a decline, and the order is paid with a new key", notChargedIsDecline},
	{"what a person says was not charged lets the order be cancelled", notChargedCanBeCancelled},
	{"a resolution answers as the shopper's look-up does", resolvedAsLookedUp},
	{"a resolution is audited with outcome, operator and note", resolutionIsAudited},
	{"a repeated resolution finds nothing to resolve, and the look-up tells why", resolvedOnce},
	{"not charged is refused while the provider's list shows the charge", chargeIsFound},
	{"only this attempt's line of the list counts", otherLinesDoNotCount},
	{"a declined line of the list is no charge", declinedLineIsNoCharge},
	{"not charged needs the provider's list, charged does not", listIsNeeded},
	{"C12: after an amount conflict the operator refunds, and says that nothing was charged", conflictIsResolved},
	{"past the provider's memory a person ends what its list does not show", forgottenIsResolved},
	{"past the provider's memory what its list shows cannot be denied", forgottenIsFound},
	{"an operation that is no payment is not resolved", onlyPaymentsAreResolved},
	{"a resolution that cannot be audited changes nothing", resolutionNeedsAudit},
	{"a late holder learns what a person has said", lateHolderLearns},
	{"a charge that comes after a person's word is found by the next key, and is the only one", lateChargeIsFound},
	{"a charge that another order has already is refused, and the payment can still be resolved", chargeOfAnotherOrder},
	{"an order that a hand has cancelled cannot be said to be charged, and not charged ends it as it is", cancelledByHand},
	{"an order that was paid meanwhile stays paid, whatever a person says", paidMeanwhile},
}

// resolves says it and expects to be believed.
func (e edge) resolves(t *testing.T, d document) answer {
	t.Helper()
	return e.send(t, d.to(pathResolve)).is(t, http.StatusOK)
}

func chargedPaysOrder(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	found := e.resolves(t, charged(paying))
	assert.Equal(t, "SUCCEEDED", found.member(t, "status"))
	assert.Equal(t, "PAID", found.member(t, "response/status"))
	assert.InDelta(t, 1000, found.member(t, "response/amount"), 0, "charged says that it was the order's money")
	assert.Equal(t, "PAID", e.statusOf(t, order))
	assert.Equal(t, 1, e.provider.Calls(), "nobody asked the provider again")
	assert.Zero(t, e.provider.Charges())

	replay := e.send(t, paying).is(t, http.StatusOK)
	assert.Equal(t, "true", replay.header.Get("Idempotent-Replayed"))
	assert.Contains(t, found.body, `"response":`+replay.body+`}`)
	e.send(t, paying).isReplayOf(t, replay)
	assert.Equal(t, replay.body, e.send(t, confirming(order)).is(t, http.StatusOK).body, "under a new key too")
	assert.Equal(t, 1, e.provider.Calls())
	assert.Empty(t, e.unresolved(t))
}

func notChargedIsDecline(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	found := e.resolves(t, notCharged(paying))
	assert.Equal(t, "FAILED", found.member(t, "status"))
	assert.Equal(t, "payment_declined", found.member(t, "problem/code"))
	assert.Equal(t, "resolved_not_charged", found.member(t, "problem/declineCode"))
	assert.Equal(t, "PLACED", e.statusOf(t, order))

	replay := e.send(t, paying).isProblem(t, http.StatusPaymentRequired, "payment_declined")
	assert.Equal(t, "true", replay.header.Get("Idempotent-Replayed"))
	assert.Equal(t, "new-key", replay.member(t, "retry"))
	assert.Contains(t, found.body, `"problem":`+replay.body+`}`)
	e.send(t, confirming(order)).is(t, http.StatusOK)
	assert.Equal(t, "PAID", e.statusOf(t, order))
	assert.Equal(t, 1, e.provider.Charges())
	assert.Equal(t, 1, e.provider.ChargesUnder(order+":2"), "an operator's no starts the next attempt, as a decline does")
	e.send(t, paying).isReplayOf(t, replay)
}

func notChargedCanBeCancelled(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	e.send(t, cancelling(order)).isProblem(t, http.StatusConflict, "payment_in_progress")
	e.resolves(t, notCharged(paying))
	e.send(t, cancelling(order)).is(t, http.StatusOK)
}

func resolvedAsLookedUp(t *testing.T, e edge) {
	for _, word := range []func(request) document{charged, notCharged} {
		_, paying := e.leave(t, storetest.Unreachable)
		d := word(paying)
		if d["outcome"] == "charged" {
			d = d.with("chargeId", freshKey())
		}
		resolved := e.resolves(t, d)
		assertGeneral(t, resolved)
		assert.Empty(t, resolved.header.Get("Retry-After"))
		found := e.send(t, outcomeOf(paying, "ConfirmPayment")).is(t, http.StatusOK)
		assert.Equal(t, found.body, resolved.body)
		assert.InDelta(t, 2, resolved.member(t, "executions"), 0)
	}
}

func resolutionIsAudited(t *testing.T, e edge) {
	_, yes := e.leave(t, storetest.Unreachable)
	_, no := e.leave(t, storetest.Unreachable)
	e.resolves(t, charged(yes).with("note", "電話で確認 <ok>"))
	e.resolves(t, notCharged(no))
	entries := e.audit(t, "?kind=resolved").Entries
	require.Len(t, entries, 2)
	scopeIn(t, entries[0], "ConfirmPayment", "alice", yes.header.Get("Idempotency-Key"))
	scopeIn(t, entries[1], "ConfirmPayment", "alice", no.header.Get("Idempotency-Key"))
	for _, part := range []string{"ch_seen", "operator", "電話で確認 <ok>"} {
		assert.Contains(t, entries[0].Detail, part)
	}
	for _, part := range []string{"not charged", "operator", "rang them up"} {
		assert.Contains(t, entries[1].Detail, part)
	}
}

func resolvedOnce(t *testing.T, e edge) {
	_, paying := e.leave(t, storetest.Unreachable)
	first := e.resolves(t, charged(paying))
	for _, d := range []document{charged(paying), notCharged(paying), charged(paying).with("chargeId", "ch_other")} {
		a := e.send(t, d.to(pathResolve)).isProblem(t, http.StatusNotFound, "not_found")
		assert.Equal(t, "after-fix", a.member(t, "retry"))
	}
	assert.Equal(t, first.body, e.send(t, outcomeOf(paying, "ConfirmPayment")).body)
	assert.Len(t, e.audit(t, "?kind=resolved").Entries, 1)
}

func chargeIsFound(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Losing(storetest.Approving))
	for range 2 {
		a := e.send(t, notCharged(paying).to(pathResolve)).isProblem(t, http.StatusConflict, "charge_found")
		assert.Equal(t, "after-fix", a.member(t, "retry"))
		assert.Empty(t, a.header.Get("Retry-After"))
	}
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, order))
	assert.Len(t, e.unresolved(t), 1)
	assert.Empty(t, e.audit(t, "?kind=resolved").Entries)
	e.resolves(t, charged(paying))
	assert.Equal(t, "PAID", e.statusOf(t, order))
	assert.Equal(t, 1, e.provider.Charges())
}

func otherLinesDoNotCount(t *testing.T, e edge) {
	_, other := e.leave(t, storetest.Losing(storetest.Approving))
	order := e.place(t)
	e.provider.Next(storetest.Declining("card_declined"), storetest.Unreachable)
	e.send(t, confirming(order)).isProblem(t, http.StatusPaymentRequired, "payment_declined") // the first attempt
	paying := confirming(order)
	e.send(t, paying).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	e.resolves(t, notCharged(paying))
	assert.Equal(t, "PLACED", e.statusOf(t, order))
	assert.Equal(t, []string{other.header.Get("Idempotency-Key")}, e.unresolved(t))
}

func declinedLineIsNoCharge(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Losing(storetest.Declining("card_declined")))
	found := e.resolves(t, notCharged(paying))
	assert.Equal(t, "resolved_not_charged", found.member(t, "problem/declineCode"))
	assert.Equal(t, "PLACED", e.statusOf(t, order))
}

func listIsNeeded(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	_, other := e.leave(t, storetest.Unreachable)
	e.provider.HideList(errors.New("no list today"))
	a := e.send(t, notCharged(paying).to(pathResolve)).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	assert.Equal(t, "same-key", a.member(t, "retry"))
	assertWaits(t, a)
	assert.NotContains(t, a.body, "today", "what the provider says is the log's")
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, order))
	assert.Len(t, e.unresolved(t), 2)
	assert.Empty(t, e.audit(t, "?kind=resolved").Entries)
	e.resolves(t, charged(other))

	e.provider.HideList(nil)
	e.resolves(t, notCharged(paying))
	assert.Equal(t, "PLACED", e.statusOf(t, order))
}

func conflictIsResolved(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Taking(money.Of(999, money.JPY)))
	require.Empty(t, e.recovers(t))
	assert.Len(t, e.unresolved(t), 1)
	found := e.resolves(t, notCharged(paying))
	assert.Equal(t, "resolved_not_charged", found.member(t, "problem/declineCode"))
	assert.Equal(t, "PLACED", e.statusOf(t, order))
	audited := e.audited(t)
	assert.Len(t, ofKind(audited, "amount_conflict"), 1)
	assert.Len(t, ofKind(audited, "resolved"), 1)
	e.send(t, confirming(order)).is(t, http.StatusOK)
	assert.Equal(t, 1, e.provider.ChargesUnder(order+":2"))
}

// forgetful is an instance that no longer trusts the provider to know what was sent before.
func (e edge) forgetful(t *testing.T) edge {
	t.Helper()
	there, _ := e.again(t, func(c *httpapi.Config) { c.Till.KeyRetention = time.Nanosecond })
	return there
}

func forgottenIsResolved(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	there := e.forgetful(t)
	for range 3 {
		there.send(t, paying).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	}
	require.Equal(t, 1, e.provider.Calls(), "it is looked up and never sent")
	there.resolves(t, notCharged(paying))
	assert.Equal(t, "PLACED", e.statusOf(t, order))
	there.send(t, paying).isProblem(t, http.StatusPaymentRequired, "payment_declined")
	there.send(t, confirming(order)).is(t, http.StatusOK)
	assert.Equal(t, 1, e.provider.Charges())
	assert.Equal(t, "PAID", e.statusOf(t, order))
}

func forgottenIsFound(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Losing(storetest.Approving))
	e.provider.ForgetKeys()
	there := e.forgetful(t)
	there.send(t, notCharged(paying).to(pathResolve)).isProblem(t, http.StatusConflict, "charge_found")
	there.send(t, paying).is(t, http.StatusOK)
	assert.Equal(t, "PAID", e.statusOf(t, order))
	assert.Equal(t, 1, e.provider.Charges())
}

func onlyPaymentsAreResolved(t *testing.T, e edge) {
	e.leaveRaw(t, "k")
	d := document{
		"operation": "Reindex", "actor": "alice", "idempotencyKey": "k", "outcome": "not_charged", "note": "n",
	}
	e.send(t, d.to(pathResolve)).isProblem(t, http.StatusNotFound, "not_found")
	assert.Equal(t, []string{"k"}, e.unresolved(t))
	release := d.without("outcome").without("note")
	e.send(t, release.to(pathRelease)).is(t, http.StatusOK)
}

func resolutionNeedsAudit(t *testing.T, e edge) {
	for _, word := range []func(request) document{charged, notCharged} {
		order, paying := e.leave(t, storetest.Unreachable)
		there := openAuditing(t, speechless{e.work}, e.work, func(c *httpapi.Config) { c.Till.Gateway = e.provider })
		a := there.send(t, word(paying).to(pathResolve))
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		assert.Equal(t, "same-key", a.member(t, "retry"))
		assert.Equal(t, idempotency.InProgress, e.record(t, paying).Status)
		assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, order))
		assert.Empty(t, ofKind(e.audited(t), "resolved"))
		e.resolves(t, word(paying))
		e.forget(t)
	}
}

func lateHolderLearns(t *testing.T, e edge) {
	paying, release := e.hold(t, storetest.Times.Lease+time.Second)
	found := e.resolves(t, charged(paying))
	late := release().is(t, http.StatusOK)
	assert.Equal(t, "true", late.header.Get("Idempotent-Replayed"))
	assert.Contains(t, found.body, `"response":`+late.body+`}`)
	audited := e.audited(t)
	assert.Len(t, ofKind(audited, "lease_lost"), 1)
	assert.Len(t, ofKind(audited, "resolved"), 1)
	assert.Equal(t, 1, e.provider.Calls())
}

func lateChargeIsFound(t *testing.T, e edge) {
	paying, release := e.hold(t, storetest.Times.Lease+time.Second)
	e.resolves(t, notCharged(paying))
	late := release().isProblem(t, http.StatusPaymentRequired, "payment_declined")
	assert.Equal(t, "resolved_not_charged", late.member(t, "declineCode"), "the holder has taken the money, and has lost its lease")
	require.Equal(t, 1, e.provider.Charges())

	order := strings.Split(paying.path, "/")[3]
	again := e.send(t, confirming(order)).is(t, http.StatusOK)
	assert.Equal(t, "PAID", again.member(t, "status"))
	assert.Equal(t, 1, e.provider.Charges())
	assert.Equal(t, 1, e.provider.Calls())
}

func chargeOfAnotherOrder(t *testing.T, e edge) {
	_, first := e.leave(t, storetest.Unreachable)
	e.resolves(t, charged(first))
	order, second := e.leave(t, storetest.Unreachable)
	a := e.send(t, charged(second).to(pathResolve)).isProblem(t, http.StatusBadRequest, "invalid_request")
	assert.Equal(t, "/chargeId", a.member(t, "errors/0/pointer"))
	assert.Equal(t, "after-fix", a.member(t, "retry"))
	assert.Equal(t, "PAYMENT_PENDING", e.statusOf(t, order))
	assert.Equal(t, []string{second.header.Get("Idempotency-Key")}, e.unresolved(t))
	assert.Len(t, e.audit(t, "?kind=resolved").Entries, 1)
	e.resolves(t, charged(second).with("chargeId", "ch_right"))
	assert.Equal(t, "PAID", e.statusOf(t, order))
}

func cancelledByHand(t *testing.T, e edge) {
	id, paying := e.leave(t, storetest.Unreachable)
	require.NoError(t, e.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		o, err := tx.Orders().Lock(t.Context(), order.ID(id), "alice")
		if err != nil {
			return err
		}
		state := o.State()
		state.Status, state.PayingKey = order.Cancelled, ""
		return tx.Orders().Save(t.Context(), order.Rehydrate(state))
	}))
	for range 2 {
		a := e.send(t, charged(paying).to(pathResolve)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.Equal(t, "/outcome", a.member(t, "errors/0/pointer"))
		assert.Contains(t, a.member(t, "errors/0/detail"), "CANCELLED")
		assert.Equal(t, "after-fix", a.member(t, "retry"))
	}
	assert.Len(t, e.unresolved(t), 1)
	assert.Empty(t, e.audit(t, "?kind=resolved").Entries)
	found := e.resolves(t, notCharged(paying))
	assert.Equal(t, "invalid_state", found.member(t, "problem/code"))
	e.send(t, paying).isProblem(t, http.StatusConflict, "invalid_state")
	assert.Equal(t, "CANCELLED", e.statusOf(t, id))
}

func paidMeanwhile(t *testing.T, e edge) {
	order, paying := e.leave(t, storetest.Unreachable)
	e.send(t, paying).is(t, http.StatusOK)
	for _, d := range []document{charged(paying), notCharged(paying)} {
		e.send(t, d.to(pathResolve)).isProblem(t, http.StatusNotFound, "not_found")
	}
	assert.Equal(t, "PAID", e.statusOf(t, order))
	assert.Equal(t, 1, strings.Count(e.send(t, get("/api/orders/"+order)).body, "paymentId"))
}
