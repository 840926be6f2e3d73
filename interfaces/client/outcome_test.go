package client_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/client"
)

// unknownAfter is the error of an operation of which every answer was lost.
func unknownAfter(t *testing.T, w *wire, operation func() error) *client.UnknownOutcome {
	t.Helper()
	w.losing(1 << 30)
	defer w.losing(0)
	var unknown *client.UnknownOutcome
	require.ErrorAs(t, operation(), &unknown)
	require.ErrorIs(t, unknown, client.ErrTries)
	return unknown
}

func TestAnUnknownOutcomeSaysWhatToAskAndTheLookUpTells(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		c, w := onWire(t, s, client.WithTries(3))
		id := place(t, c).OrderID
		unknown := unknownAfter(t, w, func() error {
			_, err := c.ConfirmPayment(t.Context(), "pay/1?", id, payment)
			return err
		})
		assert.Equal(t, client.OpConfirmPayment, unknown.Operation)
		assert.Equal(t, client.Intent("pay/1?"), unknown.Key)
		assert.Equal(t, 3, unknown.Tries)
		require.ErrorIs(t, unknown.Last, errLost)
		assert.NotEmpty(t, unknown.RequestID)
		assert.Contains(t, unknown.Error(), "pay/1?")

		o, err := c.Outcome(t.Context(), unknown.Operation, unknown.Key)
		require.NoError(t, err)
		assert.Equal(t, client.OutcomeSucceeded, o.Status)
		assert.Equal(t, client.OpConfirmPayment, o.Operation)
		assert.Equal(t, client.Intent("pay/1?"), o.Key)
		assert.Equal(t, 1, o.Executions)
		assert.False(t, o.CompletedAt.IsZero())
		assert.False(t, o.ExpiresAt.IsZero())
		told, err := o.Receipt()
		require.NoError(t, err)

		paid, err := c.ConfirmPayment(t.Context(), unknown.Key, id, payment)
		require.NoError(t, err)
		assert.Equal(t, string(paid.Answer.Body), string(o.Response))
		told.Answer, paid.Answer = client.Answer{}, client.Answer{}
		assert.Equal(t, paid, told)
		assert.Equal(t, 1, s.provider.Charges())
	})(t)
}

func TestTheLookUpTellsOfAnOrder(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, w := onWire(t, openShop(), client.WithTries(1))
		unknown := unknownAfter(t, w, func() error {
			_, err := c.PlaceOrder(t.Context(), client.NewIntent(), tea)
			return err
		})
		o, err := c.Outcome(t.Context(), unknown.Operation, unknown.Key)
		require.NoError(t, err)
		placed, err := o.Order()
		require.NoError(t, err)
		read, err := c.Order(t.Context(), placed.OrderID)
		require.NoError(t, err)
		read.Answer = client.Answer{}
		assert.Equal(t, read, placed)
	})(t)
}

func TestTheLookUpTellsOfARefusal(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, w := onWire(t, openShop(), client.WithTries(1))
		id := place(t, c).OrderID
		unknown := unknownAfter(t, w, func() error {
			_, err := c.ConfirmPayment(t.Context(), "k", id, client.Payment{
				Amount: 1000, Currency: "JPY", Method: storetest.DeclinedMethod,
			})
			return err
		})
		o, err := c.Outcome(t.Context(), unknown.Operation, unknown.Key)
		require.NoError(t, err)
		assert.Equal(t, client.OutcomeFailed, o.Status)
		_, err = o.Receipt()
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, client.CodePaymentDeclined, refused.Code)
		assert.Equal(t, "card_declined", refused.DeclineCode)
		assert.Equal(t, 402, refused.Status)
		assert.Equal(t, client.OpConfirmPayment, refused.Operation)
		assert.Equal(t, client.Intent("k"), refused.Key)
	})(t)
}

func TestTheLookUpTellsOfWhatIsRunningAndOfWhatNeverWas(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		c, _ := onWire(t, s)
		id := place(t, c).OrderID
		held, call := storetest.Holding(storetest.Approving)
		s.provider.Next(call)
		running := make(chan error, 1)
		go func() {
			_, err := c.ConfirmPayment(t.Context(), "k", id, payment)
			running <- err
		}()
		<-held.Reached
		o, err := c.Outcome(t.Context(), client.OpConfirmPayment, "k")
		require.NoError(t, err)
		assert.Equal(t, client.OutcomeInProgress, o.Status)
		assert.Positive(t, o.RetryAfter)
		_, err = o.Receipt()
		require.ErrorIs(t, err, client.ErrNoOutcome)
		held.Release()
		require.NoError(t, <-running)

		_, err = c.Outcome(t.Context(), client.OpConfirmPayment, "other")
		assert.Equal(t, client.CodeNotFound, client.CodeOf(err))
		_, err = c.As("demo-bob").Outcome(t.Context(), client.OpConfirmPayment, "k")
		assert.Equal(t, client.CodeNotFound, client.CodeOf(err))
		_, err = c.Outcome(t.Context(), client.OpPostJournalEntry, "k")
		assert.Equal(t, client.CodeInvalidRequest, client.CodeOf(err))
	})(t)
}

func TestARefusalOfAReadsSecondTryIsDefinite(t *testing.T) {
	inBubble(func(t *testing.T) {
		_, err := served(t, scripted(t, reply{Lost: "reset"}, reply{Problem: client.CodeOrderNotFound})).Order(t.Context(), "o-1")
		assert.Equal(t, client.CodeOrderNotFound, client.CodeOf(err), "no earlier try can have had an effect")
	})(t)
}

func TestAReadWithoutAnswerIsNoUnknownOutcome(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, w := onWire(t, openShop(), client.WithTries(2))
		w.losing(1 << 30)
		_, err := c.Order(t.Context(), "o-1")
		var none *client.NoAnswer
		require.ErrorAs(t, err, &none)
		assert.Equal(t, 2, none.Tries)
		assert.Equal(t, client.ReadOrder, none.Operation)
		var unknown *client.UnknownOutcome
		assert.NotErrorAs(t, err, &unknown)
	})(t)
}

func TestAnOutcomeThatIsNotWholeIsNone(t *testing.T) {
	inBubble(func(t *testing.T) {
		for _, body := range []string{
			`{}`, `{"status":"SUCCEEDED"}`, `{"status":"FAILED"}`, `{"status":"DONE","response":{}}`, `[]`, ``,
		} {
			c := served(t, scripted(t, reply{Status: 200, Body: body}))
			_, err := c.Outcome(t.Context(), client.OpConfirmPayment, "k")
			var none *client.NoAnswer
			require.ErrorAs(t, err, &none, body)
		}
		c := served(t, scripted(t, reply{Status: 200, Body: `{"status":"FAILED","problem":{"code":"x"}}`}))
		o, err := c.Outcome(t.Context(), client.OpConfirmPayment, "k")
		require.NoError(t, err)
		_, err = o.Receipt()
		var unreadable *client.Unreadable
		require.ErrorAs(t, err, &unreadable)

		c = served(t, scripted(t, reply{Status: 200, Body: `{"status":"SUCCEEDED","response":{"orderId":"o"}}`}))
		o, err = c.Outcome(t.Context(), client.OpConfirmPayment, "k")
		require.NoError(t, err)
		_, err = o.Receipt()
		require.Error(t, err)
		_, err = o.Order()
		require.Error(t, err)
	})(t)
}
