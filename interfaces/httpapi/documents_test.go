package httpapi_test

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/interfaces/httpapi"
)

// published is the table of docs/contract.md, Problems.
var published = []struct {
	code   fault.Code
	status int
	retry  fault.Advice
}{
	{"idempotency_key_missing", 400, fault.AfterFix},
	{"idempotency_key_invalid", 400, fault.AfterFix},
	{"invalid_request", 400, fault.AfterFix},
	{"unauthenticated", 401, fault.AfterFix},
	{"forbidden", 403, fault.AfterFix},
	{"payload_too_large", 413, fault.AfterFix},
	{"unsupported_media_type", 415, fault.AfterFix},
	{"not_found", 404, fault.AfterFix},
	{"method_not_allowed", 405, fault.AfterFix},
	{"order_not_found", 404, fault.AfterFix},
	{"idempotency_in_progress", 409, fault.SameKey},
	{"payment_in_progress", 409, fault.SameKey},
	{"invalid_state", 409, fault.NewKey},
	{"lease_alive", 409, fault.SameKey},
	{"charge_found", 409, fault.AfterFix},
	{"idempotency_key_reused", 422, fault.NewKey},
	{"amount_mismatch", 422, fault.NewKey},
	{"payment_declined", 402, fault.NewKey},
	{"duplicate_operation", 409, fault.Never},
	{"outcome_unknown", 503, fault.SameKey},
	{"rate_limited", 429, fault.SameKey},
	{"unavailable", 503, fault.SameKey},
	{"internal", 500, fault.SameKey},
}

func TestEveryPublishedCodeHasItsStatusAndItsPage(t *testing.T) {
	e := onMemory(t)
	for _, p := range published {
		t.Run(string(p.code), func(t *testing.T) {
			document, err := httpapi.Documents{}.Problem(fault.New(p.code, p.retry, "why"))
			require.NoError(t, err)
			var problem map[string]any
			require.NoError(t, json.Unmarshal(document, &problem))
			assert.InDelta(t, p.status, problem["status"], 0)
			assert.Equal(t, "/problems/"+string(p.code), problem["type"])
			assert.NotEmpty(t, problem["title"])

			page := e.send(t, request{method: http.MethodGet, path: problem["type"].(string)})
			require.Equal(t, http.StatusOK, page.status)
			assert.Contains(t, page.body, "<code>"+string(p.code)+"</code>")
			assert.Contains(t, page.body, "<code>retry: "+string(p.retry)+"</code>")
		})
	}
}

func TestNoOtherCodeIsPublished(t *testing.T) {
	for _, code := range []fault.Code{"", "lease_lost", "order not found", "Internal"} {
		_, err := httpapi.Documents{}.Problem(fault.New(code, fault.NewKey, "why"))
		require.Error(t, err, code)
	}
	e := onMemory(t)
	for _, code := range []string{"lease_lost", "internal%00", "INTERNAL"} {
		e.send(t, request{method: http.MethodGet, path: "/problems/" + code}).isProblem(t, 404, "not_found")
	}
}

func TestTheFaultsOfTheInnerLayersArePublishedWithTheirAdvice(t *testing.T) {
	advice := map[fault.Code]fault.Advice{}
	for _, p := range published {
		advice[p.code] = p.retry
	}
	for _, f := range []*fault.Fault{
		order.ErrNotFound, order.ErrAmountMismatch, order.ErrInvalidState, order.ErrPaymentInProgress,
		payment.ErrDeclined, idempotency.ErrInProgress, idempotency.ErrKeyReused, idempotency.ErrOutcomeUnknown,
		idempotency.ErrNotFound, port.ErrUnavailable, fault.Invalid(), httpapi.ErrUnauthenticated,
	} {
		assert.Equal(t, advice[f.Code()], f.Advice(), f.Code())
	}
}

func TestAProblemDocumentHasItsMembersInOrder(t *testing.T) {
	refusal := fault.New("invalid_state", fault.NewKey, `an "odd" <detail> & é`).
		With("orderStatus", order.Cancelled).With("extra", []int{1})
	document, err := httpapi.Documents{}.Problem(refusal)
	require.NoError(t, err)
	//nolint:testifylint // the bytes are stored and compared, not only what they mean
	assert.Equal(t, `{"type":"/problems/invalid_state","title":"The order's state does not allow this","status":409,`+
		`"detail":"an \"odd\" <detail> & é","code":"invalid_state","retry":"new-key",`+
		`"orderStatus":"CANCELLED","extra":[1]}`,
		string(document))
}

func TestViolationsAreNamedByPointersIntoTheBody(t *testing.T) {
	document, err := httpapi.Documents{}.Problem(fault.Invalid(
		fault.Violation{Field: "lines/0/quantity", Detail: "must be 1 to 9999"},
		fault.Violation{Detail: "the whole is wrong"},
	))
	require.NoError(t, err)
	assert.Contains(t, string(document), `"detail":"lines/0/quantity: must be 1 to 9999"`)
	assert.Contains(t, string(document), `"errors":[{"pointer":"/lines/0/quantity","detail":"must be 1 to 9999"},`+
		`{"pointer":"","detail":"the whole is wrong"}]}`)
}

func TestAProblemIsNotChangedByBeingWritten(t *testing.T) {
	refusal := payment.Decline{Code: "card_declined"}.Refusal().Because(os.ErrClosed)
	first, err := httpapi.Documents{}.Problem(refusal)
	require.NoError(t, err)
	second, err := httpapi.Documents{}.Problem(refusal)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
	assert.NotContains(t, string(first), os.ErrClosed.Error(), "causes are for the log")
	assert.NotContains(t, string(first), "requestId")
}

func TestAResultIsCompactAndLeavesTextsAsTheyAre(t *testing.T) {
	document, err := httpapi.Documents{}.Result(map[string]any{"name": "<煎茶> & \"sons\"", "n": 1})
	require.NoError(t, err)
	//nolint:testifylint // the bytes are stored and compared, not only what they mean
	assert.Equal(t, `{"n":1,"name":"<煎茶> & \"sons\""}`, string(document))
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	_, err := httpapi.Documents{}.Result(math.Inf(1))
	require.Error(t, err)
	_, err = httpapi.Documents{}.Problem(order.ErrInvalidState.With("odd", math.NaN()))
	require.Error(t, err)
}
