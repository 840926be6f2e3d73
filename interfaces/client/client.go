// Package client is the Go client of Kakutei's HTTP contract. It sends a request again as the service advises, under one
// key and with the same bytes, and says "refused" only when the service has said so. It imports nothing of the service:
// a program that uses it needs the standard library and google/uuid.
package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one service on behalf of one caller. It is safe for concurrent use; As and With make further ones that
// share its connections.
type Client struct {
	base     string // without a slash at its end
	token    string
	http     *http.Client
	budget   budget
	pace     pace
	observer func(Try)
}

// budget is what a call may take.
type budget struct {
	tries int
	total time.Duration // from the call's beginning, waits included
	try   time.Duration // of one try, until the answer's last byte
}

// The defaults. A holder that has crashed keeps its lease for 30 s (KAKUTEI_LEASE), and a provider may take 10 s: a call
// gets past both.
const (
	DefaultTries         = 12
	DefaultTotalTime     = 2 * time.Minute
	DefaultTryTimeout    = 20 * time.Second // the service answers within 15 s by default
	DefaultMinBackoff    = 250 * time.Millisecond
	DefaultMaxBackoff    = 10 * time.Second
	DefaultMaxRetryAfter = 30 * time.Second
)

// New makes a client of the service at baseURL (http or https; a path is kept as a prefix). It connects to nothing yet.
// Error: what is wrong with the URL or an option.
func New(baseURL string, options ...Option) (*Client, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		base:   base,
		budget: budget{tries: DefaultTries, total: DefaultTotalTime, try: DefaultTryTimeout},
		pace: pace{
			min: DefaultMinBackoff, max: DefaultMaxBackoff, maxRetryAfter: DefaultMaxRetryAfter, draw: uniform,
		},
		observer: func(Try) {},
	}
	if c, err = c.With(options...); err != nil {
		return nil, err
	}
	if c.http == nil {
		c.http = withoutRedirects(&http.Client{Transport: newTransport()})
	}
	return c, nil
}

// With is the client with further options, on the same connections unless one of them says otherwise.
func (c *Client) With(options ...Option) (*Client, error) {
	changed := *c
	for _, set := range options {
		if err := set(&changed); err != nil {
			return nil, err
		}
	}
	return &changed, nil
}

// As is the client of another caller, by its bearer token.
func (c *Client) As(token string) *Client {
	other := *c
	other.token = token
	return &other
}

func parseBase(text string) (string, error) {
	base, err := url.Parse(text)
	wrong := ""
	switch {
	case err != nil:
		wrong = "cannot be read"
	case base.Scheme != "http" && base.Scheme != "https":
		wrong = "must begin with http:// or https://"
	case base.Hostname() == "":
		wrong = "must name a host"
	case base.User != nil:
		wrong = "must not hold a user or a password"
	case strings.ContainsAny(text, "?#"):
		wrong = "must have neither query nor fragment"
	default:
		return strings.TrimRight(base.String(), "/"), nil
	}
	return "", fmt.Errorf("client: the base URL %s", wrong) // not the URL itself: it may hold a password
}

// newTransport is the usual transport, which heeds HTTP_PROXY, with room for a load tool's connections and without
// compression, so that an answer's bytes are those that were sent.
func newTransport() http.RoundTripper {
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // somebody has replaced it, and means it
		return http.DefaultTransport
	}
	t := usual.Clone()
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	return t
}

// withoutRedirects has a redirect be an answer, unless the caller has a policy. The service never redirects, and Go's
// usual policy would make a GET of a POST and take the login page for the answer.
func withoutRedirects(h *http.Client) *http.Client {
	if h.CheckRedirect != nil {
		return h
	}
	own := *h
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// call is one call's request. Its bytes are made before the first try and are the same in each.
type call struct {
	operation Operation
	key       Intent // of an operation: how to ask for its outcome
	method    string
	path      string
	header    http.Header
	body      []byte
	// read takes an answer whose status is a success. An error says that it cannot be the service's.
	read func(Answer) error
}

// changes tells whether the call has an effect, so that without a definite answer its outcome is unknown.
func (c call) changes() bool { return c.method == http.MethodPost }

// request makes the request of one try.
func (c *Client) request(ctx context.Context, of call, requestID string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, of.method, c.base+of.path, bodyOf(of))
	if err != nil {
		return nil, err
	}
	// A transport sends a request with an Idempotency-Key again by itself when a kept connection breaks, but only if it
	// can have the body anew. Then tries could neither be counted nor spaced.
	r.GetBody = nil
	maps.Copy(r.Header, of.header)
	r.Header.Set("Accept", "application/json, application/problem+json")
	r.Header.Set("X-Request-Id", requestID)
	if of.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

var errToken = errors.New("client: the token must be visible ASCII characters")

// check finds out, before anything is sent, what would fail at every try.
func (c *Client) check() error {
	if strings.ContainsFunc(c.token, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return errToken
	}
	return nil
}
