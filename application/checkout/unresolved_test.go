package checkout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/storetest"
)

// left is an order whose payment under the key "k" has ended in an unknown outcome, with its lease over.
func (s shop) left(t *testing.T, call storetest.Call) order.ID {
	t.Helper()
	id := s.placed(t)
	s.Provider.Next(call)
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	assertUnknown(t, err)
	s.clock.Pass(storetest.Times.Lease)
	return id
}

func word(charged bool) checkout.Resolution {
	r := checkout.Resolution{
		Scope:   idempotency.Scope{Operation: checkout.OpConfirmPayment, Actor: "alice", Key: "k"},
		Charged: charged, Note: "rang them up", By: "olga",
	}
	if charged {
		r.ChargeID = "ch_seen"
	}
	return r
}

func (s shop) audited(t *testing.T, kind port.AuditKind) (entries []port.AuditEntry) {
	t.Helper()
	require.NoError(t, s.work.Read(t.Context(), func(tx port.Tx) (err error) {
		entries, err = tx.Audit().After(t.Context(), 0, kind, 100)
		return err
	}))
	return entries
}

func TestTheRecoveryConfirmsAPaymentWithoutItsClient(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Losing(storetest.Approving))
		recovery := idempotent.NewRecovery(s.Store, time.Second, map[idempotency.Operation]idempotent.Resume{
			checkout.OpConfirmPayment: s.Resume,
		})
		tried, err := recovery.Round(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, tried, 1)
		require.NoError(t, tried[0].Err)
		assert.Equal(t, order.Paid, s.state(t, id).Status)
		assert.Equal(t, 1, s.Provider.Charges())
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.True(t, answer.Replayed)
	})
}

// The request that is executed without the client is the client's, method and all.
func TestWhatIsResumedIsWhatWasAsked(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		asked := storetest.Payment(id, "k")
		asked.Method = storetest.DeclinedMethod
		s.Provider.Next(storetest.Unreachable)
		_, err := s.ConfirmPayment(t.Context(), asked)
		assertUnknown(t, err)
		s.clock.Pass(storetest.Times.Lease)
		answer, err := s.Resume(t.Context(), s.record(t, asked))
		require.NoError(t, err)
		assert.EqualValues(t, "payment_declined", answer.Refusal)
		replayed, err := s.ConfirmPayment(t.Context(), asked)
		require.NoError(t, err)
		assert.Equal(t, answer.Document, replayed.Document)
	})
}

func TestAnOperatorsChargedPaysTheOrder(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		view, err := s.Resolve(t.Context(), word(true))
		require.NoError(t, err)
		assert.Equal(t, idempotency.Succeeded, view.Status)
		state := s.state(t, id)
		assert.Equal(t, order.Paid, state.Status)
		assert.Equal(t, "ch_seen", state.ChargeID)
		assert.Zero(t, s.Provider.Charges(), "nobody asked the provider for money")

		entries := s.audited(t, port.AuditResolved)
		require.Len(t, entries, 1)
		assert.Equal(t, word(true).Scope, entries[0].Scope)
		assert.Contains(t, entries[0].Detail, "olga")
		assert.Contains(t, entries[0].Detail, "rang them up")
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		assert.True(t, answer.Replayed)
		assert.Equal(t, string(view.Response), string(answer.Document))
	})
}

func TestAnOperatorsNotChargedIsADeclineAndTheOrderCanBePaid(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		view, err := s.Resolve(t.Context(), word(false))
		require.NoError(t, err)
		assert.Equal(t, idempotency.Failed, view.Status)
		assert.Contains(t, string(view.Problem), "resolved_not_charged")
		require.Len(t, s.audited(t, port.AuditResolved), 1)
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
		require.NoError(t, err)
		assert.Equal(t, 1, s.Provider.ChargesUnder(string(id)+":2"))
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// The holder slept, or the provider is slow: the charge comes after the word. The next key must not charge again.
func TestTheNextKeyFindsAChargeThatCameAfterTheOperatorsWord(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		running := s.state(t, id).Attempt
		_, err := s.Resolve(t.Context(), word(false))
		require.NoError(t, err)
		_, err = s.Provider.Charge(t.Context(), running)
		require.NoError(t, err)

		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, receipt(t, answer).Status)
		assert.Equal(t, 1, s.Provider.Charges())
		assert.Zero(t, s.Provider.CallsUnder(string(id)+":2"), "what has been paid for is not asked for again")
	})
}

