package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// request is what a client sends. Alice sends JSON under a fresh key unless it is said otherwise.
type request struct {
	method, path, body string
	header             http.Header
	host               string
	chunked            bool
}

// with is the request with a header of this one value; an empty value takes the header away.
func (r request) with(name, value string) request {
	r.header = r.header.Clone()
	r.header.Del(name)
	if value != "" {
		r.header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	return r
}

func (r request) key(key string) request     { return r.with("Idempotency-Key", key) }
func (r request) token(token string) request { return r.with("Authorization", "Bearer "+token) }

func (r request) to(path string) request {
	r.path = path
	return r
}

func (r request) saying(body string) request {
	r.body = body
	return r
}

var keys atomic.Int64

func freshKey() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

func get(path string) request {
	return request{method: http.MethodGet, path: path, header: http.Header{"Authorization": {"Bearer demo-alice"}}}
}

func post(path, body string) request {
	return request{method: http.MethodPost, path: path, body: body, header: http.Header{
		"Authorization":   {"Bearer demo-alice"},
		"Content-Type":    {"application/json"},
		"Idempotency-Key": {freshKey()},
	}}
}

const tea = `{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}`

func placing() request { return post("/api/orders", tea) }

func confirming(order string) request {
	return post("/api/orders/"+order+"/confirm-payment", `{"amount":1000,"currency":"JPY"}`)
}

func cancelling(order string) request { return post("/api/orders/"+order+"/cancel", `{}`) }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// client neither follows redirects nor unpacks anything by itself. It takes no answer that is not described.
var client = &http.Client{
	Timeout:       30 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     conforming{plainTransport, described},
}

// plainClient takes whatever comes.
var plainClient = &http.Client{Timeout: client.Timeout, CheckRedirect: client.CheckRedirect, Transport: plainTransport}

var plainTransport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32}

func (e edge) send(t *testing.T, r request) answer {
	t.Helper()
	a, err := e.try(t.Context(), r)
	require.NoError(t, err)
	return a
}

// try sends from any goroutine.
func (e edge) try(ctx context.Context, r request) (answer, error) {
	var body io.Reader = strings.NewReader(r.body)
	if r.chunked {
		body = io.MultiReader(body) // of no known length
	}
	out, err := http.NewRequestWithContext(ctx, r.method, "http://"+e.address+r.path, body)
	if err != nil {
		return answer{}, err
	}
	out.Header, out.Host = r.header, r.host
	response, err := e.client.Do(out)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

// member is one member of the JSON object that was answered, by its path: "errors/0/pointer".
func (a answer) member(t *testing.T, path string) any {
	t.Helper()
	value, found := a.find(t, path)
	require.True(t, found, "%s in %s", path, a.body)
	return value
}

// has tells whether the answer has the member.
func (a answer) has(t *testing.T, path string) bool {
	t.Helper()
	_, found := a.find(t, path)
	return found
}

func (a answer) find(t *testing.T, path string) (value any, found bool) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), &value), a.body)
	for name := range strings.SplitSeq(path, "/") {
		switch container := value.(type) {
		case map[string]any:
			value, found = container[name]
		case []any:
			var i int
			_, err := fmt.Sscan(name, &i)
			found = err == nil && i < len(container)
			if found {
				value = container[i]
			}
		default:
			found = false
		}
		if !found {
			return nil, false
		}
	}
	return value, found
}

// isProblem checks that the answer is the problem of this code.
func (a answer) isProblem(t *testing.T, status int, code string) answer {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, code, a.member(t, "code"), a.body)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	return a
}

// is checks that the answer is no problem.
func (a answer) is(t *testing.T, status int) answer {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	return a
}

// isReplayOf checks that the answer is the other one, byte for byte, and says so.
func (a answer) isReplayOf(t *testing.T, first answer) {
	t.Helper()
	require.Equal(t, first.status, a.status, a.body)
	require.Equal(t, first.body, a.body)
	require.Equal(t, "true", a.header.Get("Idempotent-Replayed"))
	for _, name := range []string{"Content-Type", "Content-Length", "Location", "Idempotency-Key"} {
		require.Equal(t, first.header.Values(name), a.header.Values(name), name)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func pathEscape(text string) string { return url.PathEscape(text) }

// quote is the text as a JSON string.
func quote(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return string(quoted)
}
