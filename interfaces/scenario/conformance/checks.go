package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
)

// check is one demand of the draft, or one that goes beyond it.
type check struct {
	id      string
	level   Level
	section string
	asks    string
	run     func(context.Context, exam) error
}

// checks are all, in the draft's order. Each asks for things of its own: none depends on what another has left.
func checks() []check {
	return []check{
		{"quoted-key", Must, "2.1", "the key is a Structured Field String", quotedKey},
		{"malformed-key", Should, "2.1, 5", "a header that is no String is refused", malformedKey},
		{"two-keys", Should, "2.1", "two Idempotency-Key fields are refused", twoKeys},
		{"empty-key", Extension, "2.1", "an empty String is refused", emptyKey},
		{"bare-key", Extension, "2.1", "a key without quotation marks names the same request", bareKey},
		{"first-request", Should, "2.6", "a request under a new key is processed", firstRequest},
		{"replay", Should, "2.6", "a retry gets the first result", replay},
		{"replay-of-a-later-retry", Should, "2.6", "every further retry gets it, too", laterReplay},
		{"replay-mark", Extension, "–", "a replay says so (Idempotent-Replayed)", replayMark},
		{"concurrent-conflict", Must, "2.6", "a retry while the first request runs is a conflict", conflict},
		{"concurrent-status", Should, "2.7", "that conflict is 409 with a description", conflictStatus},
		{"concurrent-retry-after", Extension, "–", "that conflict says when to come again", conflictRetryAfter},
		{"burst", Should, "2.6", "of many at once no two get different results", burst},
		{"missing-key", Should, "2.7", "without the header: 400", missingKey},
		{"missing-key-link", Should, "2.7", "that answer links to documentation", missingKeyLink},
		{"reuse", Must, "2.2, 2.7", "the key with another payload is refused", reuse},
		{"reuse-status", Should, "2.7", "that refusal is 422", reuseStatus},
		{"reuse-link", Should, "2.7", "that answer links to documentation", reuseLink},
		{"reuse-keeps", Should, "2.6", "the first result still stands after it", reuseKeeps},
		{"isolation", Should, "5", "another caller's key is another key", isolation},
		{"problem-documents", Extension, "2.7", "errors are problem documents (RFC 9457)", problemDocuments},
	}
}

// first makes a new intent and has it succeed.
func (x exam) first(ctx context.Context) (intent, answer, error) {
	i, err := x.begin(ctx)
	if err != nil {
		return i, answer{}, err
	}
	a, err := x.succeeds(ctx, x.endpoint.asks(i, x.endpoint.Body, x.key(i)))
	return i, a, err
}

func quotedKey(ctx context.Context, x exam) error {
	i, err := x.begin(ctx)
	if err != nil {
		return err
	}
	_, err = x.succeeds(ctx, x.endpoint.asks(i, x.endpoint.Body, quoted(i.key)))
	return err
}

// refused demands that a request under such keys is an error of the client, and has done nothing.
func refused(ctx context.Context, x exam, keys ...string) error {
	i, err := x.begin(ctx)
	if err != nil {
		return err
	}
	a, err := x.send(ctx, x.endpoint.asks(i, x.endpoint.Body, keys...))
	if err == nil && (a.status < 400 || a.status > 499) {
		err = fmt.Errorf("it is answered %s", a)
	}
	return err
}

func malformedKey(ctx context.Context, x exam) error {
	// Nor is any of these a key without quotation marks: some services take those, too.
	for _, key := range []string{`"never closed`, `"a" b`, `("in a list")`} {
		if err := refused(ctx, x, key); err != nil {
			return fmt.Errorf("Idempotency-Key: %s: %w", key, err)
		}
	}
	return nil
}

func twoKeys(ctx context.Context, x exam) error {
	return refused(ctx, x, x.key(newIntent()), x.key(newIntent()))
}

func emptyKey(ctx context.Context, x exam) error { return refused(ctx, x, `""`) }

func bareKey(ctx context.Context, x exam) error {
	i, a, err := x.first(ctx)
	if err != nil {
		return err
	}
	return x.repeats(ctx, a, x.endpoint.asks(i, x.endpoint.Body, i.key))
}

