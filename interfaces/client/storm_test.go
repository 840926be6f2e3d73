package client_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// gate stands before a service. While it is shut, requests meet what it is shut with; it keeps when requests came.
type gate struct {
	open http.Handler
	shut http.Handler

	mu     sync.Mutex
	closed chan struct{} // until it opens; nil while it is open
	came   []time.Time
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

// openAgain lets requests through, those that wait at the gate first.
func (g *gate) openAgain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.came = append(g.came, time.Now())
	closed := g.closed
	g.mu.Unlock()
	switch {
	case closed == nil:
	case g.shut != nil:
		g.shut.ServeHTTP(w, r)
		return
	default: // nothing is answered, as by a process that sleeps
		select {
		case <-closed:
		case <-r.Context().Done():
			return
		}
	}
	g.open.ServeHTTP(w, r)
}

// arrivals are how long after the gate opened requests came.
func (g *gate) arrivals(opened time.Time) (after []time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, at := range g.came {
		if !at.Before(opened) {
			after = append(after, at.Sub(opened))
		}
	}
	slices.Sort(after)
	return after
}

// peak is the most of these within any window of this length.
func peak(arrivals []time.Duration, window time.Duration) (most int) {
	first := 0
	for last, at := range arrivals {
		for at-arrivals[first] >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

const (
	crowd = 200
	pause = 10 * time.Second
)

// storm has a crowd pay at one moment, at which the service has just paused, and tells who came when it is back.
func storm(t *testing.T, shut http.Handler, options ...client.Option) []time.Duration {
	t.Helper()
	s := openShop()
	g := &gate{open: s.handler, shut: shut}
	// Waits are drawn by lot: of a thousand clients one has had its twelve tries within ten seconds.
	options = append([]client.Option{client.WithTries(2 * client.DefaultTries)}, options...)
	c, _ := onWire(t, shop{handler: g}, options...)
	orders := make([]string, crowd)
	for i := range orders {
		orders[i] = place(t, c).OrderID
	}

	g.close()
	paid := make(chan error, crowd)
	for _, id := range orders {
		go func() {
			receipt, err := c.ConfirmPayment(t.Context(), client.NewIntent(), id, payment)
			assert.Equal(t, id, receipt.OrderID)
			paid <- err
		}()
	}
	time.Sleep(pause) // the bubble's time
	opened := time.Now()
	g.openAgain()
	for range orders {
		require.NoError(t, <-paid, "nobody gives up over a pause of ten seconds")
	}
	assert.Equal(t, crowd, s.provider.Charges(), "each order is charged once")
	return g.arrivals(opened)
}

// pauses are the ways in which a service is not there for a while.
var pauses = map[string]struct {
	shut    http.Handler
	options []client.Option
}{
	"asleep, and nobody waits long for an answer": {nil, []client.Option{client.WithTryTimeout(2 * time.Second)}},
	"502 from a proxy": {
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), nil,
	},
	"503 that asks for one second": {
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"code":"unavailable","retry":"same-key"}`))
		}), nil,
	},
	"connections are reset": {
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), nil,
	},
}

// Two hundred who have failed at the same moment come back over seconds. Without jitter they come together: the limit is
// far from both.
func TestACrowdDoesNotStampedeWhenAPausedServiceIsBack(t *testing.T) {
	for name, p := range pauses {
		t.Run(name, inBubble(func(t *testing.T) {
			arrivals := storm(t, p.shut, p.options...)
			t.Logf("%d requests after the pause; at most %d in 100 ms, %d in 1 s",
				len(arrivals), peak(arrivals, 100*time.Millisecond), peak(arrivals, time.Second))
			assert.Less(t, peak(arrivals, 100*time.Millisecond), crowd/4)
			assert.Less(t, len(arrivals), 2*crowd, "hardly anybody comes twice")
		}))
	}
}

func TestWithoutJitterACrowdWouldStampede(t *testing.T) {
	inBubble(func(t *testing.T) {
		arrivals := storm(t, pauses["502 from a proxy"].shut, client.WithoutJitter)
		assert.Equal(t, crowd, peak(arrivals, 100*time.Millisecond))
	})(t)
}

// A service that only sleeps is waited for: its answers come when it wakes up, and nobody has to come again.
func TestACrowdThatWaitsForASleeperDoesNotComeAgain(t *testing.T) {
	inBubble(func(t *testing.T) {
		assert.Empty(t, storm(t, nil))
	})(t)
}
