package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines are those of a log that have a text, once the service has ended.
func (r *running) lines(text string) (found []string) {
	for line := range strings.Lines(r.stderr.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestARequestIsALineAndAConflictAnotherUnderOneID(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	order := r.placed("place-1f0c")
	require.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-1f0c", thousand).status)
	reused := r.post(order+"/confirm-payment", "pay-1f0c", `{"amount":999,"currency":"JPY"}`)
	require.Equal(t, http.StatusUnprocessableEntity, reused.status)
	r.stop()

	requests := r.lines(`"msg":"request"`)
	require.Len(t, requests, 3)
	conflicts := r.lines(`"event":"mismatch"`)
	require.Len(t, conflicts, 1)
	id := member(t, reused.body, "requestId")
	assert.Equal(t, id, member(t, conflicts[0], "requestId"), "found by what the client was told")
	assert.Equal(t, id, member(t, requests[2], "requestId"))
	assert.Equal(t, "idempotency_key_reused", member(t, requests[2], "code"))
	assert.Equal(t, member(t, requests[2], "keyHash"), member(t, conflicts[0], "keyHash"))
	assert.Equal(t, 1, strings.Count(requests[2], `"requestId"`), "once in a line")
}

func TestRequestsAreNoLinesWhereOnlyWarningsAreLogged(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_LOG_LEVEL": "warn"})
	order := r.placed("place-1f0c")
	require.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-1f0c", thousand).status)
	r.stop()
	assert.Empty(t, r.lines(`"msg":"request"`))
}

// Secrets and keys are planted wherever a request has room for them, on the loudest level.
func TestWhatIsPlantedInARequestIsInNoLineOfTheLog(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_LOG_LEVEL": "debug"})
	order := r.placed("place-1f0c")
	for _, method := range []string{"pm_ok", "pm_declined", "pm_lost_answer", "pm_down"} {
		placed := r.placed("place-1f0c-" + method)
		for range 2 {
			r.post(placed+"/confirm-payment", "pay-1f0c-"+method, paidBy(method))
			r.post(placed+"/confirm-payment", "pay-1f0c-"+method, `{"amount":1,"currency":"JPY"}`)
		}
	}
	for path, token := range map[string]string{
		"/api/idempotency-keys/pay-1f0c?operation=ConfirmPayment": "demo-alice",
		"/api/idempotency-keys/pay-1f0c":                          "demo-alice",
		"/api/idempotency-keys/pay-1f0c?operation=pay-1f0c":       "s3cret-1f0c",
		"/pay-1f0c?token=s3cret-1f0c":                             "demo-1f0c@1f0c@1f0c",
		"/api/audit?kind=1f0c":                                    "demo-operator",
	} {
		_, err := r.sendAs(token, http.MethodGet, path, "", "")
		require.NoError(t, err)
	}
	_, err := r.sendAs("demo-alice", http.MethodPost, order+"/cancel", `pay-1f0c" "1f0c`, `{"reason":"1f0c"}`)
	require.NoError(t, err)
	r.stop()
	assert.NotContains(t, r.stderr.String(), "1f0c")
	assert.NotContains(t, r.stderr.String(), "demo-alice")
	assert.Contains(t, r.stderr.String(), `"event":"mismatch"`)
}
