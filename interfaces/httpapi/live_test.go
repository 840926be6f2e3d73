package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/live"
)

// watched is an edge whose executor tells a feed.
func watched(t *testing.T) (edge, *live.Feed) {
	t.Helper()
	feed, work := live.NewFeed(time.Now), memory.New(time.Now)
	e := open(t, work, func(c *httpapi.Config) {
		c.Live = feed
		c.Till.Observer = feed
		c.Till.Executor = idempotent.New(work, httpapi.Documents{}, feed, storetest.Times)
	})
	return e, feed
}

// stream is a live view that is open.
type stream struct {
	*http.Response
	lines *bufio.Scanner
	leave func()
}

// look opens the actor's live view at a server's address.
func look(t *testing.T, address, actor string) stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/live?actor="+actor, nil)
	require.NoError(t, err)
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return stream{response, bufio.NewScanner(response.Body), cancel}
}

// message is one server-sent event.
type message struct {
	name string
	data map[string]any
}

// next is the next message; none when the stream has ended.
func (s stream) next(t *testing.T) (m message, more bool) {
	t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		if name, is := strings.CutPrefix(line, "event: "); is {
			m.name = name
		}
		if data, is := strings.CutPrefix(line, "data: "); is {
			require.NoError(t, json.Unmarshal([]byte(data), &m.data), line)
		}
		if line == "" && m.name != "" {
			return m, true
		}
	}
	return message{}, false
}

// until reads up to the record's message that tells this, and returns all.
func (s stream) until(t *testing.T, what port.Happening) (all []message) {
	t.Helper()
	for {
		m, more := s.next(t)
		require.True(t, more, "the stream has ended before %s", what)
		all = append(all, m)
		if m.name == "record" && m.data["what"] == string(what) {
			return all
		}
	}
}

func TestTheLiveViewShowsAPaymentAsItHappens(t *testing.T) {
	e, _ := watched(t)
	order := e.place(t)
	s := look(t, e.address, "alice")
	assert.Equal(t, "text/event-stream", s.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", s.Header.Get("Cache-Control"))
	paid := e.send(t, confirming(order).key("k-1")).is(t, http.StatusOK)
	var told []string
	var last map[string]any
	for _, m := range s.until(t, port.Completed) {
		if m.name == "book" {
			told = append(told, "book")
			assert.Equal(t, order, m.data["orderId"])
			line := m.data["lines"].([]any)[0].(map[string]any)
			assert.Equal(t, "approved", line["status"])
			assert.InDelta(t, 1000, line["amount"], 0)
			continue
		}
		last = m.data
		told = append(told, last["what"].(string))
		assert.Equal(t, "k-1", last["idempotencyKey"])
	}
	assert.Equal(t, []string{"reserved", "book", "called", "completed"}, told)
	record, err := json.Marshal(last["record"].(map[string]any)["answer"])
	require.NoError(t, err)
	assert.JSONEq(t, paid.body, string(record), "the stored answer is what was sent")
}

func TestTheLiveViewShowsThatTheAnswerWasLostAndTheMoneyIsGone(t *testing.T) {
	e, _ := watched(t)
	order := e.place(t)
	s := look(t, e.address, "alice")
	e.provider.Next(storetest.Losing(storetest.Approving))
	e.send(t, confirming(order)).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	all := s.until(t, port.Abandoned)
	called := all[len(all)-2]
	if called.name == "book" {
		called = all[len(all)-3]
	}
	assert.Equal(t, true, called.data["unanswered"])
	book := all[1]
	require.Equal(t, "book", book.name)
	assert.Len(t, book.data["lines"], 1)
}

func TestTheLiveViewIsOfOneActor(t *testing.T) {
	e, _ := watched(t)
	s := look(t, e.address, "bob")
	order := e.place(t)
	e.send(t, confirming(order)).is(t, http.StatusOK)
	e.send(t, placing().token("demo-bob")).is(t, http.StatusCreated)
	m, more := s.next(t)
	require.True(t, more)
	assert.Equal(t, string(checkout.OpPlaceOrder), m.data["operation"], "the first that is told is bob's own")
}

func TestTheLiveViewNeedsAnActor(t *testing.T) {
	e, _ := watched(t)
	for _, query := range []string{"", "?actor=", "?actor=a@b", "?actor=a%20b", "?other=alice"} {
		e.send(t, get("/api/live"+query)).isProblem(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestWithoutAFeedThereIsNoLiveView(t *testing.T) {
	onMemory(t).send(t, get("/api/live?actor=alice")).isProblem(t, http.StatusNotFound, "not_found")
}

func TestOnlookersBeyondTheBoundAreRefusedUntilOneHasGone(t *testing.T) {
	e, _ := watched(t)
	first := look(t, e.address, "alice")
	for range live.MaxStreams - 1 {
		look(t, e.address, "alice")
	}
	refused := e.send(t, get("/api/live?actor=alice")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	assert.NotEmpty(t, refused.header.Get("Retry-After"))
	first.leave()
	again := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.address+"/api/live?actor=alice", nil)
		if err != nil {
			return false
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}
	assert.Eventually(t, again, 20*time.Second, 10*time.Millisecond, "who has hung up takes no place")
}

// The limits of the server are for requests that end.
func TestTheLiveViewOutlivesTheServersTimeouts(t *testing.T) {
	e, _ := watched(t)
	server := httptest.NewUnstartedServer(e.server)
	const short = 50 * time.Millisecond
	server.Config.ReadTimeout, server.Config.WriteTimeout = short, short
	server.Start()
	t.Cleanup(server.Close)
	s := look(t, server.Listener.Addr().String(), "alice")
	time.Sleep(4 * short) // what is looked for is that nothing happens in that time
	e.send(t, placing()).is(t, http.StatusCreated)
	_, more := s.next(t)
	assert.True(t, more)
	s.leave()
}

func TestTheLiveViewEndsWhenTheServiceDrains(t *testing.T) {
	e, _ := watched(t)
	s := look(t, e.address, "alice")
	e.server.Drain()
	_, more := s.next(t)
	assert.False(t, more)
	require.NoError(t, s.lines.Err(), "it ends as it should")
	e.send(t, get("/api/live?actor=alice")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
}
