package httpapi

import (
	"net/http"

	"kakutei/domain/fault"
)

// codeInternal is the code of a bug.
const codeInternal fault.Code = "internal"

// problem is what clients and people are told of a code, whatever the single case.
type problem struct {
	code   fault.Code
	status int
	title  string
	retry  fault.Advice
	about  string // what happened
	advice string // what to do now
}

// problems is the published list (docs/contract.md, Problems), in its order. No code is ever removed or changes its status:
// answers are stored and replayed, also by later versions.
var problems = []problem{
	{
		"idempotency_key_missing", http.StatusBadRequest, "The idempotency key is missing", fault.AfterFix,
		"The request needs an Idempotency-Key header, and it has none or an empty one. Nothing was done.",
		"Make one key for the intent (a UUID, say), keep it before you send, and send it with every try.",
	},
	{
		"idempotency_key_invalid", http.StatusBadRequest, "The idempotency key is not valid", fault.AfterFix,
		"The Idempotency-Key header cannot be read as one key. Nothing was done.",
		"Send one header line with 1 to 255 visible ASCII characters, bare or in double quotes, without parameters.",
	},
	{
		fault.CodeInvalid, http.StatusBadRequest, "The request is not valid", fault.AfterFix,
		"The request breaks a published rule. The member errors names each part: pointer leads to it in the body (RFC " +
			"6901). Nothing was done, and the key was not used.",
		"Mend the parts named in errors. The same key may be used.",
	},
	{
		"unauthenticated", http.StatusUnauthorized, "Nobody is signed in", fault.AfterFix,
		"The request has no bearer token, or one that is not accepted.",
		"Send Authorization: Bearer with a valid token.",
	},
	{
		"forbidden", http.StatusForbidden, "This is not allowed", fault.AfterFix,
		"The caller may not do this, or the request was addressed to a host name that is not answered here.",
		"Use a token with the right role or company. In demo mode, call the service by a loopback name or address.",
	},
	{
		"payload_too_large", http.StatusRequestEntityTooLarge, "The request body is too large", fault.AfterFix,
		"A request body may have 64 KiB. Nothing was done, and the key was not used.",
		"Send less.",
	},
	{
		"unsupported_media_type", http.StatusUnsupportedMediaType, "The media type is not supported", fault.AfterFix,
		"Request bodies are application/json without a Content-Encoding. Nothing was done, and the key was not used.",
		"Send Content-Type: application/json and the JSON as it is.",
	},
	{
		"not_found", http.StatusNotFound, "There is no such thing", fault.AfterFix,
		"There is no such page, no record of this key, or no such entry for this caller.",
		"Check the address. A record of a key is kept for the time that the key policy names.",
	},
	{
		"method_not_allowed", http.StatusMethodNotAllowed, "The method is not allowed here", fault.AfterFix,
		"The address exists, but not for this method.",
		"Use one of the methods in the Allow header.",
	},
	{
		"order_not_found", http.StatusNotFound, "There is no such order", fault.AfterFix,
		"The caller has no order with this id. The key was not used.",
		"Check the order's id and whose token was sent.",
	},
	{
		"idempotency_in_progress", http.StatusConflict, "A request with this key is running", fault.SameKey,
		"The first request with this key has no outcome yet. A duplicate never waits for it.",
		"Wait as long as Retry-After says, then send the identical request again with the same key.",
	},
	{
		"payment_in_progress", http.StatusConflict, "The order is being paid", fault.SameKey,
		"The order's payment is running, or its outcome is not known yet, under another key; or the order is busy for " +
			"the moment. Nothing was done.",
		"Wait as long as Retry-After says, then send the identical request again with the same key.",
	},
	{
		"invalid_state", http.StatusConflict, "The order's state does not allow this", fault.NewKey,
		"What was asked is not possible in the order's state, which the member orderStatus names. This answer is final " +
			"for the key.",
		"Look at the order. A different intent needs a new key.",
	},
	{
		"lease_alive", http.StatusConflict, "The record's holder is alive", fault.SameKey,
		"The record cannot be released or resolved while a request is working on it.",
		"Wait as long as Retry-After says, then try again.",
	},
	{
		"charge_found", http.StatusConflict, "The provider shows the charge", fault.AfterFix,
		"The record was to be resolved as not charged, but the provider's list shows the charge of this attempt.",
		"Resolve it as charged, or refund the charge at the provider first.",
	},
	{
		"idempotency_key_reused", http.StatusUnprocessableEntity, "The key belongs to another request", fault.NewKey,
		"The key was used before, for a request that means something else. Nothing was done.",
		"Use a new key for a new intent. To repeat the first request, send exactly that one.",
	},
	{
		"amount_mismatch", http.StatusUnprocessableEntity, "The amount is not the order's", fault.NewKey,
		"The amount or currency differs from the order's. No money was taken. This answer is final for the key.",
		"Read the order, then confirm its amount and currency with a new key.",
	},
	{
		"payment_declined", http.StatusPaymentRequired, "The payment was declined", fault.NewKey,
		"The provider declined: the member declineCode tells why. No money was taken. The answer is final for the key.",
		"Pay the order with a new key, and with another payment method if the reason asks for it.",
	},
	{
		"duplicate_operation", http.StatusConflict, "It was done before", fault.Never,
		"The entry exists already, and the request asked to be told so (Prefer: handling=strict).",
		"Nothing. The member error names the entry that exists.",
	},
	{
		"outcome_unknown", http.StatusServiceUnavailable, "The outcome is not known yet", fault.SameKey,
		"The payment provider or the store gave no definite answer. The request may have had its effect or not.",
		"Wait as long as Retry-After says, then send the identical request again with the same key, not with a new one.",
	},
	{
		"rate_limited", http.StatusTooManyRequests, "Too many requests", fault.SameKey,
		"The caller has sent more requests than it may for the moment. Nothing was done.",
		"Wait as long as Retry-After says, then send the identical request again with the same key.",
	},
	{
		"unavailable", http.StatusServiceUnavailable, "The service cannot do this right now", fault.SameKey,
		"The store is away, or too much is at work already. Nothing was done.",
		"Wait as long as Retry-After says, then send the identical request again with the same key.",
	},
	{
		codeInternal, http.StatusInternalServerError, "Something is wrong with the service", fault.SameKey,
		"This is a bug. The service's log tells more under the request id.",
		"Report the request id. Sending the identical request again with the same key does no harm.",
	},
}

var problemsByCode = func() map[fault.Code]problem {
	byCode := make(map[fault.Code]problem, len(problems))
	for _, p := range problems {
		byCode[p.code] = p
	}
	return byCode
}()
