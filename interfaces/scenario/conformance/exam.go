package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Level says how binding what a check looks at is.
type Level string

// The levels. An extension is not in the draft, or only in its examples: missing it is no failure.
const (
	Must      Level = "MUST"
	Should    Level = "SHOULD"
	Extension Level = "extension"
)

// Verdict is what came of a check.
type Verdict string

// The verdicts.
const (
	Passed        Verdict = "passed"
	Failed        Verdict = "failed"
	NotApplicable Verdict = "not applicable"
)

// Result is one check with what came of it.
type Result struct {
	ID      string
	Level   Level
	Section string // of the draft
	Asks    string // what is demanded
	Verdict Verdict
	Detail  string // why it failed or is not applicable, with the answer
}

// Fails tells whether the result is one to fail for.
func (r Result) Fails() bool { return r.Verdict == Failed && r.Level != Extension }

// exam is one endpoint under examination.
type exam struct {
	endpoint Endpoint
	base     string
	http     *http.Client
	bare     bool // the endpoint takes no key between quotation marks, only without
	// overtaken is the answer to a request that was sent while the same one ran. It takes long, so that it is asked for
	// once for all checks.
	overtaken func() (answer, error)
}

// key is an intent's key as the endpoint takes it.
func (x exam) key(i intent) string {
	if x.bare {
		return i.key
	}
	return quoted(i.key)
}

// Check runs all checks against the endpoint at the base URL, one after the other. Error: the endpoint cannot be asked
// at all, or does not do what its description says even once.
func Check(ctx context.Context, base string, e Endpoint) ([]Result, error) {
	x := exam{endpoint: e, base: strings.TrimRight(base, "/"), http: &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	i, err := x.begin(ctx)
	if err != nil {
		return nil, err
	}
	first, err := x.send(ctx, e.asks(i, e.Body, quoted(i.key)))
	if err != nil {
		return nil, err
	}
	if !e.succeeded(first) {
		if bare, err := x.send(ctx, e.asks(i, e.Body, i.key)); err != nil || !e.succeeded(bare) {
			return nil, fmt.Errorf("a first request is no success as the description has it: %s", first)
		}
		x.bare = true
	}
	x.overtaken = sync.OnceValues(func() (answer, error) { return x.overtake(ctx) })
	var results []Result
	for _, c := range checks() {
		r := Result{ID: c.id, Level: c.level, Section: c.section, Asks: c.asks, Verdict: Passed}
		var missing notApplicable
		switch err := c.run(ctx, x); {
		case err == nil:
		case errors.As(err, &missing):
			r.Verdict, r.Detail = NotApplicable, missing.why
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			r.Verdict, r.Detail = Failed, err.Error()
		}
		results = append(results, r)
	}
	return results, nil
}

// patience is how long an answer is waited for.
const patience = 30 * time.Second

// maxAnswer is far more than an answer has that can be compared.
const maxAnswer = 1 << 20

// notApplicable says why a check cannot be made.
type notApplicable struct{ why string }

// Error is the reason.
func (n notApplicable) Error() string { return n.why }

// quoted is a key as the draft has it: a Structured Field String (§2.1).
func quoted(key string) string { return `"` + key + `"` }

// begin prepares a new intent.
func (x exam) begin(ctx context.Context) (intent, error) {
	i := newIntent()
	p := x.endpoint.Prepare
	if p == nil {
		return i, nil
	}
	r := request{method: p.Method, path: i.fill(p.Path), header: http.Header{}, body: i.fill(p.Body)}
	for name, value := range p.Headers {
		r.header.Set(name, i.fill(value))
	}
	a, err := x.send(ctx, r)
	if err != nil {
		return i, err
	}
	for name, path := range p.Take {
		value, there := member(a.body, strings.Split(path, "."))
		if !there {
			return i, fmt.Errorf("prepare: the answer has no %s: %s", path, a)
		}
		i.values[name] = value
	}
	return i, nil
}

func member(body []byte, path []string) (string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return "", false
	}
	value, there := members[path[0]]
	switch {
	case !there:
		return "", false
	case len(path) > 1:
		return member(value, path[1:])
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text, true
	}
	return string(value), true
}

// send sends a request once: without GetBody no transport sends it again by itself.
func (x exam) send(ctx context.Context, r request) (answer, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, x.base+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	sent.GetBody = nil
	sent.Header = r.header.Clone()
	from := time.Now()
	came, err := x.http.Do(sent)
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", err)
	}
	defer came.Body.Close()
	body, err := io.ReadAll(io.LimitReader(came.Body, maxAnswer))
	return answer{came.StatusCode, came.Header, body, from, time.Now()}, err
}

// sendAll sends the same request n times at once.
func (x exam) sendAll(ctx context.Context, r request, n int) ([]answer, error) {
	answers, failed := make([]answer, n), make([]error, n)
	var sending sync.WaitGroup
	start := make(chan struct{})
	for i := range answers {
		sending.Go(func() {
			<-start
			answers[i], failed[i] = x.send(ctx, r)
		})
	}
	close(start)
	sending.Wait()
	return answers, errors.Join(failed...)
}

// succeeds sends what must be a success before the check proper begins.
func (x exam) succeeds(ctx context.Context, r request) (answer, error) {
	a, err := x.send(ctx, r)
	if err == nil && !x.endpoint.succeeded(a) {
		err = fmt.Errorf("a first request is no success: %s", a)
	}
	return a, err
}
