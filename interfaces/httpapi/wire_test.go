package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// wire is a connection on which a test writes what it wants.
type wire struct {
	net.Conn
	in *bufio.Reader
	// out is what was written, to be read as requests: so answers are held against the description here, too.
	out   *said
	asked *bufio.Reader
}

// readable is more than the service reads of a body, in bytes.
const readable = 128 << 10

// said is text that is read behind its writer, maybe by another goroutine.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Read(p)
}

func (e edge) dial(t *testing.T) wire {
	t.Helper()
	return dial(t, e.address)
}

func dial(t *testing.T, address string) wire {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	out := &said{}
	return wire{c, bufio.NewReader(c), out, bufio.NewReader(out)}
}

// say writes all of it before anything is read.
func (w wire) say(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		_, _ = w.out.Write([]byte(part[:min(len(part), readable)])) // no more than is read of it, ever
		_, err := io.WriteString(w, part)
		require.NoError(t, err)
	}
}

// hear reads the next answer.
func (w wire) hear(t *testing.T) answer {
	t.Helper()
	a, err := w.next()
	require.NoError(t, err)
	return a
}

// next is hear from any goroutine.
func (w wire) next() (answer, error) {
	response, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.Close { // which net/http has taken from the header
		response.Header.Set("Connection", "close")
	}
	a := answer{response.StatusCode, response.Header, string(body)}
	if err != nil || a.header.Get("X-Request-Id") == "" { // of what net/http answers by itself nothing is described
		return a, err
	}
	request, err := http.ReadRequest(w.asked)
	if err != nil { // no request at all, which is what the test wants to see answered
		return a, nil
	}
	sent, _ := io.ReadAll(request.Body) // as far as it goes
	return a, described.judge(request, sent, a)
}

func (w wire) endOfWriting(t *testing.T) {
	t.Helper()
	require.NoError(t, w.Conn.(*net.TCPConn).CloseWrite())
}

// head is the request's head on the wire, with further header lines.
func (r request) head(more ...string) string {
	lines := []string{r.method + " " + r.path + " HTTP/1.1", "Host: localhost"}
	for name, values := range r.header {
		for _, value := range values {
			lines = append(lines, name+": "+value)
		}
	}
	return strings.Join(append(lines, more...), "\r\n") + "\r\n\r\n"
}

func (r request) whole() string {
	return r.head(fmt.Sprintf("Content-Length: %d", len(r.body))) + r.body
}

