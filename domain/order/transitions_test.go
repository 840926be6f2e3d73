package order_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/fault"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

var (
	placedAt = time.Date(2026, 11, 30, 1, 2, 3, 123456000, time.UTC)
	later    = placedAt.Add(time.Hour)

	total      = money.Of(1000, money.JPY)
	otherMoney = money.Of(2000, money.JPY)

	byKey      = order.PaymentRequest{Key: "key", Money: total, Method: "pm_ok"}
	byOtherKey = order.PaymentRequest{Key: "other", Money: total, Method: "pm_ok"}
)

// state is a way to bring a new order where a test begins.
type state string

const (
	placed      state = "placed"
	pending     state = "pending under the key"
	placedAgain state = "placed again after a decline"
	paid        state = "paid"
	cancelled   state = "cancelled"
)

var states = []state{placed, pending, placedAgain, paid, cancelled}

func orderThatIs(t require.TestingT, s state) *order.Order {
	cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}})
	require.NoError(t, err)
	o := order.Place("alice", cart, placedAt)
	begin := func() {
		_, due, err := o.BeginPayment(byKey, placedAt.Add(time.Minute))
		require.NoError(t, err)
		require.True(t, due)
	}
	switch s {
	case placed:
	case pending:
		begin()
	case placedAgain:
		begin()
		require.NoError(t, o.DeclinePayment(1, theirNo))
	case paid:
		begin()
		require.NoError(t, o.ConfirmPayment(1, chargeOf(total), placedAt.Add(2*time.Minute)))
	case cancelled:
		_, err := o.Cancel("first reason", placedAt.Add(time.Minute))
		require.NoError(t, err)
	}
	return o
}

var theirNo = payment.Decline{Code: "card_declined"}

func chargeOf(m money.Money) payment.Charge {
	return payment.Charge{ID: "ch_1", Money: m, ChargedAt: placedAt}
}

// verb is one thing that may happen to an order. It tells what the verb tells beside its error: whether a payment is
// due, or whether the order has changed.
type verb struct {
	name string
	do   func(o *order.Order) (bool, error)
}

var verbs = []verb{
	{"begin, same key", begin(byKey)},
	{"begin, other key", begin(byOtherKey)},
	{"begin, same key, other money", begin(order.PaymentRequest{Key: "key", Money: otherMoney, Method: "pm_ok"})},
	{"begin, other key, other money", begin(order.PaymentRequest{Key: "other", Money: otherMoney, Method: "pm_ok"})},
	{"begin, same key, resumed", begin(resumed)},
	{"confirm this attempt", func(o *order.Order) (bool, error) {
		return true, o.ConfirmPayment(o.State().Attempt.Number, chargeOf(total), later)
	}},
	{"confirm other attempt", func(o *order.Order) (bool, error) {
		return true, o.ConfirmPayment(o.State().Attempt.Number+1, chargeOf(total), later)
	}},
	{"confirm this attempt, other money", func(o *order.Order) (bool, error) {
		return true, o.ConfirmPayment(o.State().Attempt.Number, chargeOf(otherMoney), later)
	}},
	{"decline this attempt", func(o *order.Order) (bool, error) {
		return true, o.DeclinePayment(o.State().Attempt.Number, theirNo)
	}},
	{"decline other attempt", func(o *order.Order) (bool, error) {
		return true, o.DeclinePayment(o.State().Attempt.Number-1, theirNo)
	}},
	{"cancel", func(o *order.Order) (bool, error) { return o.Cancel("second reason", later) }},
}

// resumed is the request whose earlier run may have charged the order.
var resumed = order.PaymentRequest{Key: byKey.Key, Money: byKey.Money, Method: byKey.Method, Resumed: true}

func begin(r order.PaymentRequest) func(*order.Order) (bool, error) {
	return func(o *order.Order) (bool, error) {
		_, due, err := o.BeginPayment(r, later)
		return due, err
	}
}

