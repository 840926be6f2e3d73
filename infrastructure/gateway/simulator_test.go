package gateway_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

// noon is the simulator's clock in these tests, in another zone and finer than a microsecond on purpose.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.FixedZone("JST", 9*60*60))

func clock() time.Time { return noon }

// paying is a first attempt to pay an order of its own.
func paying(method string) payment.Attempt {
	return payment.Attempt{
		OrderID: uuid.NewString(), Number: 1, Money: money.Of(1000, money.JPY), Method: method, BegunAt: noon,
	}
}

// assertTaken tells that the answer is a charge of the attempt's money, and that the book shows it and nothing else.
func assertTaken(t *testing.T, g payment.Gateway, a payment.Attempt, answer payment.Answer) {
	t.Helper()
	charge, isCharge := answer.(payment.Charge)
	require.True(t, isCharge, "%#v", answer)
	assert.Equal(t, a.Money, charge.Money)
	assert.Regexp(t, "^ch_[0-9a-f]{32}$", charge.ID)
	assert.Equal(t, time.Date(2026, 11, 30, 3, 0, 0, 123456000, time.UTC), charge.ChargedAt)
	assertListed(t, g, a, charge)
}

// assertListed tells that the provider's list of the order is this one answer to this attempt, or empty without one.
func assertListed(t *testing.T, g payment.Gateway, a payment.Attempt, answers ...payment.Answer) {
	t.Helper()
	list, err := g.Lookup(t.Context(), a.OrderID)
	require.NoError(t, err)
	require.Len(t, list, len(answers))
	for i, answer := range answers {
		want := payment.Booking{OrderID: a.OrderID, Attempt: a.Number, GatewayKey: a.GatewayKey(), Answer: answer}
		assert.Equal(t, want, list[i])
	}
}

func TestMethodsThatTakeTheMoneyAtOnce(t *testing.T) {
	for _, method := range []string{"", "pm_ok", "pm_slow_0"} {
		t.Run("method "+method, func(t *testing.T) {
			s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying(method)
			first, err := s.Charge(t.Context(), a)
			require.NoError(t, err)
			assertTaken(t, s, a, first)

			again, err := s.Charge(t.Context(), a)
			require.NoError(t, err)
			assert.Equal(t, first, again)
			assertTaken(t, s, a, again)
		})
	}
}

func TestMethodsThatAreDeclined(t *testing.T) {
	for method, want := range map[string]payment.Decline{
		"pm_declined":           {Code: "card_declined", Message: "the card was declined"},
		"pm_insufficient_funds": {Code: "insufficient_funds", Message: "there is not enough money in the account"},
	} {
		t.Run(method, func(t *testing.T) { assertDeclined(t, method, want) })
	}
	for _, method := range []string{
		"pm_gold", "PM_OK", " pm_ok", "pm_ok ", "pm_", "円", "pm_slow", "pm_slow_", "pm_slow_x", "pm_slow_-1", "pm_slow_+1",
		"pm_slow_ 1", "pm_slow_1 ", "pm_slow_1_0", "pm_slow_0x1", "pm_slow_1.5", "pm_slow_1e3", "pm_slow_1ms",
		"pm_slow_9223372036855",        // its nanoseconds overflow
		"pm_slow_9223372036854775808",  // overflows 63 bits
		"pm_slow_18446744073709551617", // is 1 in 64 bits
	} {
		t.Run("unknown "+method, func(t *testing.T) {
			assertDeclined(t, method, payment.Decline{
				Code: "unknown_payment_method", Message: "there is no such payment method",
			})
		})
	}
}

func assertDeclined(t *testing.T, method string, want payment.Decline) {
	t.Helper()
	s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying(method)
	for range 2 {
		answer, err := s.Charge(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, want, answer)
		assertListed(t, s, a, want)
	}
}

func TestASlowMethodBooksFirstAndAnswersTheFirstCallLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_slow_1500")
		began := time.Now()
		var first payment.Answer
		var err error
		var late sync.WaitGroup
		late.Go(func() { first, err = s.Charge(t.Context(), a) })
		synctest.Wait() // until the first call waits

		duplicate, errOfDuplicate := s.Charge(t.Context(), a)
		require.NoError(t, errOfDuplicate)
		assertTaken(t, s, a, duplicate)
		assert.Zero(t, time.Since(began), "a later call is answered at once, and other orders are not held up")

		late.Wait()
		require.NoError(t, err)
		assert.Equal(t, duplicate, first)
		assert.Equal(t, 1500*time.Millisecond, time.Since(began))
	})
}

func TestTheMoneyStaysTakenWhenNobodyWaitsForTheLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_slow_9223372036854")
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		answer, err := s.Charge(impatient, a)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Nil(t, answer)
		assert.Equal(t, time.Second, time.Since(began))

		answer, err = s.Charge(t.Context(), a)
		require.NoError(t, err)
		assertTaken(t, s, a, answer)
	})
}

func TestALostAnswerIsFoundInTheBook(t *testing.T) {
	s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_lost_answer")
	answer, err := s.Charge(t.Context(), a)
	require.ErrorIs(t, err, gateway.ErrLostAnswer)
	assert.Nil(t, answer)

	list, err := s.Lookup(t.Context(), a.OrderID)
	require.NoError(t, err)
	answer, err = a.FindIn(list)
	require.NoError(t, err)
	assertTaken(t, s, a, answer)

	again, err := s.Charge(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, answer, again)
}

func TestAFirstCallThatFailsHasNoEffectAndTheSecondTakesTheMoney(t *testing.T) {
	s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_unavailable")
	answer, err := s.Charge(t.Context(), a)
	require.ErrorIs(t, err, gateway.ErrUnavailable)
	assert.Nil(t, answer)
	assertListed(t, s, a)

	second, err := s.Charge(t.Context(), a)
	require.NoError(t, err)
	assertTaken(t, s, a, second)

	third, err := s.Charge(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, second, third)
	assertTaken(t, s, a, third)
}

func TestAMethodThatIsDownNeverHasAnEffect(t *testing.T) {
	s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_down")
	for range 3 {
		answer, err := s.Charge(t.Context(), a)
		require.ErrorIs(t, err, gateway.ErrUnavailable)
		assert.Nil(t, answer)
		assertListed(t, s, a)
	}
}

func TestTheFirstCallIsTheFirstOneInTheBookNotInTheProcess(t *testing.T) {
	for _, method := range []string{"pm_lost_answer", "pm_unavailable"} {
		book, a := gateway.NewMemoryBook(), paying(method)
		_, err := gateway.NewSimulator(book, clock).Charge(t.Context(), a)
		require.Error(t, err)

		restarted := gateway.NewSimulator(book, clock)
		answer, err := restarted.Charge(t.Context(), a)
		require.NoError(t, err, method)
		assertTaken(t, restarted, a, answer)
	}
}
