package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// confirming is what the use cases make of the store: money is taken at most once, and a key has one answer.
var confirming = []check{
	// C03, C04: takeover is harmless because the first holder is fenced off.
	{"a holder that was taken over answers what the winner recorded", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		held, late := confirmHeld(t, here, Payment(id, "k"), Approving)
		leaseEnds(t, s, Payment(id, "k"))
		winner, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.False(t, winner.Replayed)

		held.Release()
		loser := <-late
		require.NoError(t, loser.err)
		assert.True(t, loser.answer.Replayed)
		assert.Equal(t, string(winner.Document), string(loser.answer.Document))
		assert.Equal(t, 1, provider.Charges())
		assert.Equal(t, 1, there.Seen.Count(port.Takeover))
		assert.Equal(t, 1, here.Seen.Count(port.LeaseLost))
	}},
	{"a refusal is recorded with what it changed, and replayed by another instance", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		declined := Payment(id, "declined")
		declined.Method = DeclinedMethod
		wrong := Payment(id, "wrong")
		wrong.Money = money.Of(10, money.JPY)
		for _, c := range []struct {
			request checkout.ConfirmPayment
			code    string
		}{{declined, "payment_declined"}, {wrong, "amount_mismatch"}} {
			first, err := here.ConfirmPayment(t.Context(), c.request)
			require.NoError(t, err)
			assert.EqualValues(t, c.code, first.Refusal)
			again, err := there.ConfirmPayment(t.Context(), c.request)
			require.NoError(t, err)
			assert.True(t, again.Replayed)
			assert.Equal(t, first.Outcome, again.Outcome)
		}
		assert.Equal(t, order.Placed, orderIn(t, s.Beside, id).Status)
		assert.Equal(t, 1, provider.Calls())
	}},
	{"a panic at the provider leaves a key that the next retry executes", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		provider.Next(Panicking)
		require.Panics(t, func() { _, _ = here.ConfirmPayment(t.Context(), Payment(id, "k")) })
		answer, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.Empty(t, answer.Refusal)
		assert.Equal(t, 1, provider.Charges())
	}},
	// C53: the client's connection is not the work's life.
	{"a client that hangs up while the provider thinks has paid all the same", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		ctx, hangUp := context.WithCancel(t.Context())
		provider.Next(func(ctx context.Context, a payment.Attempt, book Book) (payment.Answer, error) {
			hangUp()
			return Approving(ctx, a, book)
		})
		_, err := here.ConfirmPayment(ctx, Payment(id, "k"))
		require.NoError(t, err)
		again, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, 1, provider.Charges())
	}},
	// C05: the fingerprint comes first in every state.
	{"a key that was used for another request is refused in every state of its record", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		other := Payment(id, "k")
		other.Money = money.Of(2000, money.JPY)
		reused := func(state string) {
			_, err := there.ConfirmPayment(t.Context(), other)
			require.ErrorIs(t, err, idempotency.ErrKeyReused, state)
		}
		held, first := confirmHeld(t, here, Payment(id, "k"), Unreachable)
		reused("running")
		held.Release()
		require.ErrorIs(t, (<-first).err, idempotency.ErrOutcomeUnknown)
		reused("its lease over")
		_, err := here.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		reused("finished")
		assert.Equal(t, 1, provider.Charges())
	}},
	// C18: only the order stands between a vanished record and a second charge.
	{"a record that vanishes under its holder costs no second charge", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		held, first := confirmHeld(t, here, Payment(id, "k"), Approving)
		require.NoError(t, Vanish(t.Context(), s.Beside, ScopeOf(Payment(id, "k"))))
		held.Release()
		answered := <-first
		require.NoError(t, answered.err)
		again, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.Equal(t, string(answered.answer.Document), string(again.Document))
		assert.Equal(t, 1, provider.Charges())
	}},
	// C65: who waits for the order's row decides by what it has become.
	{"an order that is cancelled while its payment waits for it is not paid", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		release := hold(t, s.Work, func(tx port.Tx) error {
			o, err := tx.Orders().Lock(t.Context(), id, alice)
			if err != nil {
				return err
			}
			if _, err := o.Cancel("", tx.Now()); err != nil {
				return err
			}
			return tx.Orders().Save(t.Context(), o)
		})
		_, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		told(t, err, s.busy(order.ErrPaymentInProgress))
		release()
		answer, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.EqualValues(t, "invalid_state", answer.Refusal)
		assert.Zero(t, provider.Calls())
	}},
	{"a completion that cannot have the order leaves an outcome for the retry", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		held, first := confirmHeld(t, here, Payment(id, "k"), Approving)
		release := hold(t, s.Work, func(tx port.Tx) error {
			_, err := tx.Orders().Lock(t.Context(), id, alice)
			return err
		})
		held.Release()
		require.ErrorIs(t, (<-first).err, idempotency.ErrOutcomeUnknown)
		release()
		if s.OneAtATime { // the lease could not be ended either
			leaseEnds(t, s, Payment(id, "k"))
		}
		answer, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.Empty(t, answer.Refusal)
		assert.Equal(t, 1, provider.Charges())
	}},
	{"who looks up the outcome of another's key finds none", func(t *testing.T, s Opened) {
		here, there, _ := twoShops(s)
		id := placed(t, here)
		_, err := here.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		mine := ScopeOf(Payment(id, "k"))
		found, err := there.Outcome(t.Context(), mine)
		require.NoError(t, err)
		assert.Equal(t, idempotency.Succeeded, found.Status)
		mine.Actor = "mallory"
		_, err = there.Outcome(t.Context(), mine)
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	}},
}

