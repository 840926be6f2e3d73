package gormstore

import (
	"sync"
	"time"

	"kakutei/domain/order"
)

// familiar are orders that wait for their payment, as this store has seen them last, the latest of them: a reservation
// presumes that they still are as they were (presumed.go). So forgetting one costs a round trip, and remembering one that
// has changed since two.
type familiar struct {
	mu     sync.Mutex
	orders map[string]*orderRow
	ring   []string // of ids, in the order of coming; some may be forgotten already
	oldest int      // where the ring begins
	next   int      // where it ends: there is nobody
	bytes  int
}

const (
	// familiarAtMost is how many orders are remembered, and familiarBytes what their texts may take in all: half a kilobyte
	// comes to each of them.
	familiarAtMost = 1 << 14
	familiarBytes  = 16 << 20
)

func newFamiliar() *familiar {
	return &familiar{orders: map[string]*orderRow{}, ring: make([]string, familiarAtMost+1)}
}

// see remembers the order if it waits for a payment, and forgets it otherwise.
func (f *familiar) see(row orderRow) {
	if f == nil || row.ID == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(row.ID)
	if row.Status != string(order.Placed) {
		return
	}
	f.ring[f.next] = row.ID
	f.orders[row.ID] = &row
	f.bytes += row.length()
	f.next = (f.next + 1) % len(f.ring)
	if f.next == f.oldest {
		f.forgetOldest()
	}
	for f.bytes > familiarBytes {
		f.forgetOldest()
	}
}

// forgetOldest passes each place of the ring once, so that remembering takes no longer when the texts are long.
func (f *familiar) forgetOldest() {
	f.forget(f.ring[f.oldest])
	f.oldest = (f.oldest + 1) % len(f.ring)
}

// take is the customer's order as it was seen last, once: who presumes wrongly does not do so again.
func (f *familiar) take(id order.ID, customer string) (orderRow, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := f.orders[string(id)]
	if row == nil || row.CustomerID != customer {
		return orderRow{}, false
	}
	f.forget(row.ID)
	return *row, true
}

func (f *familiar) forget(id string) {
	if row := f.orders[id]; row != nil {
		f.bytes -= row.length()
		delete(f.orders, id)
	}
}

// length is what the texts of a row take that have no bound of their own.
func (r *orderRow) length() int { return len(r.ID) + len(r.CustomerID) + len(r.Lines) }

// clock is the store's time, as this process has heard it last.
type clock struct {
	mu    sync.Mutex
	store time.Time // what it was
	here  time.Time // when that was heard: the store's clock has gone on since before it
}

// hear takes the later of two times, whichever comes first: what is carried on may then fall back by as long as that one has
// been on its way, but never runs ahead. What is too old is no longer compared with.
func (c *clock) hear(store, here time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if store.After(c.store) || here.Sub(c.here) > leftFor {
		c.store, c.here = store, here
	}
}

// now is never ahead of the store's clock. False: too long ago has it been heard.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return carriedOn(c.store, c.here)
}

// carriedOn is a time of the store's that was heard a while ago, and so long after. False: it was too long ago.
func carriedOn(store, here time.Time) (time.Time, bool) {
	age := time.Since(here)
	return store.Add(age).Truncate(time.Microsecond), age <= leftFor
}
