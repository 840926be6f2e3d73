package order_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

func TestANewOrderIsWhatWasInTheCart(t *testing.T) {
	lines := []order.Line{
		{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}, {SKU: "bag", Name: "袋", Quantity: 1, UnitPrice: 0},
	}
	cart, err := order.NewCart(money.JPY, lines)
	require.NoError(t, err)

	s := order.Place("alice", cart, placedAt).State()

	assert.Equal(t, order.State{
		ID: s.ID, Customer: "alice", Status: order.Placed, Total: total, Lines: lines, PlacedAt: placedAt,
	}, s)
	id, err := uuid.Parse(string(s.ID))
	require.NoError(t, err)
	assert.EqualValues(t, 7, id.Version())
}

func TestEveryOrderHasAnIDOfItsOwnInTheOrderOfTime(t *testing.T) {
	last := order.NewID()
	for range 1000 {
		next := order.NewID()
		require.Less(t, last, next)
		last = next
	}
}

func TestAPaymentBegins(t *testing.T) {
	o := orderThatIs(t, placed)
	want := o.State()
	attempt, due, err := o.BeginPayment(byKey, later)
	require.NoError(t, err)
	assert.True(t, due)
	assert.Equal(t, payment.Attempt{
		OrderID: string(want.ID), Number: 1, Money: total, Method: "pm_ok", BegunAt: later,
	}, attempt)

	want.Status, want.PayingKey, want.Attempt = order.PaymentPending, "key", attempt
	assert.Equal(t, want, o.State())
}

func TestTheRequestThatPaysFindsItsAttemptAgain(t *testing.T) {
	o := orderThatIs(t, pending)
	attempt := o.State().Attempt
	again := byKey
	again.Method = "pm_other" // under one key the method cannot differ; the attempt's stands
	got, due, err := o.BeginPayment(again, later.Add(time.Hour))
	require.NoError(t, err)
	assert.True(t, due)
	assert.Equal(t, attempt, got, "begun when it was begun")
}

func TestAPaymentIsConfirmed(t *testing.T) {
	o := orderThatIs(t, pending)
	want := o.State()
	charge := payment.Charge{ID: "ch_9", Money: total, ChargedAt: placedAt}
	require.NoError(t, o.ConfirmPayment(1, charge, later))

	s := o.State()
	want.Status, want.PayingKey = order.Paid, ""
	want.ChargeID, want.PaidAt, want.PaymentID = "ch_9", later, s.PaymentID
	assert.Equal(t, want, s, "paid when it was recorded, not when it was charged")
	id, err := uuid.Parse(s.PaymentID)
	require.NoError(t, err)
	assert.EqualValues(t, 7, id.Version())
	assert.NotEqual(t, string(s.ID), s.PaymentID)
}

// No verb changes a total, so it was a hand in the store. What was charged is not what the order is over then.
func TestAChargeDoesNotPayAnOrderWhoseTotalAHandHasChanged(t *testing.T) {
	for name, s := range map[string]state{"while it is paid": pending, "and it is not paid": placed} {
		o := orderThatIs(t, s)
		assert.False(t, o.TotalChanged(), name)
		changed := o.State()
		changed.Total = otherMoney
		assert.Equal(t, s == pending, order.Rehydrate(changed).TotalChanged(), name)
	}
	changed := orderThatIs(t, pending).State()
	changed.Total = otherMoney
	o := order.Rehydrate(changed)
	err := o.ConfirmPayment(1, chargeOf(total), later)
	require.ErrorIs(t, err, order.ErrTotalChanged)
	require.ErrorContains(t, err, "it is over 2000 JPY, and charge ch_1 took 1000 JPY")
	require.ErrorIs(t, o.ConfirmPayment(1, chargeOf(otherMoney), later), payment.ErrAmountConflict)
	assert.Equal(t, changed, o.State())
	require.NoError(t, o.DeclinePayment(1, theirNo), "what took no money ends it")
}

func TestADeclineLeavesTheOrderOpenForTheNextAttempt(t *testing.T) {
	o := orderThatIs(t, pending)
	want := o.State()
	require.NoError(t, o.DeclinePayment(1, theirNo))
	want.Status, want.PayingKey = order.Placed, ""
	assert.Equal(t, want, o.State(), "the last attempt is remembered: the next number follows from it")

	attempt, due, err := o.BeginPayment(byOtherKey, later)
	require.NoError(t, err)
	assert.True(t, due)
	assert.Equal(t, 2, attempt.Number)
	assert.Equal(t, later, attempt.BegunAt)
	assert.Equal(t, "other", o.State().PayingKey)
	require.ErrorIs(t, o.DeclinePayment(1, theirNo), order.ErrOtherAttempt)
	require.ErrorIs(t, o.ConfirmPayment(1, chargeOf(total), later), order.ErrOtherAttempt)
	require.NoError(t, o.ConfirmPayment(2, chargeOf(total), later))
}

