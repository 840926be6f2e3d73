package checkout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

func TestAConfirmedPaymentMakesTheOrderPaid(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		before := s.Store.Commits()
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, 2, s.Store.Commits()-before)
		assert.False(t, answer.Replayed)

		paid := s.state(t, id)
		assert.Equal(t, order.Paid, paid.Status)
		assert.NotEmpty(t, paid.ChargeID)
		assert.Equal(t, checkout.Receipt{
			OrderID: id, Status: order.Paid, PaidAt: s.clock.Now(), Amount: 1000, Currency: "JPY",
			PaymentID: paid.PaymentID,
		}, receipt(t, answer))
		assert.Equal(t, 1, s.Provider.CallsUnder(string(id)+":1"))
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

func TestAConfirmationIsWaitedForFourTimesAndItsReplayOnce(t *testing.T) {
	clock := storetest.NewClock()
	deferring := memory.NewDeferring(memory.New(clock.Now))
	s := shopOver(deferring, clock)
	id := s.placed(t)
	trips := func() int {
		before := deferring.RoundTrips()
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		return deferring.RoundTrips() - before
	}
	assert.Equal(t, 4, trips(), "record and order, commit; the charge; order, commit")
	assert.Equal(t, 1, trips(), "record")
}

func TestThePaidAtOfAnAnswerIsTheTimeOfItsRecording(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			s.clock.Pass(7*time.Second + 5*time.Microsecond)
			return storetest.Approving(ctx, a, book)
		})
		begun := s.clock.Now()
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, begun.Add(7*time.Second+5*time.Microsecond), receipt(t, answer).PaidAt)
		assert.Equal(t, begun, s.state(t, id).Attempt.BegunAt)
	})
}

func TestADeclineIsTheAnswerAndTheOrderCanBePaidWithANewKey(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		declined := storetest.Payment(id, "k")
		declined.Method = storetest.DeclinedMethod
		before := s.Store.Commits()
		answer, err := s.ConfirmPayment(t.Context(), declined)
		require.NoError(t, err)
		assert.EqualValues(t, "payment_declined", answer.Refusal)
		assert.Contains(t, string(answer.Document), `"declineCode":"card_declined"`)
		assert.Equal(t, 2, s.Store.Commits()-before, "the order's change and the outcome are one commit")
		assert.Equal(t, order.Placed, s.state(t, id).Status)

		again, err := s.ConfirmPayment(t.Context(), declined)
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, answer.Outcome, again.Outcome)

		paid, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "new"))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, paid).Status)
		assert.Equal(t, 1, s.Provider.CallsUnder(string(id)+":1"))
		assert.Equal(t, 1, s.Provider.CallsUnder(string(id)+":2"), "the next attempt has a gateway key of its own")
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// C63: the shopper presses again with a fresh key.
func TestAnOrderThatIsPaidAnswersANewKeyWithItsReceipt(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id, original := s.paid(t, "k")
		s.clock.Pass(time.Hour)
		before := s.Store.Commits()
		again := storetest.Payment(id, "new")
		again.Method = storetest.DeclinedMethod // whatever the method
		answer, err := s.ConfirmPayment(t.Context(), again)
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, original, receipt(t, answer))
		assert.Equal(t, 1, s.Provider.Calls())
		assert.Equal(t, 1, s.Store.Commits()-before)
		assert.Equal(t, []idempotency.Scope{storetest.ScopeOf(again)}, scopesOf(s.Seen.Of(port.Duplicate)))
	})
}

func TestOtherMoneyIsRefusedForGood(t *testing.T) {
	euro, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	for name, asked := range map[string]money.Money{
		"less": money.Of(999, money.JPY), "more": money.Of(1001, money.JPY), "another currency": money.Of(1000, euro),
	} {
		t.Run(name, func(t *testing.T) {
			inBothShops(t, func(t *testing.T, s shop) {
				open := s.placed(t)
				settled, _ := s.paid(t, "paid")
				for _, id := range []order.ID{open, settled} {
					wrong := storetest.Payment(id, "wrong "+string(id))
					wrong.Money = asked
					answer, err := s.ConfirmPayment(t.Context(), wrong)
					require.NoError(t, err)
					assert.EqualValues(t, "amount_mismatch", answer.Refusal)
					again, err := s.ConfirmPayment(t.Context(), wrong)
					require.NoError(t, err)
					assert.True(t, again.Replayed)

					wrong.Money = money.Of(1000, money.JPY)
					_, err = s.ConfirmPayment(t.Context(), wrong)
					require.ErrorIs(t, err, idempotency.ErrKeyReused)
				}
				assert.Equal(t, order.Placed, s.state(t, open).Status)
				assert.Equal(t, 1, s.Provider.Calls())
			})
		})
	}
}

