package httpapi_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// Several requests on one connection, many connections at once, and connections that come to nothing.

// Whoever pipelines gets each answer in its turn, also where one request depends on the one before it.
func TestPipelinedRequestsSeeWhatTheOnesBeforeThemDid(t *testing.T) {
	beforeTheStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work)
		id := e.place(t)
		pay := confirming(id)
		requests := []request{
			get("/api/orders/" + id), pay, pay, pay.saying(`{"amount":7,"currency":"JPY"}`), cancelling(id),
			get("/api/orders/" + id), outcomeOf(pay, "ConfirmPayment"),
		}
		var all strings.Builder
		for i, r := range requests {
			all.WriteString(r.with("X-Request-Id", fmt.Sprint("pipelined-", i)).whole())
		}
		w := e.dial(t)
		w.say(t, all.String())
		answers := make([]answer, len(requests))
		for i := range requests {
			answers[i] = w.hear(t)
			assert.Equal(t, fmt.Sprint("pipelined-", i), answers[i].header.Get("X-Request-Id"))
		}
		assert.Equal(t, "PLACED", answers[0].is(t, http.StatusOK).member(t, "status"))
		paid := answers[1].is(t, http.StatusOK)
		answers[2].isReplayOf(t, paid)
		answers[3].isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		answers[4].isProblem(t, http.StatusConflict, "invalid_state")
		assert.Equal(t, paid.member(t, "paidAt"), answers[5].is(t, http.StatusOK).member(t, "paidAt"))
		assert.Contains(t, answers[6].is(t, http.StatusOK).body, `"response":`+paid.body)
	})
}

// C58: the provider answers just before or just after it is given up. Every answer on every connection is its request's,
// and what was unknown becomes known.
func TestNoConnectionGetsAnothersAnswerWhenTheProviderIsAsSlowAsItsTimeout(t *testing.T) {
	const connections, turns, timeout = 50, 2, 200 * time.Millisecond
	times := storetest.Times
	times.CallTimeout, times.LockTimeout = timeout, patience
	beforeTheStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work, func(c *httpapi.Config) {
			c.Till.Executor = idempotent.New(work, httpapi.Documents{}, c.Till.Observer, times)
		})
		asSlow := make([]storetest.Call, connections)
		for i := range asSlow {
			asSlow[i] = slowly(timeout-20*time.Millisecond+rand.N(40*time.Millisecond), storetest.Approving)
		}
		e.provider.Next(asSlow...)
		payments := make([]request, connections)
		for i := range payments {
			payments[i] = confirming(e.place(t))
		}
		var all sync.WaitGroup
		for i, mine := range payments {
			other := get(strings.TrimSuffix(payments[(i+1)%connections].path, "/confirm-payment"))
			w := e.dial(t)
			all.Go(func() {
				for turn := range turns {
					for _, r := range []request{mine, other} {
						name := fmt.Sprint(i, "-", turn, r.method)
						a, err := w.exchange(r.with("X-Request-Id", name))
						if err != nil {
							t.Error(err)
							return
						}
						assert.Equal(t, name, a.header.Get("X-Request-Id"))
						assert.Equal(t, r.header.Get("Idempotency-Key"), a.header.Get("Idempotency-Key"))
						assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, a.status, a.body)
						if a.status == http.StatusOK {
							assert.Equal(t, strings.Split(r.path, "/")[3], a.member(t, "orderId"), a.body)
						}
					}
				}
			})
		}
		all.Wait()
		for _, r := range payments {
			require.NoError(t, e.comesToAnEnd(t.Context(), r))
		}
		assert.Equal(t, connections, e.provider.Charges())
	})
}

// exchange sends a request and reads the next answer, from any goroutine.
func (w wire) exchange(r request) (answer, error) {
	if _, err := io.WriteString(w, r.whole()); err != nil {
		return answer{}, err
	}
	return w.next()
}

// A client that never comes to the end of its request has its time, however much it says, and holds nobody else up.
func TestARequestThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	const allowed = 200 * time.Millisecond
	e := onMemory(t)
	hurried := e.server.HTTPServer("")
	hurried.ReadHeaderTimeout, hurried.ReadTimeout = allowed, allowed
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- hurried.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, hurried.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	r := placing()
	body := strings.Repeat(" ", 60<<10)
	for name, begun := range map[string]string{
		"nothing at all":         "",
		"header after header":    "POST /api/orders HTTP/1.1\r\nHost: localhost\r\n",
		"the body":               r.head("Content-Length: 61440"),
		"the body, in chunks":    r.head(chunkedHeader),
		"the end of the request": r.head(chunkedHeader) + chunk(body),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dial(t, listener.Addr().String())
			w.say(t, begun)
			began := time.Now()
			stop := make(chan struct{})
			var dribbling sync.WaitGroup
			dribbling.Go(func() { w.dribble(begun, stop) })
			_, _ = io.Copy(io.Discard, w.in) // an answer or none; then the server hangs up
			assert.Less(t, time.Since(began), allowed+10*time.Second)
			close(stop)
			dribbling.Wait()
		})
	}
}

// dribble goes on with a request, a little at a time, until it is stopped or cut off.
func (w wire) dribble(begun string, stop <-chan struct{}) {
	more := " "
	switch {
	case begun == "":
		<-stop
		return
	case strings.Contains(begun, chunkedHeader):
		more = chunk(" ")
	case !strings.HasSuffix(begun, "\r\n\r\n"):
		more = "X-More: a\r\n"
	}
	for tick := time.Tick(10 * time.Millisecond); ; {
		select {
		case <-stop:
			return
		case <-tick:
			if _, err := io.WriteString(w, more); err != nil {
				return
			}
		}
	}
}
