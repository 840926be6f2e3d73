package client

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Option changes how a client works. A value that makes no sense is an error of New or With.
type Option func(*Client) error

// WithToken is who calls: the bearer token, sent with every request.
func WithToken(token string) Option {
	return func(c *Client) error {
		c.token = token
		return nil
	}
}

// WithHTTPClient sends through h, e.g. with another transport. It is copied. If it has no redirect policy, redirects are
// not followed. Its Timeout, if any, ends a try like WithTryTimeout.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) error {
		if h == nil {
			return errors.New("client: there is no http.Client")
		}
		c.http = withoutRedirects(h)
		return nil
	}
}

// WithObserver has observe told of each try when it has ended, before the wait for the next one. It is called from the
// call's goroutine: it should be quick, and safe for concurrent use if the client is used so.
func WithObserver(observe func(Try)) Option {
	return func(c *Client) error {
		if observe == nil {
			return errors.New("client: there is no observer")
		}
		c.observer = observe
		return nil
	}
}

// WithTries is how often a call's request is sent at most, the first time included. 1 sends it once.
func WithTries(n int) Option {
	return func(c *Client) error {
		if n < 1 {
			return fmt.Errorf("client: a call has one try at least, not %d", n)
		}
		c.budget.tries = n
		return nil
	}
}

// WithTotalTime is what a call may take in all, waits included. A wait that would not end in time is not begun.
func WithTotalTime(d time.Duration) Option {
	return positive("total time", d, func(c *Client) { c.budget.total = d })
}

// WithTryTimeout is what one try may take, until the answer's last byte. It should be longer than the service takes in
// the worst case (the gateway timeout and five lock timeouts): a shorter one asks again while the first try still runs,
// which is harmless and answered 409.
func WithTryTimeout(d time.Duration) Option {
	return positive("time of a try", d, func(c *Client) { c.budget.try = d })
}

// WithBackoff is the range of the waits between tries: the n-th one is drawn evenly from 0 to lowest·2ⁿ⁻¹, to highest at
// most. What Retry-After says comes on top.
func WithBackoff(lowest, highest time.Duration) Option {
	return func(c *Client) error {
		if lowest <= 0 || highest < lowest {
			return fmt.Errorf("client: the backoff cannot go from %s to %s", lowest, highest)
		}
		c.pace.min, c.pace.max = lowest, highest
		return nil
	}
}

// WithMaxRetryAfter is how much of a Retry-After is heeded at most.
func WithMaxRetryAfter(d time.Duration) Option {
	return positive("longest Retry-After", d, func(c *Client) { c.pace.maxRetryAfter = d })
}

func positive(what string, d time.Duration, set func(*Client)) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("client: the %s must be positive, not %s", what, d)
		}
		set(c)
		return nil
	}
}