// outcome is a row's end: the order is there afterwards, or unchanged when to is empty. A refusal changes nothing.
type outcome struct {
	to   order.Status
	tell bool
	err  error
}

func moves(to order.Status) outcome { return outcome{to: to, tell: true} }
func refused(err error) outcome     { return outcome{err: err} }

var (
	goesOn    = outcome{tell: true}
	nothingTo = outcome{}
)

// table is the whole state machine (docs/state-machine.md; docs/contract.md, Orders).
var table = map[state]map[string]outcome{
	placed: {
		"begin, same key":                   moves(order.PaymentPending),
		"begin, other key":                  moves(order.PaymentPending),
		"begin, same key, other money":      refused(order.ErrAmountMismatch),
		"begin, other key, other money":     refused(order.ErrAmountMismatch),
		"begin, same key, resumed":          refused(order.ErrInvalidState), // a hand has made it so
		"confirm this attempt":              refused(order.ErrOtherAttempt),
		"confirm other attempt":             refused(order.ErrOtherAttempt),
		"confirm this attempt, other money": refused(order.ErrOtherAttempt),
		"decline this attempt":              refused(order.ErrOtherAttempt),
		"decline other attempt":             refused(order.ErrOtherAttempt),
		"cancel":                            moves(order.Cancelled),
	},
	pending: {
		"begin, same key":                   goesOn, // its request was taken over
		"begin, other key":                  refused(order.ErrPaymentInProgress),
		"begin, same key, other money":      refused(order.ErrPaymentInProgress),
		"begin, other key, other money":     refused(order.ErrPaymentInProgress),
		"begin, same key, resumed":          goesOn,
		"confirm this attempt":              moves(order.Paid),
		"confirm other attempt":             refused(order.ErrOtherAttempt),
		"confirm this attempt, other money": refused(payment.ErrAmountConflict),
		"decline this attempt":              moves(order.Placed),
		"decline other attempt":             refused(order.ErrOtherAttempt),
		"cancel":                            refused(order.ErrPaymentInProgress),
	},
	placedAgain: {
		"begin, same key":                   moves(order.PaymentPending),
		"begin, other key":                  moves(order.PaymentPending),
		"begin, same key, other money":      refused(order.ErrAmountMismatch),
		"begin, other key, other money":     refused(order.ErrAmountMismatch),
		"begin, same key, resumed":          refused(order.ErrInvalidState),
		"confirm this attempt":              refused(order.ErrOtherAttempt),
		"confirm other attempt":             refused(order.ErrOtherAttempt),
		"confirm this attempt, other money": refused(order.ErrOtherAttempt),
		"decline this attempt":              refused(order.ErrOtherAttempt),
		"decline other attempt":             refused(order.ErrOtherAttempt),
		"cancel":                            moves(order.Cancelled),
	},
	paid: {
		"begin, same key":                   nothingTo, // nothing is due
		"begin, other key":                  nothingTo,
		"begin, same key, other money":      refused(order.ErrAmountMismatch),
		"begin, other key, other money":     refused(order.ErrAmountMismatch),
		"begin, same key, resumed":          nothingTo,
		"confirm this attempt":              refused(order.ErrOtherAttempt),
		"confirm other attempt":             refused(order.ErrOtherAttempt),
		"confirm this attempt, other money": refused(order.ErrOtherAttempt),
		"decline this attempt":              refused(order.ErrOtherAttempt),
		"decline other attempt":             refused(order.ErrOtherAttempt),
		"cancel":                            refused(order.ErrInvalidState),
	},
	cancelled: {
		"begin, same key":                   refused(order.ErrInvalidState),
		"begin, other key":                  refused(order.ErrInvalidState),
		"begin, same key, other money":      refused(order.ErrInvalidState),
		"begin, other key, other money":     refused(order.ErrInvalidState),
		"begin, same key, resumed":          refused(order.ErrInvalidState),
		"confirm this attempt":              refused(order.ErrOtherAttempt),
		"confirm other attempt":             refused(order.ErrOtherAttempt),
		"confirm this attempt, other money": refused(order.ErrOtherAttempt),
		"decline this attempt":              refused(order.ErrOtherAttempt),
		"decline other attempt":             refused(order.ErrOtherAttempt),
		"cancel":                            nothingTo, // it stays as it was, with its first reason
	},
}