// crowds is the same when many come at once.
var crowds = []check{
	// C16: a lost race is "wait" or the answer, also between two instances.
	{"a hundred identical confirmations at once take the money once and have one answer", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		answers, refused := confirmAtOnce(t, 100, here, there, paymentOf(id, "k"))

		assert.Equal(t, 1, provider.Charges())
		require.NotEmpty(t, answers)
		for _, a := range answers {
			assert.Equal(t, string(answers[0].Document), string(a.Document))
		}
		for _, err := range refused {
			told(t, err, idempotency.ErrInProgress)
		}
		again, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, string(answers[0].Document), string(again.Document))
	}},
	// C63: two tabs with two keys still charge once.
	{"fifty keys at once on one order take the money once, with one receipt", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		answers, refused := confirmAtOnce(t, 50, here, there, func(i int) checkout.ConfirmPayment {
			return Payment(id, fmt.Sprintf("k%d", i))
		})

		assert.Equal(t, 1, provider.Charges())
		require.NotEmpty(t, answers)
		for _, a := range answers {
			assert.Empty(t, a.Refusal)
			assert.JSONEq(t, string(answers[0].Document), string(a.Document))
		}
		for _, err := range refused {
			told(t, err, order.ErrPaymentInProgress)
		}
	}},
	// C19: duplicates neither wait for the provider nor take the room of others.
	{"while the provider thinks, its duplicates are answered and other orders are paid", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id, other := placed(t, here), placed(t, here)
		held, first := confirmHeld(t, here, Payment(id, "k"), Approving)

		answers, refused := confirmAtOnce(t, 20, here, there, paymentOf(id, "k"))
		assert.Empty(t, answers)
		for _, err := range refused {
			told(t, err, idempotency.ErrInProgress)
		}
		_, err := there.ConfirmPayment(t.Context(), Payment(id, "another key"))
		told(t, err, order.ErrPaymentInProgress)
		_, err = there.ConfirmPayment(t.Context(), Payment(other, "other"))
		require.NoError(t, err)

		held.Release()
		require.NoError(t, (<-first).err)
		assert.Equal(t, 2, provider.Charges())
	}},
	// C85, C90: an expired key is new, and the order still knows that it is paid.
	{"a retry after the retention has the first receipt, and the key serves anew", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id, other := placed(t, here), placed(t, here)
		first, err := here.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)

		require.NoError(t, Age(t.Context(), s.Work, ScopeOf(Payment(id, "k")), Times.Retention))
		again, err := there.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.NoError(t, err)
		assert.False(t, again.Replayed)
		assert.JSONEq(t, string(first.Document), string(again.Document))
		assert.Equal(t, 1, provider.Charges())

		require.NoError(t, Age(t.Context(), s.Work, ScopeOf(Payment(id, "k")), Times.Retention))
		answers, refused := confirmAtOnce(t, 20, here, there, paymentOf(other, "k"))
		require.NotEmpty(t, answers)
		for _, err := range refused {
			told(t, err, idempotency.ErrInProgress)
		}
		assert.Equal(t, 2, provider.Charges())
		assert.Equal(t, order.Paid, orderIn(t, s.Work, other).Status)
	}},
}
