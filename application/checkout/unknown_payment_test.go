package checkout_test

import (
	"context"
	"errors"
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
	"kakutei/infrastructure/storetest"
)

func TestAnUnknownOutcomeIsAskedAgainUnderTheSameGatewayKey(t *testing.T) {
	for name, unknown := range map[string]storetest.Call{
		"the answer is lost": storetest.Losing(storetest.Approving), "unreachable": storetest.Unreachable,
	} {
		t.Run(name, func(t *testing.T) {
			inBothShops(t, func(t *testing.T, s shop) {
				id := s.placed(t)
				s.Provider.Next(unknown, unknown)
				for range 2 {
					_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
					require.ErrorIs(t, err, storetest.ErrNoAnswer)
					assertUnknown(t, err)
					assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
				}
				answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
				require.NoError(t, err)
				assert.False(t, answer.Replayed)
				assert.Equal(t, order.Paid, receipt(t, answer).Status)
				assert.Equal(t, 3, s.Provider.CallsUnder(string(id)+":1"))
				assert.Equal(t, 1, s.Provider.Charges())
				assert.Equal(t, 3, s.record(t, storetest.Payment(id, "k")).Executions)
			})
		})
	}
}

func TestALostDeclineIsFetchedByTheRetry(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Losing(storetest.Declining("insufficient_funds")))
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.EqualValues(t, "payment_declined", answer.Refusal)
		assert.Contains(t, string(answer.Document), "insufficient_funds")
		assert.Zero(t, s.Provider.Charges())
	})
}

func TestAPanicAtTheProviderCostsNoSecondCharge(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Panicking)
		require.Panics(t, func() { _, _ = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k")) })
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// C03, C04: the provider was slow, the lease ran out, and another run has paid the order meanwhile.
func TestALateHolderThatMeetsTheWinnersPaidOrderAnswersTheWinnersReceipt(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		var winner checkout.Receipt
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			s.clock.Pass(storetest.Times.Lease)
			answer, err := s.Beside().ConfirmPayment(ctx, storetest.Payment(id, "k"))
			require.NoError(t, err)
			assert.False(t, answer.Replayed)
			winner = receipt(t, answer)
			s.clock.Pass(time.Second)
			return storetest.Approving(ctx, a, book)
		})
		late, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.True(t, late.Replayed)
		assert.Equal(t, winner, receipt(t, late))
		assert.Equal(t, 1, s.Provider.Charges())
		assert.Equal(t, 1, s.Seen.Count(port.LeaseLost))
		assert.Equal(t, 1, s.Seen.Count(port.Takeover))
	})
}

// The winner's attempt was declined and a third run has begun the next one: an answer names the attempt it is for.
func TestALateChargeOfAnAttemptThatIsOverIsNotTakenForTheNextOne(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(
			func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
				s.clock.Pass(storetest.Times.Lease)
				declined, err := s.Beside().ConfirmPayment(ctx, storetest.Payment(id, "k"))
				require.NoError(t, err)
				assert.EqualValues(t, "payment_declined", declined.Refusal)
				_, err = s.ConfirmPayment(ctx, storetest.Payment(id, "next"))
				assertUnknown(t, err)
				return payment.Charge{ID: "late", Money: a.Money}, nil // against its own book
			},
			storetest.Declining("card_declined"),
			storetest.Unreachable,
		)
		late, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.True(t, late.Replayed)
		assert.EqualValues(t, "payment_declined", late.Refusal)
		stands := s.state(t, id)
		assert.Equal(t, order.PaymentPending, stands.Status)
		assert.Equal(t, 2, stands.Attempt.Number)
	})
}

func TestMoneyThatWasTakenIsNeverARefusal(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		become := func(status order.Status) {
			require.NoError(t, s.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				o, err := tx.Orders().Lock(t.Context(), id, "alice")
				if err != nil {
					return err
				}
				forged := o.State()
				forged.Status = status
				return tx.Orders().Save(t.Context(), order.Rehydrate(forged))
			}))
		}
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			become(order.Cancelled) // by an outside hand
			return storetest.Approving(ctx, a, book)
		})
		for range 2 { // at the completion, then at the next execution's start
			_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
			assertUnknown(t, err)
			assert.Equal(t, idempotency.InProgress, s.record(t, storetest.Payment(id, "k")).Status)
		}
		become(order.PaymentPending)
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, answer).Status)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// C18: the order still knows its attempt, and the order's provider its gateway key.
func TestARecordThatVanishesUnderItsHolderCostsNoSecondCharge(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		c := storetest.Payment(id, "k")
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			require.NoError(t, storetest.Vanish(ctx, s.work, storetest.ScopeOf(c)))
			return storetest.Approving(ctx, a, book)
		})
		answer, err := s.ConfirmPayment(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, answer).Status)
		assert.Equal(t, 1, s.Provider.Charges())
		assert.Equal(t, answer.Outcome, s.record(t, c).Outcome)
	})
}

