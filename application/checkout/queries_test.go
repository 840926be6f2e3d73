package checkout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/storetest"
)

func TestACustomerSeesTheOrderAsItIsNow(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id, r := s.paid(t, "k")
		v, err := s.Order(t.Context(), string(id), "alice")
		require.NoError(t, err)
		assert.Equal(t, order.Paid, v.Status)
		assert.Equal(t, r.PaymentID, v.PaymentID)
		require.NotNil(t, v.PaidAt)
		assert.Equal(t, r.PaidAt, *v.PaidAt)
		assert.Nil(t, v.CancelledAt)
	})
}

func TestAnotherCustomersOrderIsNoDifferentFromNone(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		for name, asked := range map[string]struct{ id, customer string }{
			"another's": {string(id), "mallory"},
			"no order":  {string(order.NewID()), "alice"},
			"no id":     {"o-none", "alice"},
		} {
			_, err := s.Order(t.Context(), asked.id, asked.customer)
			require.Error(t, err, name)
			assert.Equal(t, order.ErrNotFound, err, name)
		}
	})
}

// C49: a replay is the original answer; the query is the present.
func TestAReplayTellsWhatWasAndTheQueryWhatIs(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		placed, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
		require.NoError(t, err)
		_, err = s.CancelOrder(t.Context(), cancel(order.ID(placed.Created), "c", ""))
		require.NoError(t, err)
		again, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
		require.NoError(t, err)
		assert.Equal(t, order.Placed, orderView(t, again).Status)
		now, err := s.Order(t.Context(), placed.Created, "alice")
		require.NoError(t, err)
		assert.Equal(t, order.Cancelled, now.Status)
	})
}

func TestTheOutcomeOfASuccessIsTheAnswerThatWasSent(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		c := storetest.Payment(id, "k")
		answer, err := s.ConfirmPayment(t.Context(), c)
		require.NoError(t, err)
		completed, expires := s.clock.Now(), s.clock.Now().Add(storetest.Times.Retention)
		v, err := s.Outcome(t.Context(), storetest.ScopeOf(c))
		require.NoError(t, err)
		assert.Equal(t, checkout.OutcomeView{
			Operation: checkout.OpConfirmPayment, IdempotencyKey: "k", Status: idempotency.Succeeded, Executions: 1,
			CreatedAt: completed, CompletedAt: &completed, ExpiresAt: &expires, Response: answer.Document,
		}, v)
	})
}

func TestTheOutcomeOfARefusalIsItsProblem(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		c := storetest.Payment(s.placed(t), "k")
		c.Method = storetest.DeclinedMethod
		answer, err := s.ConfirmPayment(t.Context(), c)
		require.NoError(t, err)
		v, err := s.Outcome(t.Context(), storetest.ScopeOf(c))
		require.NoError(t, err)
		assert.Equal(t, idempotency.Failed, v.Status)
		assert.Nil(t, v.Response)
		assert.Equal(t, string(answer.Document), string(v.Problem))
	})
}

func TestTheOutcomeOfARunningRequestIsToWait(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		c := storetest.Payment(s.placed(t), "k")
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			s.clock.Pass(10 * time.Second)
			v, err := s.Outcome(ctx, storetest.ScopeOf(c))
			require.NoError(t, err)
			assert.Equal(t, idempotency.InProgress, v.Status)
			assert.Equal(t, 10*time.Second, v.RetryIn)
			assert.Nil(t, v.CompletedAt)
			assert.Nil(t, v.ExpiresAt)
			assert.Nil(t, v.Response)
			assert.Nil(t, v.Problem)
			return storetest.Approving(ctx, a, book)
		})
		_, err := s.ConfirmPayment(t.Context(), c)
		require.NoError(t, err)
	})
}

func TestTheOutcomeOfAnUnknownPaymentCountsItsExecutions(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		c := storetest.Payment(s.placed(t), "k")
		s.Provider.Next(storetest.Unreachable, storetest.Unreachable)
		for range 2 {
			_, err := s.ConfirmPayment(t.Context(), c)
			assertUnknown(t, err)
		}
		v, err := s.Outcome(t.Context(), storetest.ScopeOf(c))
		require.NoError(t, err)
		assert.Equal(t, idempotency.InProgress, v.Status)
		assert.Equal(t, 2, v.Executions)
		assert.GreaterOrEqual(t, v.RetryIn, time.Second)
	})
}

func TestThereIsNoOutcomeOfAnotherScopeOrAnExpiredKey(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		c := storetest.Payment(s.placed(t), "k")
		_, err := s.ConfirmPayment(t.Context(), c)
		require.NoError(t, err)
		mine := storetest.ScopeOf(c)
		another, operation, actor := mine, mine, mine
		another.Key, operation.Operation, actor.Actor = "K", checkout.OpCancelOrder, "mallory"
		for _, scope := range []idempotency.Scope{another, operation, actor} {
			_, err := s.Outcome(t.Context(), scope)
			require.ErrorIs(t, err, idempotency.ErrNotFound)
		}
		s.clock.Pass(storetest.Times.Retention)
		_, err = s.Outcome(t.Context(), mine)
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	})
}
