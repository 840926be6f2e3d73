package checkout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/storetest"
)

// cancel is alice's wish.
func cancel(id order.ID, key, reason string) checkout.CancelOrder {
	return checkout.CancelOrder{
		Customer: "alice", Key: idempotency.Key(key), OrderID: string(id), Reason: reason,
	}
}

func TestAPlacedOrderCanBeCancelled(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		before := s.Store.Commits()
		answer, err := s.CancelOrder(t.Context(), cancel(id, "c", "気が変わった"))
		require.NoError(t, err)
		assert.Equal(t, 1, s.Store.Commits()-before)
		v := orderView(t, answer)
		assert.Equal(t, order.Cancelled, v.Status)
		assert.Equal(t, "気が変わった", v.CancelReason)
		require.NotNil(t, v.CancelledAt)
		assert.Equal(t, s.clock.Now(), *v.CancelledAt)
		assert.Equal(t, order.Cancelled, s.state(t, id).Status)
	})
}

func TestACancelledOrderAnswersANewKeyAsItWasCancelled(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		first, err := s.CancelOrder(t.Context(), cancel(id, "c", "first"))
		require.NoError(t, err)
		s.clock.Pass(time.Hour)
		second, err := s.CancelOrder(t.Context(), cancel(id, "another", "second"))
		require.NoError(t, err)
		assert.False(t, second.Replayed)
		assert.Equal(t, orderView(t, first), orderView(t, second))
	})
}

func TestAPaidOrderCannotBeCancelledForGood(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id, _ := s.paid(t, "k")
		answer, err := s.CancelOrder(t.Context(), cancel(id, "c", ""))
		require.NoError(t, err)
		assert.EqualValues(t, "invalid_state", answer.Refusal)
		assert.Contains(t, string(answer.Document), `"orderStatus":"PAID"`)
		again, err := s.CancelOrder(t.Context(), cancel(id, "c", ""))
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, order.Paid, s.state(t, id).Status)
	})
}

func TestAnOrderThatIsBeingPaidIsNotCancelledYet(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		refused := func() {
			_, err := s.CancelOrder(t.Context(), cancel(id, "c", ""))
			require.ErrorIs(t, err, order.ErrPaymentInProgress)
		}
		s.Provider.Next(func(context.Context, payment.Attempt, storetest.Book) (payment.Answer, error) {
			refused() // running
			return nil, storetest.ErrNoAnswer
		}, storetest.Declining("card_declined"))
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		refused() // unknown

		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		answer, err := s.CancelOrder(t.Context(), cancel(id, "c", "")) // it was not recorded
		require.NoError(t, err)
		assert.Equal(t, order.Cancelled, orderView(t, answer).Status)
	})
}

func TestOneKeyIsAnotherRecordForAnotherOperation(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id, other := s.placed(t), s.placed(t)
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		answer, err := s.CancelOrder(t.Context(), cancel(other, "k", ""))
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, order.Cancelled, orderView(t, answer).Status)
	})
}

func TestTheReasonIsPartOfTheRequest(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		_, err := s.CancelOrder(t.Context(), cancel(id, "c", "first"))
		require.NoError(t, err)
		for _, reason := range []string{"second", ""} {
			_, err = s.CancelOrder(t.Context(), cancel(id, "c", reason))
			require.ErrorIs(t, err, idempotency.ErrKeyReused)
		}
	})
}

func TestAnotherCustomersOrderCannotBeCancelled(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		c := cancel(id, "c", "")
		c.Customer = "mallory"
		_, err := s.CancelOrder(t.Context(), c)
		require.ErrorIs(t, err, order.ErrNotFound)
		_, err = s.CancelOrder(t.Context(), cancel("o-none", "c", ""))
		require.ErrorIs(t, err, order.ErrNotFound)
		assert.Equal(t, order.Placed, s.state(t, id).Status)
	})
}
