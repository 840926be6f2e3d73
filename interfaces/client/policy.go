package client

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Advice is the service's instruction about what to do with a request (docs/contract.md, Problems).
type Advice string

// The published advices.
const (
	SameKey  Advice = "same-key"  // the identical request may be sent again; the client does that by itself
	NewKey   Advice = "new-key"   // this key's answer is final; correct the intent and use a new one
	AfterFix Advice = "after-fix" // the request was wrong and used no key; fix it, the same key may be used
	Never    Advice = "never"     // it is done already
)

// problem is what the policy reads of a problem document (RFC 9457), and what errors tell of it.
type problem struct {
	Code   Code   `json:"code"`
	Retry  Advice `json:"retry"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// problemIn reads the service's own word. A document without code and advice is somebody else's: a proxy's, say.
func problemIn(body []byte) (problem, bool) {
	var p problem
	if err := json.Unmarshal(body, &p); err != nil || p.Code == "" || p.Retry == "" {
		return problem{}, false
	}
	return p, true
}

// again is the whole decision about an answer that is no success: what a problem advises, else what the status
// suggests. A try without an answer is repeated anyhow. docs/retry-decisions.json has it as data.
func again(status int, body []byte) bool {
	if p, said := problemIn(body); said {
		return p.Retry == SameKey
	}
	return status == http.StatusConflict || status == http.StatusTooManyRequests || status >= 500
}

// pace is how long to wait between tries.
type pace struct {
	min, max      time.Duration // of the backoff's range
	maxRetryAfter time.Duration
	draw          func(limit time.Duration) time.Duration // from 0 to limit
}

// uniform is full jitter: clients that failed at the same moment must not come again at the same moment.
func uniform(limit time.Duration) time.Duration { return rand.N(limit + 1) } //nolint:gosec // jitter is no secret

// after is the wait after the n-th try. What the service has asked for is waited whole, and the jitter comes on top of
// it: else all whom it has told "1" would be back together after one second.
func (p pace) after(n int, answered http.Header, now time.Time) time.Duration {
	limit := p.min
	for i := 1; i < n && limit < p.max; i++ {
		limit *= 2
	}
	return retryAfter(answered, now, p.maxRetryAfter) + p.draw(min(limit, p.max))
}

// retryAfter is the wait that the header asks for (RFC 9110 §10.2.3: whole seconds or a date), 0 to longest. What
// cannot be read asks for none. A date is compared with the answer's own Date, so that a clock that is wrong here does
// not matter.
func retryAfter(h http.Header, now time.Time, longest time.Duration) time.Duration {
	text := strings.Trim(strings.Join(h.Values("Retry-After"), ", "), " \t") // as browsers tell it: two are none
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(longest/time.Second) { // more digits than fit are long enough, too
			return longest
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), longest)
}