// The charge of the second attempt may be as late as the one of the first, and then it is the order's.
func TestEveryAttemptAfterAnOperatorsWordReadsTheListFirst(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		first := s.state(t, id).Attempt
		_, err := s.Resolve(t.Context(), word(false))
		require.NoError(t, err)

		s.Provider.Next(storetest.Declining("card_declined"))
		answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
		require.NoError(t, err)
		require.NotEmpty(t, answer.Refusal)

		s.Provider.HideList(errors.New("no list"))
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k3"))
		assertUnknown(t, err)
		assert.Zero(t, s.Provider.CallsUnder(string(id)+":3"), "a list that cannot be read proves nothing")

		s.Provider.HideList(nil)
		_, err = s.Provider.Charge(t.Context(), first)
		require.NoError(t, err)
		r := word(false)
		r.Scope.Key = "k3"
		_, err = s.Resolve(t.Context(), r)
		require.ErrorIs(t, err, payment.ErrChargeFound, "the charge is the order's, whichever attempt has taken it")
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k3"))
		require.NoError(t, err)
		assert.Equal(t, order.Paid, s.state(t, id).Status)
		assert.Equal(t, 1, s.Provider.Charges())
	})
}

// What the provider itself has declined is over there, too: its list is not asked for.
func TestAnAttemptAfterTheProvidersOwnNoIsSentAtOnce(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.placed(t)
		s.Provider.Next(storetest.Declining("card_declined"))
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		s.Provider.HideList(errors.New("no list"))
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k2"))
		require.NoError(t, err)
		assert.Zero(t, s.Provider.Lookups())
	})
}

// A lost approval and a new key would be a second charge.
func TestNotChargedIsRefusedWhenTheProvidersListShowsTheCharge(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Losing(storetest.Approving))
		_, err := s.Resolve(t.Context(), word(false))
		require.ErrorIs(t, err, payment.ErrChargeFound)
		assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
		assert.Empty(t, s.audited(t, port.AuditResolved))
		_, err = s.Resolve(t.Context(), word(true))
		require.NoError(t, err, "it can still be resolved as charged")
	})
}

func TestNotChargedNeedsTheProvidersList(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		s.Provider.HideList(errors.New("no list"))
		_, err := s.Resolve(t.Context(), word(false))
		require.ErrorIs(t, err, port.ErrUnavailable)
		assert.Equal(t, order.PaymentPending, s.state(t, id).Status)
	})
}

// The provider took other money: it is audited once, however often it is asked again; the operator refunds it, and then
// nothing is charged.
func TestAnAmountConflictIsRefundedAndResolvedNotCharged(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Taking(money.Of(999, money.JPY)))
		require.True(t, s.record(t, storetest.Payment(id, "k")).Disputed)
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		told := s.Seen.Of(port.AmountConflict)
		require.Len(t, told, 2)
		assert.Equal(t, told[0].Once, told[1].Once)
		_, err = s.Resolve(t.Context(), word(false))
		require.NoError(t, err)
		assert.Equal(t, order.Placed, s.state(t, id).Status)
	})
}

// Past the provider's memory nothing is sent and the list shows nothing: so a person ends it, and no order is stuck.
func TestAForgottenAttemptIsResolvedByAPerson(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		id := s.left(t, storetest.Unreachable)
		s.clock.Pass(storetest.KeyRetention)
		_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		assertUnknown(t, err)
		_, err = s.Resolve(t.Context(), word(false))
		require.NoError(t, err)
		assert.Equal(t, order.Placed, s.state(t, id).Status)
		assert.Equal(t, 1, s.Provider.Calls())
	})
}

func TestOnlyAnUnresolvedPaymentIsResolved(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		_, err := s.Resolve(t.Context(), word(true))
		require.ErrorIs(t, err, idempotency.ErrNotFound, "there is no record")

		id := s.placed(t)
		s.Provider.Next(func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
			_, err := s.Resolve(ctx, word(true))
			require.ErrorIs(t, err, idempotency.ErrLeaseAlive, "its holder is alive")
			return storetest.Approving(ctx, a, book)
		})
		_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
		require.NoError(t, err)
		_, err = s.Resolve(t.Context(), word(true))
		require.ErrorIs(t, err, idempotency.ErrNotFound, "it has its outcome")

		other := word(true)
		other.Scope.Operation = checkout.OpPlaceOrder
		_, err = s.Resolve(t.Context(), other)
		require.ErrorIs(t, err, idempotency.ErrNotFound, "it is no payment")
		assert.Equal(t, 1, s.Provider.Charges())
	})
}
