package client

import (
	"net/http"
	"time"
)

// RetryAfter is how much of a Retry-After is waited.
func RetryAfter(h http.Header, now time.Time, longest time.Duration) time.Duration {
	return retryAfter(h, now, longest)
}

// LongestWait is the wait after the n-th try if the jitter draws the most.
func (c *Client) LongestWait(n int, answered http.Header) time.Duration {
	p := c.pace
	p.draw = func(limit time.Duration) time.Duration { return limit }
	return p.after(n, answered, time.Now())
}

// Uniform draws a jitter.
func Uniform(limit time.Duration) time.Duration { return uniform(limit) }

// WithoutJitter has every wait be the longest, for tests that must see what jitter is good for.
func WithoutJitter(c *Client) error {
	c.pace.draw = func(limit time.Duration) time.Duration { return limit }
	return nil
}
