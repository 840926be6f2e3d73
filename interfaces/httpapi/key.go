package httpapi

import (
	"net/http"
	"strings"

	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

// Headers of draft-ietf-httpapi-idempotency-key-header-07 and their companions.
const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotent-Replayed"
)

// pathPolicy is where the key policy is published, as the draft's section 2 asks.
const pathPolicy = "/docs/idempotency"

var (
	errKeyMissing = fault.New("idempotency_key_missing", fault.AfterFix, "this request needs an Idempotency-Key header")
	errKeyInvalid = fault.New("idempotency_key_invalid", fault.AfterFix, "the Idempotency-Key header is not one key")
)

// keyIn reads the Idempotency-Key header: one line with the bare key, or with the key as a Structured Field String (RFC
// 9651 §3.3.3). The only escapes of such a string stand for " and \, which no key has: what is between the quotes is
// the key as it is. Errors: errKeyMissing, errKeyInvalid.
func keyIn(h http.Header) (idempotency.Key, error) {
	lines := h[headerKey]
	if len(lines) > 1 {
		return "", errKeyInvalid.Saying("there is more than one Idempotency-Key header")
	}
	text := strings.Trim(strings.Join(lines, ""), " \t")
	if text == "" {
		return "", errKeyMissing
	}
	if quoted, isQuoted := strings.CutPrefix(text, `"`); isQuoted {
		var ends bool
		if text, ends = strings.CutSuffix(quoted, `"`); !ends {
			return "", errKeyInvalid.Saying("the Idempotency-Key header is not one string in double quotes")
		}
	}
	key, err := idempotency.NewKey(text)
	if err != nil {
		return "", errKeyInvalid.Saying("the Idempotency-Key header is not one key of 1 to %d visible ASCII "+
			`characters except " \ , ;`, idempotency.MaxKeyLength).Because(err)
	}
	return key, nil
}