func TestACancelledOrderIsNotPaidEvenForOtherMoney(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		_, err := s.CancelOrder(t.Context(), cancel(id, "c", ""))
		require.NoError(t, err)
		for key, yen := range map[string]int64{"right": 1000, "wrong": 10} {
			c := storetest.Payment(id, key)
			c.Money = money.Of(yen, money.JPY)
			answer, err := s.ConfirmPayment(t.Context(), c)
			require.NoError(t, err)
			assert.EqualValues(t, "invalid_state", answer.Refusal)
			assert.Contains(t, string(answer.Document), `"orderStatus":"CANCELLED"`)
		}
		assert.Zero(t, s.Provider.Calls())
	})
}

// C14: a request that was wrong uses no key and waits for nothing.
func TestAnUnknownOrderIsNotFoundAndLeavesNoRecord(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		mine := s.placed(t)
		strangers := storetest.Payment(mine, "k")
		strangers.Customer = "mallory"
		for name, c := range map[string]checkout.ConfirmPayment{
			"no order": storetest.Payment(order.NewID(), "k"), "no id": storetest.Payment("o-none", "k"),
			"upper case": storetest.Payment("0193A1B2-0000-7000-8000-000000000000", "k"), "another's": strangers,
		} {
			for range 2 {
				_, err := s.ConfirmPayment(t.Context(), c)
				require.ErrorIs(t, err, order.ErrNotFound, name)
			}
			_, err := storetest.RecordIn(t.Context(), s.work, storetest.ScopeOf(c))
			require.ErrorIs(t, err, idempotency.ErrNotFound, name)
		}
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(mine, "k")) // the key was not used
		require.NoError(t, err)
	})
}

func TestWithinOneKeyTheMethodIsPartOfTheRequest(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id, _ := s.paid(t, "k")
		for _, method := range []string{"pm_ok", "pm_other"} {
			c := storetest.Payment(id, "k")
			c.Method = method
			_, err := s.ConfirmPayment(t.Context(), c)
			require.ErrorIs(t, err, idempotency.ErrKeyReused)
		}
	})
}

func TestWhileAnOrderIsBeingPaidUnderOneKeyAnotherKeyWaits(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		other := storetest.Payment(id, "other")
		wrong := storetest.Payment(id, "wrong")
		wrong.Money = money.Of(10, money.JPY)
		refused := func() {
			for _, c := range []checkout.ConfirmPayment{other, wrong} {
				_, err := s.ConfirmPayment(t.Context(), c)
				require.ErrorIs(t, err, order.ErrPaymentInProgress)
				_, err = storetest.RecordIn(t.Context(), s.work, storetest.ScopeOf(c))
				require.ErrorIs(t, err, idempotency.ErrNotFound)
			}
		}
		s.Provider.Next(func(context.Context, payment.Attempt, storetest.Book) (payment.Answer, error) {
			refused() // running
			return nil, storetest.ErrNoAnswer
		})
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		refused() // unknown
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		_, err = s.ConfirmPayment(t.Context(), other)
		require.NoError(t, err)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// C90: what the record has forgotten the order has not.
func TestARetryAfterTheRetentionHasTheOriginalReceipt(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id, original := s.paid(t, "k")
		s.clock.Pass(storetest.Times.Retention)
		again, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, original, receipt(t, again))
		assert.Equal(t, 1, s.Provider.Calls())
	})
}

func scopesOf(events []port.Event) (scopes []idempotency.Scope) {
	for _, e := range events {
		scopes = append(scopes, e.Scope)
	}
	return scopes
}
