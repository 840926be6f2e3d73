package client_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

func confirm(ctx context.Context, c *client.Client) error {
	_, err := c.ConfirmPayment(ctx, "k", "o-1", payment)
	return err
}

// unknownBecause checks that a call has ended in an unknown outcome for this reason.
func unknownBecause(t *testing.T, err, cause error, tries int) client.NoAnswer {
	t.Helper()
	var unknown *client.UnknownOutcome
	require.ErrorAs(t, err, &unknown)
	require.ErrorIs(t, err, cause)
	assert.Equal(t, cause, unknown.Cause)
	assert.Equal(t, tries, unknown.Tries)
	assert.Equal(t, client.Intent("k"), unknown.Key)
	assert.Equal(t, client.OpConfirmPayment, unknown.Operation)
	return unknown.NoAnswer
}

func TestTheBudgetOfTriesIsKept(t *testing.T) {
	inBubble(func(t *testing.T) {
		for _, n := range []int{1, 2, 7} {
			server := scripted(t, reply{Problem: client.CodeOutcomeUnknown, Headers: map[string]string{"Retry-After": "4"}})
			unknown := unknownBecause(t, confirm(t.Context(), served(t, server, client.WithTries(n))), client.ErrTries, n)
			assert.Len(t, server.seen(), n)
			assert.Equal(t, http.StatusServiceUnavailable, unknown.Status)
			assert.Equal(t, 4*time.Second, unknown.RetryAfter)
			assert.Equal(t, server.seen()[n-1].requestID, unknown.RequestID)
			assert.Equal(t, client.CodeOutcomeUnknown, client.CodeOf(unknown.Last))
		}
	})(t)
}

func TestTheTotalTimeIsKeptAndNoWaitIsBegunThatWouldNotEndInIt(t *testing.T) {
	inBubble(func(t *testing.T) {
		server := scripted(t, reply{Problem: client.CodeOutcomeUnknown, Headers: map[string]string{"Retry-After": "4"}})
		began := time.Now()
		err := confirm(t.Context(), served(t, server, client.WithTotalTime(11*time.Second)))
		unknownBecause(t, err, client.ErrTotalTime, 3) // at 0 s, 4 s and 8 s, each a little later for the jitter
		assert.Less(t, time.Since(began), 10*time.Second, "the wait until 12 s was not begun")

		hanging := scripted(t, reply{Lost: "timeout"})
		began = time.Now()
		err = confirm(t.Context(), served(t, hanging, client.WithTotalTime(11*time.Second)))
		unknownBecause(t, err, client.ErrTotalTime, 1)
		assert.Equal(t, 11*time.Second, time.Since(began), "a try that is under way ends with it")
	})(t)
}

func TestATryHasATimeOfItsOwn(t *testing.T) {
	inBubble(func(t *testing.T) {
		began := time.Now()
		server := scripted(t, reply{Lost: "timeout"}, reply{Receipt: true})
		require.NoError(t, confirm(t.Context(), served(t, server, client.WithTryTimeout(3*time.Second))))
		assert.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		assert.Less(t, time.Since(began), 4*time.Second)
	})(t)
}

