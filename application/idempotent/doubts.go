package idempotent

import (
	"sync"

	"kakutei/domain/idempotency"
)

// doubts counts, per scope, the runs in a row whose commits the store has not answered. What such a run would have
// counted in its record may be lost with it, so this process remembers it: only the advised wait depends on it.
type doubts struct {
	mu    sync.Mutex
	times map[idempotency.Scope]int
}

// maxDoubts is how many scopes are remembered. When there are more, all are forgotten: the waits begin anew.
const maxDoubts = 10_000

// again counts one more run without an answer and tells how many there were.
func (d *doubts) again(s idempotency.Scope) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.times[s]; d.times == nil || !known && len(d.times) >= maxDoubts {
		d.times = map[idempotency.Scope]int{}
	}
	d.times[s]++
	return d.times[s]
}

// over forgets the scope: the store has answered.
func (d *doubts) over(s idempotency.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.times, s)
}
