package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// exchange is one request and its answer, as they went over the wire.
type exchange struct {
	method, path string
	sent         http.Header
	body         []byte

	status   int // 0: no answer came
	received http.Header
	answer   []byte
	lost     bool  // the answer came, and the caller was not given it
	err      error // why no answer came
}

// wire is a transport that keeps what goes over it.
type wire struct {
	under http.RoundTripper
	loses bool // answers are lost on their way to the caller

	mu   sync.Mutex
	went []exchange
}

var errLost = errors.New("the connection broke before the answer")

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	e := exchange{method: r.Method, path: r.URL.RequestURI(), sent: r.Header.Clone()}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		e.body = body
		r = r.Clone(r.Context())
		r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	}
	answer, err := w.under.RoundTrip(r)
	if err == nil {
		e.status, e.received = answer.StatusCode, answer.Header.Clone()
		e.answer, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close() // what was read is read
	}
	if e.err = err; err != nil {
		e.status = 0
	}
	e.lost = w.loses && err == nil
	w.mu.Lock()
	w.went = append(w.went, e)
	w.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case e.lost:
		return nil, errLost
	}
	answer.Body = io.NopCloser(bytes.NewReader(e.answer))
	return answer, nil
}

// last is the exchange that went last.
func (w *wire) last() (exchange, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.went) == 0 {
		return exchange{}, false
	}
	return w.went[len(w.went)-1], true
}

// maxShown is how much of a body a report shows.
const maxShown = 2000

// String shows both, without the caller's token.
func (e exchange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "> %s %s\n", e.method, e.path)
	show(&b, ">", e.sent, e.body)
	switch {
	case e.status == 0:
		fmt.Fprintf(&b, "< no answer: %v\n", e.err)
		return b.String()
	case e.lost:
		b.WriteString("< (lost on its way to the caller)\n")
	}
	fmt.Fprintf(&b, "< %d %s\n", e.status, http.StatusText(e.status))
	show(&b, "<", e.received, e.answer)
	return b.String()
}

func show(b *strings.Builder, mark string, h http.Header, body []byte) {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range h[name] {
			if name == "Authorization" {
				value = "(not shown)"
			}
			fmt.Fprintf(b, "%s %s: %s\n", mark, name, value)
		}
	}
	if len(body) > 0 {
		text := strings.TrimRight(string(body[:min(len(body), maxShown)]), "\n")
		fmt.Fprintf(b, "%s\n%s %s\n", mark, mark, strings.ReplaceAll(text, "\n", "\n"+mark+" "))
		if len(body) > maxShown {
			fmt.Fprintf(b, "%s … %d bytes in all\n", mark, len(body))
		}
	}
}