func TestEveryVerbInEveryState(t *testing.T) {
	for _, from := range states {
		require.Len(t, table[from], len(verbs), "rows for what is %s", from)
		for _, v := range verbs {
			t.Run(string(from)+": "+v.name, func(t *testing.T) {
				want, inTable := table[from][v.name]
				require.True(t, inTable)
				o := orderThatIs(t, from)
				before := o.State()

				tell, err := v.do(o)

				if want.err != nil {
					assertFault(t, want.err, err)
				} else {
					require.NoError(t, err)
					assert.Equal(t, want.tell, tell)
				}
				if want.to == "" {
					assert.Equal(t, before, o.State(), "unchanged")
				} else {
					assert.Equal(t, want.to, o.State().Status)
				}
			})
		}
	}
}

// assertFault is stricter than errors.Is for the two faults that share a code: they are raised as they were declared.
func assertFault(t *testing.T, want, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	if errors.Is(want, order.ErrOtherAttempt) {
		assert.Same(t, want, err)
	}
}

func TestOnlyPaidAndCancelledAreFinal(t *testing.T) {
	// Nobody knows yet what an order will be while it is paid: that is no outcome, so it may not go on record.
	for from, final := range map[state]bool{pending: false, paid: true} {
		_, err := orderThatIs(t, from).Cancel("", later)
		_, isRefusal := fault.Refusal(err)
		assert.Equal(t, final, isRefusal, from)
	}
	_, _, err := orderThatIs(t, cancelled).BeginPayment(byKey, later)
	_, isRefusal := fault.Refusal(err)
	assert.True(t, isRefusal)
}

func TestAnInvalidStateIsNamed(t *testing.T) {
	_, err := orderThatIs(t, paid).Cancel("", later)
	assertNames(t, err, order.Paid)
	_, _, err = orderThatIs(t, cancelled).BeginPayment(byKey, later)
	assertNames(t, err, order.Cancelled)
}

func assertNames(t *testing.T, err error, s order.Status) {
	t.Helper()
	f, isFault := fault.From(err)
	require.True(t, isFault)
	assert.Equal(t, []fault.Member{{Name: "orderStatus", Value: s}}, f.Members())
	assert.Contains(t, f.Detail(), string(s))
}

func TestAMismatchSaysBothAmounts(t *testing.T) {
	_, _, err := orderThatIs(t, placed).BeginPayment(order.PaymentRequest{Key: "key", Money: otherMoney}, later)
	f, isFault := fault.From(err)
	require.True(t, isFault)
	assert.Equal(t, "the order is over 1000 JPY, not 2000 JPY", f.Detail())
}

func TestTheSameNumberOfAnotherCurrencyIsOtherMoney(t *testing.T) {
	eur, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	euros := money.Of(1000, eur)
	_, _, err = orderThatIs(t, placed).BeginPayment(order.PaymentRequest{Key: "key", Money: euros}, later)
	require.ErrorIs(t, err, order.ErrAmountMismatch)
	require.ErrorIs(t, orderThatIs(t, pending).ConfirmPayment(1, chargeOf(euros), later), payment.ErrAmountConflict)
}

// Money is compared as a count of minor units, never scaled (C92).
func TestOnlyTheExactAmountPays(t *testing.T) {
	for _, units := range []int64{0, 10, 999, 1001, 100000, -1000} {
		_, _, err := orderThatIs(t, placed).BeginPayment(
			order.PaymentRequest{Key: "key", Money: money.Of(units, money.JPY)}, later)
		assert.ErrorIs(t, err, order.ErrAmountMismatch, units)
	}
}
