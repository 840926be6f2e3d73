package client_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// C112: every script is played over HTTP, in a bubble's time.
func TestThePublishedScripts(t *testing.T) {
	for _, s := range published(t).Scripts {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var observed tries
				server := scripted(t, s.Answers...)
				c := served(t, server, client.WithTries(s.Tries), client.WithObserver(observed.observe))
				began, intent := time.Now(), client.NewIntent()
				paid, err := c.ConfirmPayment(t.Context(), intent, "o-1", payment)
				took := time.Since(began)

				assert.Equal(t, s.Decision, decisionOf(t, err))
				asked := server.seen()
				assert.Len(t, asked, s.Requests)
				for _, r := range asked {
					assert.Equal(t, string(intent), r.key)
					assert.JSONEq(t, `{"amount":1000,"currency":"JPY"}`, string(r.body))
					assert.Equal(t, asked[0].body, r.body, "byte for byte")
				}
				assert.GreaterOrEqual(t, took, time.Duration(s.MinSeconds)*time.Second)
				if err == nil {
					assert.Equal(t, "p-1", paid.PaymentID)
					assert.Equal(t, s.Requests, paid.Answer.Tries)
				}
				assert.Len(t, observed.told(), s.Requests)
			})
		})
	}
}

func TestEveryPublishedProblemIsObeyed(t *testing.T) {
	for _, p := range published(t).Problems {
		t.Run(string(p.Code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := scripted(t, reply{Problem: p.Code}, reply{Receipt: true})
				_, err := served(t, server).ConfirmPayment(t.Context(), "k", "o-1", payment)
				if p.Decision == "again" {
					require.NoError(t, err)
					assert.Len(t, server.seen(), 2)
					return
				}
				require.Equal(t, "refused", p.Decision)
				var refused *client.Error
				require.ErrorAs(t, err, &refused)
				assert.Len(t, server.seen(), 1)
				assert.Equal(t, p.Code, refused.Code)
				assert.Equal(t, p.Retry, refused.Retry)
				assert.Equal(t, p.Status, refused.Status)
				assert.Equal(t, server.seen()[0].requestID, refused.RequestID)
				assert.Equal(t, client.Intent("k"), refused.Key)
				assert.Equal(t, client.OpConfirmPayment, refused.Operation)
				assert.Equal(t, "detail of "+string(p.Code), refused.Detail)
				assert.Equal(t, p.Code, client.CodeOf(err))
			})
		})
	}
}

func TestEveryPublishedAnswerIsJudged(t *testing.T) {
	for _, a := range published(t).Answers {
		t.Run(a.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := scripted(t, reply{Status: a.Status, Headers: a.Headers, Body: a.Body}, reply{Receipt: true})
				_, err := served(t, server).ConfirmPayment(t.Context(), "k", "o-1", payment)
				if a.Decision == "again" {
					require.NoError(t, err)
					assert.Len(t, server.seen(), 2)
					return
				}
				assert.Equal(t, a.Decision, decisionOf(t, err))
				assert.Len(t, server.seen(), 1)
				if a.Decision != "unknown" {
					return
				}
				var unknown *client.UnknownOutcome
				require.ErrorAs(t, err, &unknown)
				require.ErrorIs(t, err, client.ErrNotSettled)
				assert.Equal(t, a.Status, unknown.Status)
				var unreadable *client.Unreadable
				require.ErrorAs(t, unknown.Last, &unreadable)
				assert.Equal(t, a.Body, string(unreadable.Answer.Body))
				assert.NotEmpty(t, err.Error())
			})
		})
	}
}

func TestThePublishedWaits(t *testing.T) {
	now := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	for _, w := range published(t).Waits {
		h := http.Header{"Retry-After": {w.RetryAfter}}
		if w.Date != "" {
			h.Set("Date", w.Date)
		}
		assert.Equal(t, time.Duration(w.Seconds)*time.Second, client.RetryAfter(h, now, 30*time.Second), "%v", h)
	}
	assert.Zero(t, client.RetryAfter(nil, now, time.Second))
	twice := http.Header{"Retry-After": {"3", "4"}}
	assert.Zero(t, client.RetryAfter(twice, now, time.Minute), "a browser tells it as the published \"3, 4\"")
	wrong := now.Add(-24 * time.Hour)
	h := http.Header{"Date": {now.Format(http.TimeFormat)}, "Retry-After": {now.Add(5 * time.Second).Format(http.TimeFormat)}}
	assert.Equal(t, 5*time.Second, client.RetryAfter(h, wrong, time.Minute), "a clock that is wrong here does not matter")
	assert.Equal(t, 1500*time.Millisecond, client.RetryAfter(http.Header{"Retry-After": {"2"}}, now, 1500*time.Millisecond))
}

func TestTheBackoffDoublesUpToItsLimitAndComesOnTopOfRetryAfter(t *testing.T) {
	c := newClient(t, "http://localhost", client.WithBackoff(100*time.Millisecond, time.Second),
		client.WithMaxRetryAfter(5*time.Second))
	var longest []time.Duration
	for n := range 7 {
		longest = append(longest, c.LongestWait(n+1, nil)/time.Millisecond)
	}
	assert.Equal(t, []time.Duration{100, 200, 400, 800, 1000, 1000, 1000}, longest)
	assert.Equal(t, time.Second, c.LongestWait(1_000_000, nil), "doubling does not wrap around")
	assert.Equal(t, 3*time.Second+200*time.Millisecond, c.LongestWait(2, http.Header{"Retry-After": {"3"}}))
	assert.Equal(t, 5*time.Second+200*time.Millisecond, c.LongestWait(2, http.Header{"Retry-After": {"3600"}}))
}

func TestTheJitterIsFull(t *testing.T) {
	const limit, draws = time.Second, 4000
	var tenths [10]int
	for range draws {
		d := client.Uniform(limit)
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, limit)
		tenths[min(int(d*10/limit), 9)]++
	}
	for i, n := range tenths { // 400 expected; 200 off would be ten standard deviations
		assert.InDelta(t, draws/10, n, 200, "tenth %d", i)
	}
	assert.Zero(t, client.Uniform(0))
}

func TestEveryCodeOfTheClientIsPublished(t *testing.T) {
	var codes []client.Code
	for _, p := range published(t).Problems {
		codes = append(codes, p.Code)
	}
	operators := []client.Code{"lease_alive", "charge_found"} // answers to operators' requests, which are not made here
	codes = slices.DeleteFunc(codes, func(c client.Code) bool { return slices.Contains(operators, c) })
	assert.Equal(t, []client.Code{
		client.CodeKeyMissing, client.CodeKeyInvalid, client.CodeInvalidRequest, client.CodeUnauthenticated,
		client.CodeForbidden, client.CodePayloadTooLarge, client.CodeUnsupportedMediaType, client.CodeNotFound,
		client.CodeMethodNotAllowed, client.CodeOrderNotFound, client.CodeInProgress, client.CodePaymentInProgress,
		client.CodeInvalidState, client.CodeKeyReused, client.CodeAmountMismatch, client.CodePaymentDeclined,
		client.CodeDuplicateOperation, client.CodeOutcomeUnknown, client.CodeRateLimited, client.CodeUnavailable,
		client.CodeInternal,
	}, codes)
}
