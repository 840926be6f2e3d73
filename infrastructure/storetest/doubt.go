package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// doubt is commits without an answer: what the store has then decides (C10, C46, C69).
var doubt = []check{
	{"a commit without an answer is settled by what stands: one charge, one answer", func(t *testing.T, s Opened) {
		for _, method := range []string{"", DeclinedMethod} {
			for _, nth := range []int{1, 2} {
				for _, fate := range []Fate{Applied, Undone} {
					inDoubt(t, s, method, nth, fate)
				}
			}
		}
	}},
	{"a commit that is applied after it was given up is waited for", func(t *testing.T, s Opened) {
		for _, method := range []string{"", DeclinedMethod} {
			for _, nth := range []int{1, 2} {
				inDoubt(t, s, method, nth, Late)
			}
		}
	}},
	{"a store that is gone while in doubt leaves an outcome for the retry", func(t *testing.T, s Opened) {
		for _, fate := range []Fate{Applied, Undone} {
			here, there, provider := twoShops(s)
			id := placed(t, here)
			here.Store.LoseCommit(2, fate)
			here.Store.LeaveAfter(2)
			request := Payment(id, "k"+string(fate))
			_, err := here.ConfirmPayment(t.Context(), request)
			require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)

			if fate == Undone { // in doubt the lease is left to run out
				_, err = there.ConfirmPayment(t.Context(), request)
				told(t, err, idempotency.ErrInProgress)
				leaseEnds(t, s, request)
			}
			answer, err := there.ConfirmPayment(t.Context(), request)
			require.NoError(t, err)
			assert.Empty(t, answer.Refusal)
			assert.Equal(t, 1, provider.Charges())
			assert.Equal(t, fate == Applied, answer.Replayed)
		}
	}},
	{"an order whose placing commit got no answer is placed once", func(t *testing.T, s Opened) {
		for _, fate := range []Fate{Applied, Undone} {
			here, _, _ := twoShops(s)
			here.Store.LoseCommit(1, fate)
			id := placed(t, here)
			assert.Equal(t, order.Placed, orderIn(t, s.Beside, id).Status)
		}
	}},
}

// inDoubt loses the answer of a payment's nth commit.
func inDoubt(t *testing.T, s Opened, method string, nth int, fate Fate) {
	t.Helper()
	here, there, provider := twoShops(s)
	id := placed(t, here)
	what := fmt.Sprintf("commit %d %s, method %q", nth, fate, method)
	request := Payment(id, what)
	request.Method = method
	here.Store.LoseCommit(nth, fate)
	late := make(chan error, 1)
	if fate == Late {
		here.Seen.When(port.CommitUnknown, func() { go func() { late <- here.Store.ApplyLate() }() })
	}

	answer, err := here.ConfirmPayment(t.Context(), request)
	require.NoError(t, err, what)
	if fate == Late {
		require.NoError(t, <-late, what)
	}
	assert.False(t, answer.Replayed, what)
	assert.Equal(t, 1, here.Seen.Count(port.CommitUnknown), what)
	assert.Zero(t, here.Seen.Count(port.Mismatch)+here.Seen.Count(port.Duplicate), what)
	want, charges := order.Paid, 1
	if method == DeclinedMethod {
		want, charges = order.Placed, 0
		assert.EqualValues(t, "payment_declined", answer.Refusal, what)
	}
	stands := orderIn(t, s.Beside, id)
	assert.Equal(t, want, stands.Status, what)
	assert.Equal(t, 1, stands.Attempt.Number, what)
	assert.Equal(t, charges, provider.Charges(), what)

	again, err := there.ConfirmPayment(t.Context(), request)
	require.NoError(t, err, what)
	assert.True(t, again.Replayed, what)
	assert.Equal(t, string(answer.Document), string(again.Document), what)
}
