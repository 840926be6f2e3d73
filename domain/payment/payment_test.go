package payment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/fault"
	"kakutei/domain/money"
	"kakutei/domain/payment"
)

var begun = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)

func attempt(number int) payment.Attempt {
	return payment.Attempt{
		OrderID: "o-1", Number: number, Money: money.Of(1000, money.JPY), Method: "pm_ok", BegunAt: begun,
	}
}

func TestTheGatewayKeyIsOrderAndAttempt(t *testing.T) {
	assert.Equal(t, "o-1:1", attempt(1).GatewayKey())
	assert.Equal(t, "o-1:12", attempt(12).GatewayKey())

	other := attempt(1)
	other.Money, other.Method, other.BegunAt = money.Of(2000, money.JPY), "pm_declined", begun.Add(time.Hour)
	assert.Equal(t, "o-1:1", other.GatewayKey(), "whatever else differs")
}

func TestNoTwoAttemptsShareAGatewayKey(t *testing.T) {
	orders := rapid.StringMatching(`[0-9a-f:-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a := payment.Attempt{OrderID: orders.Draw(t, "order"), Number: rapid.IntRange(1, 200).Draw(t, "attempt")}
		b := payment.Attempt{OrderID: orders.Draw(t, "other order"), Number: rapid.IntRange(1, 200).Draw(t, "other attempt")}
		require.Equal(t, a == b, a.GatewayKey() == b.GatewayKey())
	})
}

func TestWhenTheProviderMayHaveForgottenTheKey(t *testing.T) {
	const retention = 12 * time.Hour
	for name, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"when it begins":              {begun, false},
		"by a clock that is behind":   {begun.Add(-time.Hour), false},
		"by one that was set back":    {begun.Add(-time.Hour - time.Microsecond), true},
		"a microsecond before":        {begun.Add(retention - time.Microsecond), false},
		"exactly when it is kept for": {begun.Add(retention), true},
		"a microsecond after":         {begun.Add(retention + time.Microsecond), true},
		"in another zone":             {begun.Add(retention).In(time.FixedZone("JST", 9*60*60)), true},
		"centuries later":             {begun.AddDate(1000, 0, 0), true},
	} {
		assert.Equal(t, c.want, attempt(1).ForgottenAt(c.now, retention), name)
	}
}

func TestWhichAnswersSettleAnAttempt(t *testing.T) {
	eur, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		answer payment.Answer
		want   error
	}{
		"the money that was asked": {payment.Charge{ID: "ch_1", Money: money.Of(1000, money.JPY)}, nil},
		"more":                     {payment.Charge{ID: "ch_1", Money: money.Of(1001, money.JPY)}, payment.ErrAmountConflict},
		"less":                     {payment.Charge{ID: "ch_1", Money: money.Of(999, money.JPY)}, payment.ErrAmountConflict},
		"a hundredfold":            {payment.Charge{ID: "ch_1", Money: money.Of(100000, money.JPY)}, payment.ErrAmountConflict},
		"nothing":                  {payment.Charge{ID: "ch_1", Money: money.Of(0, money.JPY)}, payment.ErrAmountConflict},
		"another currency":         {payment.Charge{ID: "ch_1", Money: money.Of(1000, eur)}, payment.ErrAmountConflict},
		"a decline":                {payment.Decline{Code: "card_declined"}, nil},
	} {
		err := attempt(1).Check(c.answer)
		if c.want == nil {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorIs(t, err, c.want, name)
		}
	}
}

func TestAnAmountConflictTellsWhatToRefund(t *testing.T) {
	err := attempt(3).Check(payment.Charge{ID: "ch_1", Money: money.Of(2000, money.JPY)})
	require.EqualError(t, err, "payment: the provider took other money than was asked: "+
		"asked 1000 JPY for o-1:3, taken 2000 JPY as charge ch_1")
	_, isFault := fault.From(err)
	assert.False(t, isFault, "it must not become a refusal: money was taken")
}

func TestOnlyTheLineUnderItsOwnKeySettlesAnAttempt(t *testing.T) {
	line := func(key string, answer payment.Answer) payment.Booking {
		return payment.Booking{OrderID: "o-1", Attempt: 2, GatewayKey: key, Answer: answer}
	}
	charge, decline := payment.Charge{ID: "ch_2"}, payment.Decline{Code: "card_declined"}
	for name, c := range map[string]struct {
		list []payment.Booking
		want payment.Answer // nil: not listed
	}{
		"its charge":                      {[]payment.Booking{line("o-1:1", decline), line("o-1:2", charge)}, charge},
		"its decline":                     {[]payment.Booking{line("o-1:2", decline), line("o-1:3", charge)}, decline},
		"an empty list":                   {nil, nil},
		"earlier and later attempts":      {[]payment.Booking{line("o-1:1", charge), line("o-1:3", charge)}, nil},
		"a key that begins like it":       {[]payment.Booking{line("o-1:20", charge), line("o-1:2 ", charge)}, nil},
		"a line under a key of its own":   {[]payment.Booking{line("manual", charge)}, nil},
		"the same attempt, another order": {[]payment.Booking{line("o-2:2", charge)}, nil},
	} {
		answer, err := attempt(2).FindIn(c.list)
		if c.want == nil {
			require.ErrorIs(t, err, payment.ErrNotListed, name)
			assert.Nil(t, answer, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, answer, name)
	}
}

func TestTheMoneyThatAWrittenOffAttemptHasTakenSettlesTheNextOne(t *testing.T) {
	line := func(attempt int, answer payment.Answer) payment.Booking {
		key := payment.Attempt{OrderID: "o-1", Number: attempt}.GatewayKey()
		return payment.Booking{OrderID: "o-1", Attempt: attempt, GatewayKey: key, Answer: answer}
	}
	own, late := payment.Charge{ID: "own", Money: money.Of(1000, money.JPY)}, payment.Charge{ID: "late", Money: money.Of(1000, money.JPY)}
	refunded, decline := payment.Charge{ID: "other", Money: money.Of(999, money.JPY)}, payment.Decline{Code: "card_declined"}
	const nothing = 0
	for name, c := range map[string]struct {
		writtenOff int
		list       []payment.Booking
		want       payment.Answer // nil: not listed
	}{
		"taken late":                             {2, []payment.Booking{line(2, late)}, late},
		"taken late by the one before it":        {2, []payment.Booking{line(1, late)}, late},
		"taken late, and this one was declined":  {2, []payment.Booking{line(2, late), line(3, decline)}, late},
		"and declined first":                     {2, []payment.Booking{line(3, decline), line(2, late)}, late},
		"taken twice: a person's business":       {2, []payment.Booking{line(2, late), line(3, own)}, own},
		"taken by this one alone":                {2, []payment.Booking{line(3, own)}, own},
		"declined late":                          {2, []payment.Booking{line(2, decline)}, nil},
		"other money, which was refunded":        {2, []payment.Booking{line(2, refunded)}, nil},
		"other money, and this one was declined": {2, []payment.Booking{line(2, refunded), line(3, decline)}, decline},
		"taken by an attempt that was not":       {1, []payment.Booking{line(2, late)}, nil},
		"taken by an attempt to come":            {2, []payment.Booking{line(4, late)}, nil},
		"nothing was ever written off":           {nothing, []payment.Booking{line(2, late), line(1, late)}, nil},
	} {
		a := attempt(3)
		a.WrittenOff = c.writtenOff
		answer, err := a.FindIn(c.list)
		if c.want == nil {
			require.ErrorIs(t, err, payment.ErrNotListed, name)
			assert.Nil(t, answer, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, answer, name)
	}
}

func TestADeclineIsARefusalThatNamesItsReason(t *testing.T) {
	f, isRefusal := fault.Refusal(payment.Decline{Code: "card_declined", Message: "for the log"}.Refusal())
	require.True(t, isRefusal)
	require.ErrorIs(t, f, payment.ErrDeclined)
	assert.Equal(t, []fault.Member{{Name: "declineCode", Value: "card_declined"}}, f.Members())
	assert.Empty(t, payment.ErrDeclined.Members(), "the declared fault stays as it is")
	assert.NotContains(t, f.Detail(), "for the log")
}

// Whoever is not the one that was asked would charge anew, and his silence proves nothing.
func TestAnAttemptIsOfTheProviderThatItWasAskedOf(t *testing.T) {
	for _, c := range []struct {
		asked, here string
		is          bool
	}{
		{"https://psp.example", "https://psp.example", true},
		{"https://psp.example", "simulator", false},
		{"", "simulator", true}, // from before it was written down
		{"simulator", "", true}, // nobody says who is here
	} {
		a := payment.Attempt{OrderID: "o", Number: 1, Provider: c.asked}
		assert.Equal(t, c.is, a.IsOf(c.here), "%+v", c)
		if c.is {
			require.NoError(t, a.AskedOf(c.here))
			continue
		}
		require.ErrorIs(t, a.AskedOf(c.here), payment.ErrOtherProvider)
	}
}