// The provider has not heard of a person's word: its charge may still come.
func TestTheAttemptsAfterOneThatWasWrittenOffKnowOfIt(t *testing.T) {
	o := orderThatIs(t, pending)
	require.NoError(t, o.DeclinePayment(1, payment.Decline{Code: "said", WriteOff: true}))
	second, _, err := o.BeginPayment(byKey, later)
	require.NoError(t, err)
	assert.Equal(t, 1, second.WrittenOff)
	require.NoError(t, o.DeclinePayment(2, theirNo))

	third, _, err := o.BeginPayment(byKey, later)
	require.NoError(t, err)
	assert.Equal(t, 1, third.WrittenOff, "the provider's own no settles the second attempt alone")
	require.NoError(t, o.DeclinePayment(3, payment.Decline{Code: "said", WriteOff: true}))

	fourth, _, err := o.BeginPayment(byKey, later)
	require.NoError(t, err)
	assert.Equal(t, 3, fourth.WrittenOff)
}

// What a hand has made PLACED while it was being paid may be charged yet; of every other order there is nothing to say.
func TestAnAttemptThatAHandHasTakenBackIsWrittenOff(t *testing.T) {
	s := orderThatIs(t, pending).State()
	s.Status, s.PayingKey = order.Placed, ""
	o := order.Rehydrate(s)
	assert.True(t, o.WriteOff())
	assert.False(t, o.WriteOff(), "it is")
	second, _, err := o.BeginPayment(byKey, later)
	require.NoError(t, err)
	assert.Equal(t, 1, second.WrittenOff)

	for _, s := range []state{placed, pending, paid, cancelled} {
		o := orderThatIs(t, s)
		before := o.State()
		assert.False(t, o.WriteOff(), s)
		assert.Equal(t, before, o.State(), s)
	}
}

func TestAnOrderIsCancelledOnce(t *testing.T) {
	o := orderThatIs(t, placed)
	want := o.State()
	changed, err := o.Cancel("no longer wanted", later)
	require.NoError(t, err)
	assert.True(t, changed)
	want.Status, want.CancelledAt, want.CancelReason = order.Cancelled, later, "no longer wanted"
	assert.Equal(t, want, o.State())

	changed, err = o.Cancel("another reason", later.Add(time.Hour))
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Equal(t, want, o.State())
}

func TestAnOrderComesBackAsItWasStored(t *testing.T) {
	for _, s := range states {
		stored := orderThatIs(t, s).State()
		stored.Version = 7
		assert.Equal(t, stored, order.Rehydrate(stored).State(), s)
	}
}

func TestWhatWasStoredIsNotJudgedAgain(t *testing.T) {
	// A limit that was lowered, a currency that was withdrawn: the order must still come back.
	old := order.State{ID: "0", Status: "REFUNDED", Lines: []order.Line{{Quantity: 100000, UnitPrice: -1}}}
	assert.Equal(t, old, order.Rehydrate(old).State())
}

func TestNobodyChangesAnOrderFromOutside(t *testing.T) {
	lines := []order.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}}
	cart, err := order.NewCart(money.JPY, lines)
	require.NoError(t, err)
	o := order.Place("alice", cart, placedAt)
	want := o.State()

	lines[0].SKU = "what was put into the cart"
	cart.Lines()[0].SKU = "what the cart shows"
	shown := o.State()
	shown.Lines[0].SKU, shown.Status = "what the order shows", order.Paid
	assert.Equal(t, want, o.State())
	assert.Equal(t, want.Lines, cart.Lines())

	stored := o.State()
	back := order.Rehydrate(stored)
	stored.Lines[0].SKU = "what the order came back from"
	assert.Equal(t, want, back.State())
}

func TestOnlyACanonicalUUIDIsAnID(t *testing.T) {
	const canonical = "0193a5d0-1234-7abc-8def-0123456789ab"
	id, err := order.ParseID(canonical)
	require.NoError(t, err)
	assert.Equal(t, order.ID(canonical), id)

	for name, text := range map[string]string{
		"empty":               "",
		"in upper case":       strings.ToUpper(canonical),
		"in mixed case":       "0193A5d0" + canonical[8:],
		"in braces":           "{" + canonical + "}",
		"as a URN":            "urn:uuid:" + canonical,
		"without hyphens":     strings.ReplaceAll(canonical, "-", ""),
		"too short":           canonical[:35],
		"too long":            canonical + "0",
		"with white space":    " " + canonical,
		"with a line's end":   canonical + "\n",
		"with other letters":  "g" + canonical[1:],
		"with hyphens astray": "0193a5d01-234-7abc-8def-0123456789ab",
		"garbage":             "o-none",
		"a path":              "../" + canonical,
		"not ASCII":           "注文",
		"with a NUL":          "\x00" + canonical[1:],
	} {
		_, err := order.ParseID(text)
		assert.ErrorIs(t, err, order.ErrNotFound, name)
	}
}

func TestOpenIsWhatTheKeyCouldChange(t *testing.T) {
	for s, want := range map[state]map[string]bool{
		placed:      {"key": true, "other": true, "": true},
		pending:     {"key": true, "other": false, "": false},
		placedAgain: {"key": true, "other": true, "": true},
		paid:        {"key": false, "other": false, "": false},
		cancelled:   {"key": false, "other": false, "": false},
	} {
		for key, open := range want {
			assert.Equal(t, open, orderThatIs(t, s).State().Open(key), "%s, key %q", s, key)
		}
	}
}
