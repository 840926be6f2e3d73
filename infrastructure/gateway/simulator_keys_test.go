package gateway_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

func TestAKeyBelongsToItsFirstRequest(t *testing.T) {
	eur, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	for name, change := range map[string]func(*payment.Attempt){
		"other order":    func(a *payment.Attempt) { a.OrderID = uuid.NewString() },
		"other attempt":  func(a *payment.Attempt) { a.Number = 2 },
		"other amount":   func(a *payment.Attempt) { a.Money = money.Of(2000, money.JPY) },
		"other currency": func(a *payment.Attempt) { a.Money = money.Of(1000, eur) },
		"other method":   func(a *payment.Attempt) { a.Method = "pm_declined" },
		"down by now":    func(a *payment.Attempt) { a.Method = "pm_down" },
		"no method":      func(a *payment.Attempt) { a.Method = "" },
	} {
		for _, method := range []string{"pm_ok", "pm_unavailable", "pm_lost_answer"} {
			t.Run(name+" after "+method, func(t *testing.T) {
				s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying(method)
				_, err := s.Charge(t.Context(), a)
				require.Equal(t, method == "pm_ok", err == nil)

				other := a
				change(&other)
				_, err = s.Ask(t.Context(), a.GatewayKey(), other)
				require.ErrorIs(t, err, gateway.ErrOtherRequest)

				answer, err := s.Charge(t.Context(), a)
				require.NoError(t, err)
				assertTaken(t, s, a, answer)
			})
		}
	}
}

func TestWhenTheAttemptBeganIsNoPartOfTheRequest(t *testing.T) {
	s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_ok")
	first, err := s.Charge(t.Context(), a)
	require.NoError(t, err)
	a.BegunAt = a.BegunAt.Add(time.Hour)
	again, err := s.Charge(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, first, again)
}

func TestEachAttemptIsAChargeOfItsOwn(t *testing.T) {
	s, first := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying("pm_declined")
	declined, err := s.Charge(t.Context(), first)
	require.NoError(t, err)
	second := first
	second.Number, second.Method = 2, "pm_ok"
	taken, err := s.Charge(t.Context(), second)
	require.NoError(t, err)

	list, err := s.Lookup(t.Context(), first.OrderID)
	require.NoError(t, err)
	require.Len(t, list, 2)
	for attempt, want := range map[payment.Attempt]payment.Answer{first: declined, second: taken} {
		found, err := attempt.FindIn(list)
		require.NoError(t, err)
		assert.Equal(t, want, found)
	}
}

func TestACallThatHadItBookedIsToldFromARepeat(t *testing.T) {
	for method, repeats := range map[string][]bool{
		"pm_ok":          {false, true, true},
		"pm_declined":    {false, true, true},
		"pm_slow_1":      {false, true, true},
		"pm_lost_answer": {true, true},  // the first call had no reply
		"pm_unavailable": {false, true}, // nor had the first call here, nor an effect
	} {
		t.Run(method, func(t *testing.T) {
			s, a := gateway.NewSimulator(gateway.NewMemoryBook(), clock), paying(method)
			if method == "pm_lost_answer" || method == "pm_unavailable" {
				_, err := s.Ask(t.Context(), "key", a)
				require.Error(t, err)
			}
			for _, repeat := range repeats {
				reply, err := s.Ask(t.Context(), "key", a)
				require.NoError(t, err)
				assert.Equal(t, repeat, reply.Repeat)
			}
		})
	}
}

func TestFiftyAtOnceAreOneCharge(t *testing.T) {
	for _, method := range []string{"pm_ok", "pm_slow_1", "pm_lost_answer", "pm_unavailable"} {
		t.Run(method, func(t *testing.T) {
			book, a := gateway.NewMemoryBook(), paying(method)
			instances := []*gateway.Simulator{gateway.NewSimulator(book, clock), gateway.NewSimulator(book, clock)}
			replies, errs := make([]gateway.Reply, 50), make([]error, 50)
			start := make(chan struct{})
			var all sync.WaitGroup
			for i := range replies {
				all.Go(func() {
					<-start
					replies[i], errs[i] = instances[i%2].Ask(t.Context(), a.GatewayKey(), a)
				})
			}
			close(start)
			all.Wait()

			charges, booked, unknown := map[payment.Answer]bool{}, 0, 0
			for i, reply := range replies {
				if errs[i] != nil {
					unknown++
					continue
				}
				charges[reply.Answer] = true
				if !reply.Repeat {
					booked++
				}
			}
			require.Len(t, charges, 1)
			for charge := range charges {
				assertTaken(t, instances[0], a, charge)
			}
			assert.Equal(t, map[string]int{"pm_lost_answer": 1, "pm_unavailable": 1}[method], unknown)
			assert.Equal(t, map[string]int{"pm_ok": 1, "pm_slow_1": 1, "pm_unavailable": 1}[method], booked)
		})
	}
}

func TestDifferentChargesHaveDifferentIDs(t *testing.T) {
	s, ids := gateway.NewSimulator(gateway.NewMemoryBook(), clock), map[string]bool{}
	for range 100 {
		answer, err := s.Charge(t.Context(), paying("pm_ok"))
		require.NoError(t, err)
		ids[answer.(payment.Charge).ID] = true
	}
	assert.Len(t, ids, 100)
}
