package client

// Code names a problem (docs/contract.md, Problems). A later version of the service may have more of them; Retry tells
// what to do about those, too.
type Code string

// The published codes, without those that only operators get: their requests are not made here.
const (
	CodeKeyMissing           Code = "idempotency_key_missing"
	CodeKeyInvalid           Code = "idempotency_key_invalid"
	CodeInvalidRequest       Code = "invalid_request"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeOrderNotFound        Code = "order_not_found"
	CodeInProgress           Code = "idempotency_in_progress"
	CodePaymentInProgress    Code = "payment_in_progress"
	CodeInvalidState         Code = "invalid_state"
	CodeKeyReused            Code = "idempotency_key_reused"
	CodeAmountMismatch       Code = "amount_mismatch"
	CodePaymentDeclined      Code = "payment_declined"
	CodeDuplicateOperation   Code = "duplicate_operation"
	CodeOutcomeUnknown       Code = "outcome_unknown"
	CodeRateLimited          Code = "rate_limited"
	CodeUnavailable          Code = "unavailable"
	CodeInternal             Code = "internal"
)
