package httpapi_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/payment"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

func allowing(inFlight int) setting {
	return func(c *httpapi.Config) { c.MaxInFlight = inFlight }
}

// isShed checks that the answer is the one of a request that found no place.
func (a answer) isShed(t *testing.T) answer {
	t.Helper()
	a.isProblem(t, http.StatusServiceUnavailable, "unavailable")
	require.Equal(t, "same-key", a.member(t, "retry"))
	require.Equal(t, "1", a.header.Get("Retry-After"))
	return a
}

func TestWhatFindsNoPlaceIsShedAtOnceAndLeavesNoRecord(t *testing.T) {
	e := onMemory(t, allowing(2), scraped)
	orders := []string{e.place(t), e.place(t), e.place(t)}
	var held []*storetest.Held
	var paying sync.WaitGroup
	for _, id := range orders[:2] {
		h, call := storetest.Holding(storetest.Approving)
		e.provider.Next(call)
		held = append(held, h)
		paying.Go(func() {
			a, err := e.try(t.Context(), confirming(id))
			if assert.NoError(t, err) {
				assert.Equal(t, http.StatusOK, a.status, a.body)
			}
		})
		<-h.Reached
	}

	third := confirming(orders[2])
	shed := e.send(t, third).isShed(t)
	assert.Equal(t, third.header.Get("Idempotency-Key"), shed.header.Get("Idempotency-Key"))
	e.send(t, get("/api/orders/"+orders[0])).isShed(t)
	e.send(t, get("/api/audit").token("demo-operator")).isShed(t)
	e.send(t, confirming(orders[2]).token("nobody")).isShed(t) // it is shed before anybody looks at its token
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/", "/docs/idempotency", "/problems/unavailable"} {
		assert.Equal(t, http.StatusOK, e.send(t, get(path)).status, path)
	}
	e.send(t, get("/api/nothing")).isProblem(t, http.StatusNotFound, "not_found")
	r := get("/api/orders")
	e.send(t, r).isProblem(t, http.StatusMethodNotAllowed, "method_not_allowed")

	for _, h := range held {
		h.Release()
	}
	paying.Wait()
	e.send(t, outcomeOf(third, "ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
	e.send(t, third).is(t, http.StatusOK)
	assert.Len(t, e.log.lines(t, "requests are shed: as many as are allowed are at work"), 1, "one line for all of them")
	assert.NotContains(t, e.log.String(), `"level":"ERROR"`)
}

// crowding is a store that a test has crowded.
func crowding(crowded *atomic.Bool) setting {
	return func(c *httpapi.Config) { c.Crowded = crowded.Load }
}

func TestWhoeverHasNotBegunIsShedWhileTheStoreIsCrowdedAndWhoeverHasIsAnswered(t *testing.T) {
	var crowded atomic.Bool
	e := onMemory(t, allowing(2), crowding(&crowded), scraped)
	id, other := e.place(t), confirming(e.place(t))
	h, call := storetest.Holding(storetest.Approving)
	e.provider.Next(call)
	paid := make(chan answer, 1)
	go func() {
		a, err := e.try(t.Context(), confirming(id))
		assert.NoError(t, err)
		paid <- a
	}()
	<-h.Reached
	crowded.Store(true)

	for range 3 { // each gives its place back
		e.send(t, other).isShed(t)
	}
	e.send(t, get("/api/orders/"+id)).isShed(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		assert.Equal(t, http.StatusOK, e.send(t, get(path)).status, path)
	}
	h.Release()
	a := <-paid
	assert.Equal(t, http.StatusOK, a.status, "its completion is not turned away: "+a.body)

	crowded.Store(false)
	e.send(t, outcomeOf(other, "ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
	e.send(t, other).is(t, http.StatusOK)
	assert.Len(t, e.log.lines(t, "requests are shed: too many wait for the store's connections"), 1, "one line for all of them")
	assert.NotContains(t, e.log.String(), `"level":"ERROR"`)
}

func TestAPlaceIsGivenBackHoweverARequestEnds(t *testing.T) {
	e := onMemory(t, allowing(1))
	id := e.place(t)
	e.provider.Next(storetest.Panicking)
	for _, r := range []request{
		confirming(id), // a panic
		placing().token("nobody"),
		placing().saying("x"),
		placing().saying(string(make([]byte, 70<<10))),
		get("/api/orders/none"),
	} {
		require.NotEqual(t, http.StatusOK, e.send(t, r).status)
	}
	w := e.dial(t)
	w.say(t, placing().head("Content-Length: 200"))
	require.NoError(t, w.Close()) // a client that hangs up while its body is read
	require.Eventually(t, func() bool {
		return e.send(t, get("/api/orders/"+id)).status == http.StatusOK
	}, 10*time.Second, time.Millisecond)
}

// counter is a payment provider that serves so many at a time; whoever comes on top waits in its queue.
type counter struct {
	desks chan struct{}
	takes time.Duration

	mu            sync.Mutex
	waiting, most int
	charged       map[string]int
}

func newCounter(desks int, takes time.Duration) *counter {
	return &counter{desks: make(chan struct{}, desks), takes: takes, charged: map[string]int{}}
}

func (p *counter) come(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
	p.most = max(p.most, p.waiting)
}

// Charge implements payment.Gateway.
func (p *counter) Charge(_ context.Context, a payment.Attempt) (payment.Answer, error) {
	p.come(1)
	defer p.come(-1)
	p.desks <- struct{}{}
	defer func() { <-p.desks }()
	time.Sleep(p.takes) // the provider's work
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charged[a.GatewayKey()]++
	return payment.Charge{ID: "ch-" + a.GatewayKey(), Money: a.Money, ChargedAt: time.Now()}, nil
}

// Lookup implements payment.Gateway.
func (p *counter) Lookup(context.Context, string) ([]payment.Booking, error) { return nil, nil }

// load is what clients have seen.
type load struct {
	mu       sync.Mutex
	accepted []time.Duration // of each payment, how long it took
	shed     int
	other    []answer
}

func (l *load) median() time.Duration { return l.within(50) }

// within is the time that so many of a hundred accepted payments took at most.
func (l *load) within(ofHundred int) time.Duration {
	slices.Sort(l.accepted)
	return l.accepted[len(l.accepted)*ofHundred/100]
}

var orderID = regexp.MustCompile(`"orderId":"([^"]+)"`)

// busy has so many clients pay one order after the other until the time is over. They are impatient: who is shed comes
// back long before it is told to.
func (e edge) busy(t *testing.T, clients int, lasting time.Duration) *load {
	t.Helper()
	over, seen := time.Now().Add(lasting), &load{}
	insist := func(r request) (answer, bool) {
		for {
			begun := time.Now()
			a, err := e.try(t.Context(), r)
			if err != nil {
				assert.NoError(t, err)
				return a, false
			}
			took := time.Since(begun)
			seen.mu.Lock()
			switch {
			case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "1" &&
				strings.Contains(a.body, `"code":"unavailable"`):
				seen.shed++
			case a.status == http.StatusOK:
				seen.accepted = append(seen.accepted, took)
			case a.status != http.StatusCreated:
				seen.other = append(seen.other, a)
			}
			seen.mu.Unlock()
			if a.status != http.StatusServiceUnavailable {
				return a, a.status < http.StatusBadRequest
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for time.Now().Before(over) {
				placed, ok := insist(placing())
				if !ok {
					return
				}
				insist(confirming(orderID.FindStringSubmatch(placed.body)[1]))
			}
		})
	}
	all.Wait()
	return seen
}

func TestTenTimesTheLoadIsShedAndWhatIsAcceptedIsAnsweredAsBefore(t *testing.T) {
	const places = 4
	provider := newCounter(places, 100*time.Millisecond)
	// To hold the answers against the description would be work for the machine whose time is measured.
	e := onMemory(t, allowing(places), func(c *httpapi.Config) { c.Till.Gateway = provider }).undescribed()

	calm := e.busy(t, places, time.Second)
	assert.Zero(t, calm.shed, "this much is sustainable")
	assert.Empty(t, calm.other)

	stop, probed := make(chan struct{}), make(chan int)
	go func() {
		probes := 0
		defer func() { probed <- probes }()
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for _, path := range []string{"/healthz", "/readyz"} {
				a, err := e.try(t.Context(), get(path))
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusOK, a.status, path)
				}
				probes++
			}
		}
	}()
	storm := e.busy(t, 10*places, 2*time.Second)
	close(stop)
	probes := <-probed

	t.Logf("calm: %d accepted, median %s, p99 %s; ten times that: %d accepted, median %s, p99 %s, %d shed; %d probes",
		len(calm.accepted), calm.median(), calm.within(99),
		len(storm.accepted), storm.median(), storm.within(99), storm.shed, probes)
	assert.Empty(t, storm.other, "accepted or shed, nothing else")
	assert.Greater(t, storm.shed, len(storm.accepted))
	assert.Greater(t, len(storm.accepted), len(calm.accepted), "in twice the time: the work goes on")
	assert.Less(t, storm.median(), 4*calm.median(), "in a queue it would be ten times as long")
	assert.LessOrEqual(t, provider.most, places)
	assert.Positive(t, probes)
	assert.Len(t, provider.charged, len(calm.accepted)+len(storm.accepted))
	for key, times := range provider.charged {
		assert.Equal(t, 1, times, key)
	}
	assert.LessOrEqual(t, len(e.log.lines(t, "requests are shed: as many as are allowed are at work")), 2)
}