func TestTheCallersContextEndsTheCall(t *testing.T) {
	inBubble(func(t *testing.T) {
		busy := scripted(t, reply{Problem: client.CodeInProgress, Headers: map[string]string{"Retry-After": "9"}})
		hanging := scripted(t, reply{Lost: "timeout"})
		for _, server := range []*stub{busy, hanging} { // in a wait, and in a try
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(2*time.Second, cancel)
			began := time.Now()
			unknownBecause(t, confirm(ctx, served(t, server)), context.Canceled, 1)
			assert.Equal(t, 2*time.Second, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		unknownBecause(t, confirm(ctx, served(t, hanging, client.WithTries(1))), context.Canceled, 1)

		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		unknownBecause(t, confirm(ctx, served(t, busy)), context.DeadlineExceeded, 1)
		assert.Zero(t, time.Since(began), "its deadline comes before the wait's end, so the wait is not begun")
		unknownBecause(t, confirm(ctx, served(t, hanging)), context.DeadlineExceeded, 1)
		assert.Equal(t, 2*time.Second, time.Since(began))
	})(t)
}

func TestWhatIsNeverSentIsNoUnknownOutcome(t *testing.T) {
	inBubble(func(t *testing.T) {
		server := scripted(t, reply{Receipt: true})
		c := served(t, server)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		err := confirm(ended, c)
		require.ErrorIs(t, err, context.Canceled)
		for _, token := range []string{"a b", "a\nb", "é"} {
			require.ErrorContains(t, confirm(t.Context(), c.As(token)), "token")
		}
		for _, intent := range []client.Intent{"", "a b", "a\r\nX: y"} {
			_, err := c.ConfirmPayment(t.Context(), intent, "o-1", payment)
			require.ErrorIs(t, err, client.ErrNotAnIntent)
			_, err = c.Outcome(t.Context(), client.OpConfirmPayment, intent)
			require.ErrorIs(t, err, client.ErrNotAnIntent)
		}
		const broken = "a\xffb"
		for _, call := range []func() error{
			func() error {
				_, err := c.PlaceOrder(t.Context(), "k", client.NewOrder{Currency: "JPY", Lines: []client.Line{{Name: broken}}})
				return err
			},
			func() error {
				_, err := c.ConfirmPayment(t.Context(), "k", "o-1", client.Payment{Amount: 1, Method: broken})
				return err
			},
			func() error {
				_, err := c.CancelOrder(t.Context(), "k", "o-1", broken)
				return err
			},
			func() error {
				_, err := c.PostJournalEntry(t.Context(), client.Posting{Lines: []client.EntryLine{{Account: broken}}})
				return err
			},
		} {
			require.ErrorContains(t, call(), "UTF-8")
		}
		assert.Empty(t, server.seen())
		var unknown *client.UnknownOutcome
		assert.NotErrorAs(t, err, &unknown)
	})(t)
}

// A caller that asks for *Error first must not take an unknown outcome for a refusal.
func TestAnUnknownOutcomeIsNoErrorOfTheService(t *testing.T) {
	inBubble(func(t *testing.T) {
		for _, last := range []client.Code{client.CodeOutcomeUnknown, client.CodeUnauthenticated} {
			err := confirm(t.Context(), served(t, scripted(t, reply{Lost: "reset"}, reply{Problem: last}), client.WithTries(2)))
			var unknown *client.UnknownOutcome
			require.ErrorAs(t, err, &unknown)
			assert.Equal(t, last, client.CodeOf(unknown.Last))
			assert.Empty(t, client.CodeOf(err))
			var none *client.NoAnswer
			require.ErrorAs(t, err, &none)
		}
	})(t)
}

func TestAnObserverIsToldOfEachTry(t *testing.T) {
	inBubble(func(t *testing.T) {
		var observed tries
		server := scripted(t, reply{Lost: "timeout"},
			reply{Problem: client.CodeInProgress, Headers: map[string]string{"Retry-After": "2"}}, reply{Status: 502},
			reply{Lost: "cut"}, reply{Receipt: true})
		c := served(t, server, client.WithObserver(observed.observe), client.WithTryTimeout(time.Second))
		require.NoError(t, confirm(t.Context(), c))
		told, asked := observed.told(), server.seen()
		require.Len(t, told, 5)
		ids := map[string]bool{}
		for i, try := range told {
			assert.Equal(t, i+1, try.Number)
			assert.Equal(t, client.Intent("k"), try.Key)
			assert.Equal(t, client.OpConfirmPayment, try.Operation)
			assert.Equal(t, asked[i].requestID, try.RequestID, "also when no answer came")
			assert.Equal(t, i < 4, try.Again)
			ids[try.RequestID] = true
			if i > 0 {
				assert.Equal(t, told[i-1].Wait, asked[i].at.Sub(asked[i-1].at)-told[i-1].Took)
			}
		}
		assert.Len(t, ids, 5, "each try has a request id of its own")
		statuses := []int{0, 409, 502, 200, 200}
		for i, status := range statuses {
			assert.Equal(t, status, told[i].Status)
		}
		require.ErrorIs(t, told[0].Err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, told[0].Took)
		assert.Equal(t, client.CodeInProgress, client.CodeOf(told[1].Err))
		assert.GreaterOrEqual(t, told[1].Wait, 2*time.Second)
		var unreadable *client.Unreadable
		require.ErrorAs(t, told[2].Err, &unreadable)
		require.Error(t, told[3].Err)
		require.NoError(t, told[4].Err)
		assert.Zero(t, told[4].Wait)
		assert.JSONEq(t, receipt, string(told[4].Answer.Body))
		assert.Equal(t, "2", told[1].Answer.Header.Get("Retry-After"))
		assert.Equal(t, []byte(receipt[:50]), told[3].Answer.Body, "as much of it as came")

		observed.all = nil
		c = served(t, scripted(t, reply{Status: 503}), client.WithObserver(observed.observe), client.WithTries(2))
		require.Error(t, confirm(t.Context(), c))
		require.Len(t, observed.told(), 2)
		assert.True(t, observed.told()[0].Again)
		assert.False(t, observed.told()[1].Again, "the budget is spent")
		assert.Zero(t, observed.told()[1].Wait)
	})(t)
}