// repeats demands that a request gets the same answer again.
func (x exam) repeats(ctx context.Context, first answer, r request) error {
	again, err := x.send(ctx, r)
	if err == nil && !again.same(first) {
		err = fmt.Errorf("the first answer was %s, this one is %s", first, again)
	}
	return err
}

func firstRequest(ctx context.Context, x exam) error {
	_, a, err := x.first(ctx)
	if err != nil {
		return err
	}
	_, b, err := x.first(ctx)
	if err == nil && a.same(b) && strings.Contains(x.endpoint.Body+x.endpoint.Path, "${") {
		err = fmt.Errorf("two intents under two keys have one answer: %s", a)
	}
	return err
}

func replay(ctx context.Context, x exam) error {
	i, a, err := x.first(ctx)
	if err != nil {
		return err
	}
	return x.repeats(ctx, a, x.endpoint.asks(i, x.endpoint.Body, x.key(i)))
}

func laterReplay(ctx context.Context, x exam) error {
	i, a, err := x.first(ctx)
	for range 3 {
		if err != nil {
			return err
		}
		err = x.repeats(ctx, a, x.endpoint.asks(i, x.endpoint.Body, x.key(i)))
	}
	return err
}

func replayMark(ctx context.Context, x exam) error {
	i, a, err := x.first(ctx)
	if err != nil {
		return err
	}
	b, err := x.send(ctx, x.endpoint.asks(i, x.endpoint.Body, x.key(i)))
	if err == nil && (marked(a) || !marked(b)) {
		err = fmt.Errorf("the first answer is %s, the second one %s", a, b)
	}
	return err
}

func marked(a answer) bool {
	value := strings.TrimSpace(a.header.Get("Idempotent-Replayed"))
	return value == "true" || value == "?1"
}

// overtake sends a slow request and, while it runs, the same once more. It returns the second one's answer.
func (x exam) overtake(ctx context.Context) (answer, error) {
	if x.endpoint.SlowBody == "" {
		return answer{}, notApplicable{"the description has no slowBody"}
	}
	i, err := x.begin(ctx)
	if err != nil {
		return answer{}, err
	}
	r := x.endpoint.asks(i, x.endpoint.SlowBody, x.key(i))
	type ended struct {
		answer
		err error
	}
	first := make(chan ended, 1)
	go func() {
		a, err := x.send(ctx, r)
		first <- ended{a, err}
	}()
	// Nothing tells from outside when the first request has begun to be processed: it is given a moment.
	select {
	case <-time.After(headStart):
	case <-ctx.Done():
	}
	second, err := x.send(ctx, r)
	if err != nil {
		return second, err
	}
	a := <-first
	switch {
	case a.err != nil:
		return second, a.err
	case a.until.Sub(a.from) < 2*headStart:
		return second, notApplicable{"the request with slowBody was not slow"}
	}
	return second, nil
}

// headStart is how long a slow request runs before it is sent once more.
const headStart = 300 * time.Millisecond

func conflict(_ context.Context, x exam) error {
	a, err := x.overtaken()
	if err == nil && (a.status < 400 || a.status > 499) {
		err = fmt.Errorf("the second request is answered %s after %s", a, a.until.Sub(a.from).Round(time.Millisecond))
	}
	return err
}

func conflictStatus(_ context.Context, x exam) error {
	a, err := x.overtaken()
	if err == nil && (a.status != http.StatusConflict || len(a.body) == 0 && !linked(a)) {
		err = fmt.Errorf("the second request is answered %s", a)
	}
	return err
}

func conflictRetryAfter(_ context.Context, x exam) error {
	a, err := x.overtaken()
	if err == nil && a.header.Get("Retry-After") == "" {
		err = fmt.Errorf("the second request is answered %s", a)
	}
	return err
}

func burst(ctx context.Context, x exam) error {
	const many = 10
	i, err := x.begin(ctx)
	if err != nil {
		return err
	}
	answers, err := x.sendAll(ctx, x.endpoint.asks(i, x.endpoint.Body, x.key(i)), many)
	if err != nil {
		return err
	}
	var done *answer
	for _, a := range answers {
		switch {
		case !x.endpoint.succeeded(a) && a.status < 400:
			return fmt.Errorf("one of %d is answered %s", many, a)
		case !x.endpoint.succeeded(a):
		case done == nil:
			done = &a
		case !done.same(a):
			return fmt.Errorf("two of %d are answered %s and %s", many, done, a)
		}
	}
	if done == nil {
		return fmt.Errorf("none of %d is a success; one is answered %s", many, answers[0])
	}
	return nil
}

