package client_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// These tests run over TCP, with the transport that New makes.

// quickly keeps waits of real time short.
var quickly = client.WithBackoff(time.Millisecond, 2*time.Millisecond)

func listening(t *testing.T, handler http.Handler, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newClient(t, server.URL, append([]client.Option{quickly}, options...)...)
}

// dropping answers one request per connection and resets it after it has read the next one: what a server that is
// restarted does to a connection that was kept.
func dropping(t *testing.T, answer string) (handler http.Handler, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	var known atomic.Value
	known.Store("")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if known.Swap(r.RemoteAddr) != r.RemoteAddr {
			_, err := w.Write([]byte(answer))
			assert.NoError(t, err)
			return
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		assert.NoError(t, c.(*net.TCPConn).SetLinger(0))
		assert.NoError(t, c.Close())
	}), requests
}

// C108: Go's transport would send a POST with this header again by itself.
func TestATryOfAnOperationIsOneRequestAlsoWhenAKeptConnectionBreaks(t *testing.T) {
	handler, requests := dropping(t, receipt)
	var observed tries
	c := listening(t, handler, client.WithTries(1), client.WithObserver(observed.observe))
	require.NoError(t, confirm(t.Context(), c))
	unknownBecause(t, confirm(t.Context(), c), client.ErrTries, 1)
	assert.Equal(t, int32(2), requests.Load())
	assert.Len(t, observed.told(), 2)

	handler, requests = dropping(t, receipt)
	c = listening(t, handler)
	require.NoError(t, confirm(t.Context(), c))
	paid, err := c.ConfirmPayment(t.Context(), "k", "o-1", payment)
	require.NoError(t, err)
	assert.Equal(t, 2, paid.Answer.Tries)
	assert.Equal(t, int32(3), requests.Load())
}

// C108: of reads, the transport's own repetition is not seen by an observer. The README says so.
func TestATryOfAReadMayBeMoreThanOneRequest(t *testing.T) {
	handler, requests := dropping(t, `{"orderId":"o-1","status":"PLACED","currency":"JPY"}`)
	var observed tries
	c := listening(t, handler, client.WithTries(1), client.WithObserver(observed.observe))
	for range 2 {
		_, err := c.Order(t.Context(), "o-1")
		require.NoError(t, err)
	}
	assert.Equal(t, int32(3), requests.Load())
	assert.Len(t, observed.told(), 2)
}

func TestAServiceThatIsNotThereIsAnUnknownOutcome(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	unknownBecause(t, confirm(t.Context(), newClient(t, server.URL, quickly, client.WithTries(3))), client.ErrTries, 3)
}

func TestACertificateThatIsNotTrustedIsNotTriedAgain(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	server.StartTLS()
	t.Cleanup(server.Close)
	var observed tries
	err := confirm(t.Context(), newClient(t, server.URL, quickly, client.WithObserver(observed.observe)))
	require.ErrorContains(t, err, "was not sent")
	require.ErrorContains(t, err, "certificate")
	assert.Len(t, observed.told(), 1)
	assert.Zero(t, requests.Load())

	trusting := newClient(t, server.URL, quickly, client.WithHTTPClient(server.Client()), client.WithTries(1))
	unknownBecause(t, confirm(t.Context(), trusting), client.ErrNotSettled, 1)
	assert.Equal(t, int32(1), requests.Load(), "the caller's http.Client is used")
}

func TestRedirectsAreNotFollowedUnlessTheCallersClientSaysSo(t *testing.T) {
	var asked atomic.Value
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.URL.Path)
		if strings.HasPrefix(r.URL.Path, "/login") {
			_, _ = w.Write([]byte(receipt))
			return
		}
		http.Redirect(w, r, "/login", http.StatusFound)
	})
	for _, option := range []client.Option{quickly, client.WithHTTPClient(&http.Client{})} {
		unknownBecause(t, confirm(t.Context(), listening(t, handler, option)), client.ErrNotSettled, 1)
		assert.Equal(t, "POST /api/orders/o-1/confirm-payment", asked.Load())
	}
	following := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	require.NoError(t, confirm(t.Context(), listening(t, handler, client.WithHTTPClient(following))))
	assert.Equal(t, "GET /login", asked.Load())
}

func TestAnAnswerThatDoesNotEndIsCutOffAndNotTaken(t *testing.T) {
	filler := []byte(strings.Repeat(" ", 64<<10))
	endless := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(receipt)) // which may be followed by white space, but not for ever
			for {
				if _, err := w.Write(filler); err != nil {
					return // the client has had enough
				}
			}
		})
	}
	unknown := unknownBecause(t, confirm(t.Context(), listening(t, endless(http.StatusOK))), client.ErrNotSettled, 1)
	var unreadable *client.Unreadable
	require.ErrorAs(t, unknown.Last, &unreadable)
	assert.Len(t, unreadable.Answer.Body, 1<<20)
	unknownBecause(t, confirm(t.Context(), listening(t, endless(http.StatusBadGateway), client.WithTries(2))), client.ErrTries, 2)
}

// Of such an answer Go's transport hands out the bare connection. A read of it ends when the other side likes.
func TestAnAnswerThatSwitchesProtocolsEndsInTime(t *testing.T) {
	hungUp := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = c.Close() }()
		_, err = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tea\r\n\r\n")
		assert.NoError(t, err)
		_, _ = c.Read(make([]byte, 1)) // until the client hangs up
		close(hungUp)
	})
	unknown := unknownBecause(t, confirm(t.Context(), listening(t, handler)), client.ErrNotSettled, 1)
	assert.Equal(t, http.StatusSwitchingProtocols, unknown.Status)
	<-hungUp
}

func TestAnswersComeAsTheyWereSent(t *testing.T) {
	c := listening(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Accept-Encoding"))
		assert.Equal(t, "Bearer t-1", r.Header.Get("Authorization"))
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		_, err := w.Write([]byte(receipt + "\n"))
		assert.NoError(t, err)
	}), client.WithToken("t-1"))
	paid, err := c.ConfirmPayment(t.Context(), "k", "o-1", payment)
	require.NoError(t, err)
	sent := []byte(receipt + "\n")
	assert.Equal(t, sent, paid.Answer.Body)
}
