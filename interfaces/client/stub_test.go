package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// pipes is a listener whose connections are within the process, so that a synctest bubble's time runs through clients,
// transport and server alike: waits of minutes take none.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	closed := make(chan struct{})
	return &pipes{conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served is a client of a server that answers by handler, over pipes, until the test ends.
func served(t *testing.T, handler http.Handler, options ...client.Option) *client.Client {
	t.Helper()
	p := newPipes()
	serve(t, &http.Server{Handler: handler}, p)
	transport := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	options = append([]client.Option{
		client.WithToken("demo-alice"), client.WithHTTPClient(&http.Client{Transport: transport}),
	}, options...)
	return newClient(t, "http://localhost", options...)
}

func serve(t *testing.T, server *http.Server, at net.Listener) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- server.Serve(at) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
}

func newClient(t *testing.T, url string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, options...)
	require.NoError(t, err)
	return c
}

// seen is a request as a stub has got it.
type seen struct {
	method, target, key, requestID string
	body                           []byte
	header                         http.Header
	at                             time.Time
}

// stub answers by a script and keeps what it was asked. It fails nothing by itself.
type stub struct {
	t       *testing.T
	replies []reply

	mu       sync.Mutex
	requests []seen
}

func scripted(t *testing.T, replies ...reply) *stub { return &stub{t: t, replies: replies} }

func (s *stub) seen() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.requests...)
}

// failOn is for the server's goroutines, which must not end the test.
func (s *stub) failOn(err error) {
	if err != nil {
		s.t.Error(err)
	}
}

func (s *stub) next(r *http.Request) (seen, reply) {
	body, err := io.ReadAll(r.Body)
	s.failOn(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, seen{
		method: r.Method, target: r.RequestURI, key: r.Header.Get("Idempotency-Key"), body: body,
		requestID: r.Header.Get("X-Request-Id"), header: r.Header, at: time.Now(),
	})
	return s.requests[len(s.requests)-1], s.replies[min(len(s.requests), len(s.replies))-1]
}

const receipt = `{"orderId":"o-1","status":"PAID","paidAt":"2026-11-30T01:02:04.5Z","amount":1000,"currency":"JPY",` +
	`"paymentId":"p-1"}`

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, answer := s.next(r)
	w.Header().Set("X-Request-Id", asked.requestID)
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	if answer.RetryAfterDate > 0 {
		at := time.Now().Add(time.Duration(answer.RetryAfterDate) * time.Second)
		w.Header().Set("Retry-After", at.UTC().Format(http.TimeFormat))
	}
	switch {
	case answer.Lost == "timeout":
		<-r.Context().Done() // until the client hangs up
	case answer.Lost == "reset":
		s.hangUp(w, "")
	case answer.Lost == "cut":
		s.hangUp(w, head(http.StatusOK)+receipt[:50])
	case answer.Lost == "cut refusal":
		s.hangUp(w, head(http.StatusPaymentRequired)+`{"code":"payment_declined","retry":"new-`)
	case answer.Receipt:
		s.answer(w, http.StatusOK, receipt)
	case answer.Problem != "":
		status, document := problemOf(s.t, answer.Problem)
		w.Header().Set("Content-Type", "application/problem+json")
		s.answer(w, status, document)
	default:
		s.answer(w, answer.Status, answer.Body)
	}
}

func head(status int) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 200\r\n\r\n", status, http.StatusText(status))
}

// hangUp sends this much and closes the connection.
func (s *stub) hangUp(w http.ResponseWriter, first string) {
	c, buffered, err := w.(http.Hijacker).Hijack()
	if s.failOn(err); err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = bufio.NewReadWriter(buffered.Reader, buffered.Writer).WriteString(first)
	_ = buffered.Flush() // the client may be gone
}

func (s *stub) answer(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, err := io.WriteString(w, body)
		s.failOn(err)
	}
}

// problemOf is a problem document as the service writes it.
func problemOf(t *testing.T, code client.Code) (status int, document string) {
	t.Helper()
	for _, p := range published(t).Problems {
		if p.Code == code {
			text, err := json.Marshal(map[string]any{
				"type": "/problems/" + code, "title": "title of " + code, "status": p.Status, "code": code,
				"detail": "detail of " + code, "retry": p.Retry,
			})
			if err != nil {
				t.Error(err)
			}
			return p.Status, string(text)
		}
	}
	t.Errorf("%s is not published", code)
	return http.StatusTeapot, ""
}

// payment is what the tests here pay with.
var payment = client.Payment{Amount: 1000, Currency: "JPY"}

// decisionOf names how a call has ended, in the words of docs/retry-decisions.json.
func decisionOf(t *testing.T, err error) string {
	t.Helper()
	var refused *client.Error
	var unknown *client.UnknownOutcome
	switch asUnknown, asRefused := errors.As(err, &unknown), errors.As(err, &refused); {
	case err == nil:
		return "done"
	case asUnknown && asRefused:
		return "both unknown and refused"
	case asUnknown:
		return "unknown"
	case asRefused:
		return "refused"
	default:
		return fmt.Sprintf("%T: %v", err, err)
	}
}

// tries collects what an observer is told.
type tries struct {
	mu  sync.Mutex
	all []client.Try
}

func (o *tries) observe(t client.Try) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, t)
}

func (o *tries) told() []client.Try {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]client.Try(nil), o.all...)
}