// keyless sends a request without the header.
func (x exam) keyless(ctx context.Context) (answer, error) {
	if x.endpoint.Optional {
		return answer{}, notApplicable{"the endpoint works without a key (keyOptional)"}
	}
	i, err := x.begin(ctx)
	if err != nil {
		return answer{}, err
	}
	return x.send(ctx, x.endpoint.asks(i, x.endpoint.Body))
}

func missingKey(ctx context.Context, x exam) error {
	a, err := x.keyless(ctx)
	if err == nil && a.status != http.StatusBadRequest {
		err = fmt.Errorf("it is answered %s", a)
	}
	return err
}

func missingKeyLink(ctx context.Context, x exam) error {
	a, err := x.keyless(ctx)
	if err == nil && !linked(a) {
		err = fmt.Errorf("it is answered %s", a)
	}
	return err
}

// linked tells whether an error has a link to documentation: the Link field with that relation, or in its body a
// problem's type or any other reference.
func linked(a answer) bool {
	if a.status < 400 {
		return false
	}
	if strings.Contains(strings.Join(a.header.Values("Link"), ","), "describedby") {
		return true
	}
	var p struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(a.body, &p) == nil && p.Type != "" && p.Type != "about:blank" {
		return true
	}
	return strings.Contains(string(a.body), "https://") || strings.Contains(string(a.body), "http://")
}

// reused sends another request under a key that has its result.
func (x exam) reused(ctx context.Context) (i intent, first, second answer, err error) {
	i, first, err = x.first(ctx)
	if err != nil {
		return i, first, second, err
	}
	second, err = x.send(ctx, x.endpoint.asks(i, x.endpoint.OtherBody, x.key(i)))
	return i, first, second, err
}

func reuse(ctx context.Context, x exam) error {
	_, _, a, err := x.reused(ctx)
	if err == nil && (a.status < 400 || a.status > 499) {
		err = fmt.Errorf("it is answered %s", a)
	}
	return err
}

func reuseStatus(ctx context.Context, x exam) error {
	_, _, a, err := x.reused(ctx)
	if err == nil && a.status != http.StatusUnprocessableEntity {
		err = fmt.Errorf("it is answered %s", a)
	}
	return err
}

func reuseLink(ctx context.Context, x exam) error {
	_, _, a, err := x.reused(ctx)
	if err == nil && !linked(a) {
		err = fmt.Errorf("it is answered %s", a)
	}
	return err
}

func reuseKeeps(ctx context.Context, x exam) error {
	i, first, _, err := x.reused(ctx)
	if err != nil {
		return err
	}
	return x.repeats(ctx, first, x.endpoint.asks(i, x.endpoint.Body, x.key(i)))
}

// isolation has another caller use the key: whatever he gets, it is not the first one's result.
func isolation(ctx context.Context, x exam) error {
	if len(x.endpoint.OtherCaller) == 0 {
		return notApplicable{"the description has no otherCaller"}
	}
	i, first, err := x.first(ctx)
	if err != nil {
		return err
	}
	other, err := x.send(ctx, x.endpoint.asOther(x.endpoint.asks(i, x.endpoint.Body, x.key(i)), i))
	if err == nil && (other.same(first) || marked(other)) {
		err = fmt.Errorf("another caller is answered %s", other)
	}
	return err
}

func problemDocuments(ctx context.Context, x exam) error {
	_, _, a, err := x.reused(ctx)
	if err != nil {
		return err
	}
	if err := describes(a); err != nil {
		return err
	}
	a, err = x.keyless(ctx)
	if _, optional := err.(notApplicable); optional { //nolint:errorlint // it is made right there
		return nil
	}
	if err != nil {
		return err
	}
	return describes(a)
}

// describes demands a problem document with what people and programs need.
func describes(a answer) error {
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	var p struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
	}
	if err != nil || kind != "application/problem+json" || json.Unmarshal(a.body, &p) != nil || p.Title == "" ||
		p.Status != 0 && p.Status != a.status {
		return fmt.Errorf("it is answered %s", a)
	}
	return nil
}
