package gateway_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
)

// token is what the tests' adapters send, and what no error may repeat.
const token = "s3cret-t0ken"

// patience is the adapter's timeout where the answer shall come.
const patience = 10 * time.Second

func adapterFor(t *testing.T, baseURL string, timeout time.Duration) *gateway.HTTP {
	t.Helper()
	h, err := gateway.NewHTTP(gateway.HTTPConfig{BaseURL: baseURL, Token: token, Timeout: timeout})
	require.NoError(t, err)
	return h
}

// provider speaks to the adapter byte by byte, so that it can misbehave as no HTTP server does.
type provider struct {
	url string

	mu       sync.Mutex
	requests []request
}

// request is one request as it was read, whole.
type request struct {
	*http.Request
	body []byte
}

// reply answers one request on the connection and tells whether the connection stays open.
type reply func(conn net.Conn, r request) (keep bool)

// startProvider listens on loopback until the test ends.
func startProvider(t *testing.T, answer reply) *provider {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &provider{url: "http://" + listener.Addr().String()}
	var connections sync.WaitGroup
	ended := make(chan struct{})
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				closed := make(chan struct{})
				connections.Go(func() { // the test's end unblocks whoever reads or writes here
					select {
					case <-ended:
					case <-closed:
					}
					conn.Close() //nolint:errcheck // it may be closed already
				})
				defer close(closed)
				p.serve(conn, answer)
			})
		}
	})
	t.Cleanup(func() {
		close(ended)
		assert.NoError(t, listener.Close())
		connections.Wait()
	})
	return p
}

func (p *provider) serve(conn net.Conn, answer reply) {
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.RemoteAddr = conn.RemoteAddr().String()
		got := request{Request: r, body: body}
		p.mu.Lock()
		p.requests = append(p.requests, got)
		p.mu.Unlock()
		if !answer(conn, got) {
			return
		}
	}
}

// received are all requests so far, oldest first.
func (p *provider) received() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.requests...)
}

// saying answers with these bytes and closes the connection.
func saying(raw string) reply {
	return func(conn net.Conn, _ request) bool {
		io.WriteString(conn, raw) //nolint:errcheck // the adapter may have gone: the test sees what it got
		return false
	}
}

// answering is a well-formed HTTP answer that keeps the connection, with a few header lines more.
func answering(status int, body string, headers ...string) reply {
	return func(conn net.Conn, _ request) bool {
		var out bytes.Buffer
		res := http.Response{
			StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
		}
		for i := 0; i < len(headers); i += 2 {
			res.Header.Set(headers[i], headers[i+1])
		}
		return res.Write(&out) == nil && write(conn, out.Bytes())
	}
}

func write(conn net.Conn, raw []byte) bool {
	_, err := conn.Write(raw)
	return err == nil
}