// C46, C67, C69: a commit without an answer, at either of the two, for a charge and for a decline.
func TestACommitWithoutAnAnswerChargesOnceAndAnswersOnce(t *testing.T) {
	for _, method := range []string{"", storetest.DeclinedMethod} {
		for _, nth := range []int{1, 2} {
			for _, fate := range []storetest.Fate{storetest.Applied, storetest.Undone, storetest.Late} {
				inBothShops(t, func(t *testing.T, s shop) {
					id := s.placed(t)
					c := storetest.Payment(id, "k")
					c.Method = method
					s.Store.LoseCommit(nth, fate)
					late := make(chan error, 1)
					if fate == storetest.Late {
						s.Seen.When(port.CommitUnknown, func() { go func() { late <- s.Store.ApplyLate() }() })
					}
					answer, err := s.ConfirmPayment(t.Context(), c)
					require.NoError(t, err)
					if fate == storetest.Late {
						require.NoError(t, <-late)
					}
					assert.False(t, answer.Replayed)
					assert.Equal(t, method != "", answer.Refusal == "payment_declined")
					assert.Equal(t, 1, s.state(t, id).Attempt.Number, "no second attempt")
					assert.Equal(t, method == "", s.Provider.Charges() == 1)
					assert.Equal(t, s.record(t, c).Outcome, answer.Outcome)
				})
			}
		}
	}
}

func TestAnAttemptThatTheProviderMayHaveForgottenIsLookedUpAndNeverSent(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Losing(storetest.Approving))
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		s.Provider.ForgetKeys()
		s.clock.Pass(storetest.KeyRetention)

		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, answer).Status)
		assert.Equal(t, 1, s.Provider.Calls())
		assert.Equal(t, 1, s.Provider.Lookups())
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

func TestUntilTheProviderMayHaveForgottenAnAttemptIsSentAgain(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Unreachable)
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		s.clock.Pass(storetest.KeyRetention - time.Microsecond)
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.Zero(t, s.Provider.Lookups())
	})
}

func TestAForgottenAttemptThatTheListDoesNotShowStaysUnknown(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Unreachable)
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		s.clock.Pass(storetest.KeyRetention)

		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.ErrorIs(t, err, payment.ErrNotListed)
		assertUnknown(t, err)
		hidden := errors.New("the list cannot be read")
		s.Provider.HideList(hidden)
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.ErrorIs(t, err, hidden)
		assertUnknown(t, err)
		assert.Equal(t, 1, s.Provider.Calls())
		assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
	})
}

func TestAForgottenAttemptThatTheListShowsDeclinedIsDeclined(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Losing(storetest.Declining("card_declined")))
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		s.clock.Pass(storetest.KeyRetention)
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.EqualValues(t, "payment_declined", answer.Refusal)
		assert.Equal(t, 1, s.Provider.Calls())
	})
}

func TestOtherMoneyThanWasAskedIsUnknownAndObserved(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Taking(money.Of(10, money.JPY)))
		c := storetest.Payment(id, "k")
		_, err := s.ConfirmPayment(t.Context(), c)
		require.ErrorIs(t, err, payment.ErrAmountConflict)
		assertUnknown(t, err)
		assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
		conflicts := s.Seen.Of(port.AmountConflict)
		assert.Equal(t, []idempotency.Scope{storetest.ScopeOf(c)}, scopesOf(conflicts))
		assert.Contains(t, conflicts[0].Detail, "1000 JPY")
		assert.Contains(t, conflicts[0].Detail, "10 JPY")

		_, err = s.ConfirmPayment(t.Context(), c) // a client's retry asks again
		assertUnknown(t, err)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}
