//go:build ha

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notebook is what the clients have been told, and when.
type notebook struct {
	mu       sync.Mutex
	changed  chan struct{}
	answers  []noted
	payments []*insistence
	paid     map[string]bool // the orders whose payment was acknowledged, by path
}

// noted is one answer, or that none came.
type noted struct {
	sent, came time.Time
	what       string
	success    bool
}

func newNotebook() *notebook { return &notebook{changed: make(chan struct{}), paid: map[string]bool{}} }

func (b *notebook) note(p *insistence, sent time.Time, a answered, err error) {
	n := noted{sent: sent, came: time.Now(), what: "no answer"}
	if err == nil {
		var problem struct{ Code string }
		_ = json.Unmarshal([]byte(a.body), &problem)
		n.what = strings.TrimSpace(fmt.Sprint(a.status, " ", problem.Code))
		n.success = a.status == http.StatusOK || a.status == http.StatusCreated
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, n)
	if n.success && p.order != "" {
		b.paid[p.order] = true
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *notebook) add(p *insistence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.payments = append(b.payments, p)
}

// acknowledged are the orders that clients know to be paid.
func (b *notebook) acknowledged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.paid))
}

// since are the answers to requests that were sent after a moment, as they came.
func (b *notebook) since(moment time.Time) (after []noted, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.answers {
		if n.sent.After(moment) {
			after = append(after, n)
		}
	}
	return after, b.changed
}

// successes waits for so many to requests that were sent after a moment.
func (b *notebook) successes(t *testing.T, n int, moment time.Time) {
	t.Helper()
	late := time.After(patience)
	for {
		found, changed := b.since(moment)
		count := 0
		for _, a := range found {
			if a.success {
				count++
			}
		}
		if count >= n {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(t, "too few successes", "%d of %d", count, n)
		}
	}
}

// longestPause is the longest time without a success since a moment, up to the last success.
func (b *notebook) longestPause(since time.Time) (from, to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := since
	for _, n := range b.answers {
		if !n.success || n.came.Before(since) {
			continue
		}
		if n.came.Sub(last) > to.Sub(from) {
			from, to = last, n.came
		}
		last = n.came
	}
	return from, to
}

// between counts the answers that came in a time, by what they said.
func (b *notebook) between(from, to time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[string]int{}
	for _, n := range b.answers {
		if n.came.After(from) && n.came.Before(to) {
			counts[n.what]++
		}
	}
	var text []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%d × %s", counts[what], what))
	}
	return strings.Join(text, ", ")
}

// times are how long something took.
type times []time.Duration

func (d *times) add(took time.Duration) { *d = append(*d, took) }

func (d *times) String() string {
	sorted := slices.Sorted(slices.Values(*d))
	return fmt.Sprintf("median %s, worst %s", sorted[len(sorted)/2].Round(time.Millisecond),
		sorted[len(sorted)-1].Round(time.Millisecond))
}
