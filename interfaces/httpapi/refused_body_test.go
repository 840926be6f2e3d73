package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBodyIsAskedForOnlyWhenItIsWanted(t *testing.T) {
	e := onMemory(t)
	r := placing()
	w := e.dial(t)
	w.say(t, r.head(fmt.Sprintf("Content-Length: %d", len(r.body)), "Expect: 100-continue"))
	line, err := w.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	_, err = w.in.ReadString('\n')
	require.NoError(t, err)
	w.say(t, r.body)
	w.hear(t).is(t, http.StatusCreated)

	for _, refused := range []struct {
		request request
		length  int
		status  int
		code    string
	}{
		{r.with("Authorization", ""), 100, 401, "unauthenticated"},
		{r.with("Idempotency-Key", ""), 100, 400, "idempotency_key_missing"},
		{r.with("Content-Type", "text/plain"), 10 << 20, 415, "unsupported_media_type"},
		{r, 10 << 20, 413, "payload_too_large"},
	} {
		w := e.dial(t)
		w.say(t, refused.request.head(fmt.Sprintf("Content-Length: %d", refused.length), "Expect: 100-continue"))
		w.hear(t).isProblem(t, refused.status, refused.code)
		started := time.Now()
		_, err := w.in.ReadByte()
		require.ErrorIs(t, err, io.EOF)
		assert.Less(t, time.Since(started), 3*time.Second, "a body that was not asked for is not waited for")
	}
}

// Such a client sees the answer only if the server reads on: it would be reset otherwise.
func TestARefusalArrivesAtAClientThatSendsEverythingFirst(t *testing.T) { // C96
	e := onMemory(t)
	r := placing()
	noToken := r.with("Authorization", "")
	for name, c := range map[string]struct {
		request request
		size    int
		status  int
		code    string
	}{
		"256 KiB without a token": {noToken, 256 << 10, 401, "unauthenticated"},
		"10 MiB without a token":  {noToken, 10 << 20, 401, "unauthenticated"},
		"10 MiB to no route":      {r.to("/api/nothing"), 10 << 20, 404, "not_found"},
		"10 MiB of another type":  {r.with("Content-Type", "text/plain"), 10 << 20, 415, "unsupported_media_type"},
		"10 MiB":                  {r, 10 << 20, 413, "payload_too_large"},
		"65 KiB":                  {r, 65 << 10, 413, "payload_too_large"},
		"300 KiB to a reader":     {get(anOrder), 300 << 10, 404, "order_not_found"},
		"10 MiB by no method": {
			request{method: "PUT", path: "/api/orders"},
			10 << 20, 405,
			"method_not_allowed",
		},
	} {
		body := strings.Repeat(" ", c.size)
		t.Run(name+", length known", func(t *testing.T) {
			w := e.dial(t)
			w.say(t, c.request.head(fmt.Sprintf("Content-Length: %d", c.size)), body)
			w.hear(t).isProblem(t, c.status, c.code)
		})
		t.Run(name+", chunked", func(t *testing.T) {
			w := e.dial(t)
			w.say(t, c.request.head(chunkedHeader), chunk(body), "0\r\n\r\n")
			w.hear(t).isProblem(t, c.status, c.code)
		})
		t.Run(name+", chunked, after a 100 if one comes", func(t *testing.T) {
			w := e.dial(t)
			w.say(t, c.request.head(chunkedHeader, "Expect: 100-continue"))
			if c.code == "payload_too_large" {
				for range 2 {
					_, err := w.in.ReadString('\n')
					require.NoError(t, err)
				}
				w.say(t, chunk(body), "0\r\n\r\n")
			}
			w.hear(t).isProblem(t, c.status, c.code)
		})
	}
}

func TestAConnectionOutlivesARefusalWhoseBodyIsShort(t *testing.T) {
	e := onMemory(t)
	w := e.dial(t)
	body := strings.Repeat(" ", 255<<10)
	for range 3 {
		w.say(t, placing().with("Authorization", "").saying(body).whole())
		w.hear(t).isProblem(t, http.StatusUnauthorized, "unauthenticated")
		w.say(t, placing().with("Content-Type", "text/plain").head(chunkedHeader), chunk(body), "0\r\n\r\n")
		w.hear(t).isProblem(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	w.say(t, placing().whole())
	w.hear(t).is(t, http.StatusCreated)
}

func TestARefusalDoesNotWaitForABodyThatIsNotSent(t *testing.T) {
	e := onMemory(t)
	for _, c := range []struct {
		request request
		framing string
		status  int
		code    string
	}{
		{placing().with("Authorization", ""), "Content-Length: 100", 401, "unauthenticated"},
		{placing().with("Authorization", ""), chunkedHeader, 401, "unauthenticated"},
		{placing(), "Content-Length: 70000", 413, "payload_too_large"},
		{placing(), "Content-Length: 10485760", 413, "payload_too_large"},
		{placing().to("/api/nothing"), "Content-Length: 100", 404, "not_found"},
	} {
		t.Run(c.code+" "+c.framing, func(t *testing.T) {
			t.Parallel()
			w := e.dial(t)
			started := time.Now()
			w.say(t, c.request.head(c.framing))
			a := w.hear(t).isProblem(t, c.status, c.code)
			assert.Less(t, time.Since(started), 4*time.Second)
			assert.Equal(t, "close", a.header.Get("Connection"), "what comes next could be the rest of the body")
		})
	}
}
