package httpapi

import (
	"net/http"

	"kakutei/domain/fault"
)

// codeInternal is the code of a bug.
const codeInternal fault.Code = "internal"

// problem is what clients are told of a code, whatever the single case. What people are told beside it is among the texts
// of the pages (interfaces/web/texts).
type problem struct {
	code   fault.Code
	status int
	title  string
	retry  fault.Advice
}

// problems is the published list (docs/contract.md, Problems), in its order. No code is ever removed or changes its status:
// answers are stored and replayed, also by later versions.
var problems = []problem{
	{"idempotency_key_missing", http.StatusBadRequest, "The idempotency key is missing", fault.AfterFix},
	{"idempotency_key_invalid", http.StatusBadRequest, "The idempotency key is not valid", fault.AfterFix},
	{fault.CodeInvalid, http.StatusBadRequest, "The request is not valid", fault.AfterFix},
	{"unauthenticated", http.StatusUnauthorized, "Nobody is signed in", fault.AfterFix},
	{"forbidden", http.StatusForbidden, "This is not allowed", fault.AfterFix},
	{"payload_too_large", http.StatusRequestEntityTooLarge, "The request body is too large", fault.AfterFix},
	{"unsupported_media_type", http.StatusUnsupportedMediaType, "The media type is not supported", fault.AfterFix},
	{"not_found", http.StatusNotFound, "There is no such thing", fault.AfterFix},
	{"method_not_allowed", http.StatusMethodNotAllowed, "The method is not allowed here", fault.AfterFix},
	{"order_not_found", http.StatusNotFound, "There is no such order", fault.AfterFix},
	{"idempotency_in_progress", http.StatusConflict, "A request with this key is running", fault.SameKey},
	{"payment_in_progress", http.StatusConflict, "The order is being paid", fault.SameKey},
	{"invalid_state", http.StatusConflict, "The order's state does not allow this", fault.NewKey},
	{"lease_alive", http.StatusConflict, "The record's holder is alive", fault.SameKey},
	{"charge_found", http.StatusConflict, "The provider shows the charge", fault.AfterFix},
	{"idempotency_key_reused", http.StatusUnprocessableEntity, "The key belongs to another request", fault.NewKey},
	{"amount_mismatch", http.StatusUnprocessableEntity, "The amount is not the order's", fault.NewKey},
	{"payment_declined", http.StatusPaymentRequired, "The payment was declined", fault.NewKey},
	{"duplicate_operation", http.StatusConflict, "It was done before", fault.Never},
	{"outcome_unknown", http.StatusServiceUnavailable, "The outcome is not known yet", fault.SameKey},
	{"rate_limited", http.StatusTooManyRequests, "Too many requests", fault.SameKey},
	{"unavailable", http.StatusServiceUnavailable, "The service cannot do this right now", fault.SameKey},
	{codeInternal, http.StatusInternalServerError, "Something is wrong with the service", fault.SameKey},
}

var problemsByCode = func() map[fault.Code]problem {
	byCode := make(map[fault.Code]problem, len(problems))
	for _, p := range problems {
		byCode[p.code] = p
	}
	return byCode
}()
