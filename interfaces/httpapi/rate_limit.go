package httpapi

import (
	"sync"
	"time"

	"kakutei/domain/fault"
)

var errTooMany = fault.New("rate_limited", fault.SameKey, "the caller sends more requests than it may; nothing was done")

const (
	// burst is what a bucket holds, in seconds of its rate.
	burst = 2 * time.Second
	// maxBuckets is how many actors are remembered, some 10 MiB of them. Who is forgotten begins with a full bucket.
	maxBuckets = 1 << 16
)

// rates is a token bucket for each actor, of this instance alone. A bucket is the moment at which it is full again (the
// generic cell rate algorithm): a request puts it off by the time that a token takes to come, and it may lie ahead as far
// as the burst.
type rates struct {
	each time.Duration // the time in which a token comes

	mu sync.Mutex
	// A bucket that nobody has touched for the length of a burst is full, as if it had never been. So two generations
	// are enough, each as long as a burst, or as many actors as half of the bound.
	full, older map[string]time.Time
	since       time.Time // when the younger generation began
}

func newRates(perSecond int) *rates {
	if perSecond == 0 {
		return nil
	}
	return &rates{each: time.Second / time.Duration(perSecond), full: map[string]time.Time{}}
}

// withinRate takes a token from the caller's bucket. Error: errTooMany, with the time until one comes.
func (s *Server) withinRate(caller Caller) error {
	if s.rates == nil {
		return nil
	}
	if wait := s.rates.take(caller.Actor, s.config.Clock()); wait > 0 {
		return errTooMany.After(wait)
	}
	return nil
}

// take takes a token. If there is none it takes nothing and tells how long it takes until one comes.
func (r *rates) take(actor string, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= burst || len(r.full) >= maxBuckets/2 {
		r.full, r.older, r.since = map[string]time.Time{}, r.full, now
	}
	full, known := r.full[actor]
	if !known {
		full = r.older[actor]
	}
	if full.Before(now) {
		full = now
	}
	next := full.Add(r.each)
	if wait = next.Sub(now) - burst; wait > 0 {
		next = full
	}
	r.full[actor] = next
	return max(wait, 0)
}