const chunkedHeader = "Transfer-Encoding: chunked"

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func TestATruncatedUploadIsNotExecuted(t *testing.T) { // C31
	e := onMemory(t)
	id := e.place(t)
	r := confirming(id)
	for name, text := range map[string]string{
		"shorter than its length":        r.head("Content-Length: 200") + r.body,
		"without any body":               r.head("Content-Length: 200"),
		"chunks without the last one":    r.head(chunkedHeader) + chunk(r.body),
		"in the middle of a chunk":       r.head(chunkedHeader) + "50\r\n" + r.body,
		"a chunk of no length":           r.head(chunkedHeader) + "xyz\r\n" + r.body,
		"a chunk longer than it says":    r.head(chunkedHeader) + "5\r\n" + r.body + "\r\n0\r\n\r\n",
		"without the end of the trailer": r.head(chunkedHeader) + chunk(r.body) + "0\r\nX-Trailer: a\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := e.dial(t)
			w.say(t, text)
			w.endOfWriting(t)
			w.hear(t).isProblem(t, http.StatusBadRequest, "invalid_request")

			w = e.dial(t)
			w.say(t, text)
			require.NoError(t, w.Close())
		})
	}
	e.send(t, outcomeOf(r, "ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
	assert.Equal(t, "PLACED", e.statusOf(t, id))
	assert.NotContains(t, e.log.String(), `"level":"ERROR"`)
	e.send(t, r).is(t, http.StatusOK)
}

func TestABodyMayComeInAnyPieces(t *testing.T) {
	e := onMemory(t)
	r := confirming(e.place(t))
	var chunks strings.Builder
	for _, b := range []byte(r.body) {
		chunks.WriteString(chunk(string([]byte{b})))
	}
	w := e.dial(t)
	w.say(t, r.head(chunkedHeader)+chunks.String()+"0\r\n\r\n")
	first := w.hear(t).is(t, http.StatusOK)

	for _, b := range []byte(r.whole()) {
		w.say(t, string([]byte{b}))
	}
	w.hear(t).isReplayOf(t, first)

	w.say(t, r.head(chunkedHeader)+chunk(r.body)+"0\r\nX-Trailer: a\r\n\r\n")
	w.hear(t).isReplayOf(t, first)
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	e := onMemory(t)
	w := e.dial(t)
	var all strings.Builder
	refused := placing().with("Authorization", "")
	requests := []request{placing(), placing(), refused, placing(), get("/healthz"), placing()}
	for _, r := range requests {
		all.WriteString(r.whole())
	}
	w.say(t, all.String())
	for _, r := range requests {
		a := w.hear(t)
		assert.Equal(t, r.header.Get("Idempotency-Key"), a.header.Get("Idempotency-Key"))
		switch {
		case r.path == "/healthz":
			a.is(t, http.StatusOK)
		case r.header.Get("Authorization") == "":
			a.isProblem(t, http.StatusUnauthorized, "unauthenticated")
		default:
			a.is(t, http.StatusCreated)
		}
	}
}

func TestAClientThatHangsUpIsNoErrorAndFindsItsAnswerLater(t *testing.T) { // C53
	e := onMemory(t)
	held, call := storetest.Holding(storetest.Approving)
	e.provider.Next(call)
	r := confirming(e.place(t))
	w := e.dial(t)
	w.say(t, r.whole())
	<-held.Reached
	require.NoError(t, w.Close())
	held.Release()
	require.Eventually(t, func() bool { return e.send(t, r).status == http.StatusOK }, 10*time.Second, time.Millisecond)
	assert.Equal(t, 1, e.provider.Charges())
	assert.NotContains(t, e.log.String(), `"level":"ERROR"`)
	assert.NotContains(t, e.log.String(), `"level":"WARN"`)
}

func TestTheKeyHeaderOnTheWire(t *testing.T) {
	e := onMemory(t)
	for lines, want := range map[string]string{
		"":                      "idempotency_key_missing",
		"Idempotency-Key:":      "idempotency_key_missing",
		"Idempotency-Key: \t  ": "idempotency_key_missing",
		"Idempotency-Key: \"\"": "idempotency_key_invalid",
		"Idempotency-Key: k\r\nIdempotency-Key: k": "idempotency_key_invalid",
		"Idempotency-Key:\r\nIdempotency-Key: k":   "idempotency_key_invalid",
		"Idempotency-Key: k\r\nidempotency-key:":   "idempotency_key_invalid",
		"Idempotency-Key: k, l":                    "idempotency_key_invalid",
		"Idempotency-Key: \"k\", \"l\"":            "idempotency_key_invalid",
		"Idempotency-Key: \"k\";a=1":               "idempotency_key_invalid",
		"Idempotency-Key: k;a":                     "idempotency_key_invalid",
		"Idempotency-Key: \"k":                     "idempotency_key_invalid",
		"Idempotency-Key: k\"":                     "idempotency_key_invalid",
		"Idempotency-Key: \"":                      "idempotency_key_invalid",
		"Idempotency-Key: \"\\k\"":                 "idempotency_key_invalid",
		"Idempotency-Key: \" k\"":                  "idempotency_key_invalid",
		"Idempotency-Key: .":                       "idempotency_key_invalid",
		"Idempotency-Key: \"..\"":                  "idempotency_key_invalid",
		"Idempotency-Key: k\r\n l":                 "idempotency_key_invalid",
	} {
		r := placing()
		r.header.Del("Idempotency-Key")
		w := e.dial(t)
		more := []string{fmt.Sprintf("Content-Length: %d", len(r.body))}
		if lines != "" {
			more = append(more, lines)
		}
		w.say(t, r.head(more...)+r.body)
		a := w.hear(t).isProblem(t, http.StatusBadRequest, want)
		assert.Empty(t, a.header.Get("Idempotency-Key"), lines)
	}
	for lines, key := range map[string]string{
		"idempotency-key:k1":             "k1",
		"IDEMPOTENCY-KEY: \t k2 \t":      "k2",
		"Idempotency-Key:   \"k3\"  ":    "k3",
		"Idempotency-Key: ...":           "...",
		"Idempotency-Key: !#$%&'()*+-/:": "!#$%&'()*+-/:",
		"Idempotency-Key: \r\n k4":       "k4",
	} {
		r := placing()
		r.header.Del("Idempotency-Key")
		w := e.dial(t)
		w.say(t, r.head(fmt.Sprintf("Content-Length: %d", len(r.body)), lines)+r.body)
		assert.Equal(t, key, w.hear(t).is(t, http.StatusCreated).header.Get("Idempotency-Key"))
	}
}

func TestOddTargetsAreNotFound(t *testing.T) {
	e := onMemory(t)
	for _, line := range []string{
		"OPTIONS *", "GET http://localhost", "CONNECT localhost:80", "GET http://localhost/nothing",
	} {
		w := e.dial(t)
		w.say(t, line+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		a := w.hear(t).isProblem(t, http.StatusNotFound, "not_found")
		assert.NotEmpty(t, a.header.Get("X-Request-Id"))
	}
	w := e.dial(t)
	w.say(t, "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	w.hear(t).isProblem(t, http.StatusForbidden, "forbidden")
	w = e.dial(t)
	w.say(t, "GET /healthz HTTP/1.0\r\n\r\n")
	w.hear(t).isProblem(t, http.StatusForbidden, "forbidden")
}

// reading is a store of which only reading works, in the test's own way.
type reading func(ctx context.Context) error

func (r reading) Do(context.Context, port.Wait, func(port.Tx) error) error {
	return port.ErrUnavailable
}
func (r reading) Read(ctx context.Context, _ func(port.Tx) error) error { return r(ctx) }

func TestTheWorkHasADeadlineAndDoesNotEndWithTheConnection(t *testing.T) {
	asked, gone, ended := make(chan context.Context, 1), make(chan struct{}), make(chan error, 1)
	e := open(t, reading(func(ctx context.Context) error {
		asked <- ctx
		<-gone
		ended <- ctx.Err()
		return nil
	}))
	w := e.dial(t)
	w.say(t, get(anOrder).head())
	ctx := <-asked
	deadline, has := ctx.Deadline()
	assert.True(t, has)
	assert.InDelta(t, storetest.Times.Deadline(), time.Until(deadline), float64(5*time.Second))
	require.NoError(t, w.Close())
	close(gone)
	require.NoError(t, <-ended)
}

func TestABodyThatDoesNotArriveInTimeIsRefused(t *testing.T) {
	e := open(t, memory.New(time.Now))
	slow := e.server.HTTPServer("")
	slow.ReadTimeout = 100 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- slow.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, slow.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	w := dial(t, listener.Addr().String())
	r := placing()
	w.say(t, r.head("Content-Length: 200")+r.body)
	a := w.hear(t).isProblem(t, http.StatusBadRequest, "invalid_request")
	assert.Contains(t, a.member(t, "detail"), "in time")
}
