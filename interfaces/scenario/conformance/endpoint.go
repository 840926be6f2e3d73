// Package conformance checks any HTTP endpoint, from outside, against the draft that defines the Idempotency-Key header
// (draft-ietf-httpapi-idempotency-key-header-07). It knows nothing of Kakutei: what it has to send stands in a
// description.
package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"
)

// Endpoint describes what to send to an endpoint, and what success looks like. In its texts ${fresh} is a value of its
// own for each intent, and ${name} what Prepare has taken.
type Endpoint struct {
	Name    string            `yaml:"name"`
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
	// OtherBody is another request to the same path.
	OtherBody string `yaml:"otherBody"`
	// SlowBody is a request that the endpoint takes a second or longer for. Empty: there is none.
	SlowBody string `yaml:"slowBody"`
	// OtherCaller is what headers are different when somebody else asks. Empty: there is one caller only.
	OtherCaller map[string]string `yaml:"otherCaller"`
	// Optional says that the endpoint works without a key, too.
	Optional bool    `yaml:"keyOptional"`
	Success  Success `yaml:"success"`
	// Prepare is a request that each intent needs beforehand. Nil: none.
	Prepare *Preparation `yaml:"prepare"`
}

// Success is what an answer looks like that has done what was asked.
type Success struct {
	Status []int `yaml:"status"`
	// Contains is a text in its body; empty: whatever.
	Contains string `yaml:"contains"`
}

// Preparation is a request whose answer's members the endpoint's texts may use.
type Preparation struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
	// Take names members of the JSON answer, with dots for inner ones, by the name that texts use.
	Take map[string]string `yaml:"take"`
}

// Read reads a description. The error says what is wrong with it.
func Read(in io.Reader) (Endpoint, error) {
	decoder := yaml.NewDecoder(in)
	decoder.KnownFields(true)
	var e Endpoint
	if err := decoder.Decode(&e); err != nil {
		return Endpoint{}, fmt.Errorf("it is no description of an endpoint: %w", err)
	}
	if e.Method == "" {
		e.Method = http.MethodPost
	}
	if len(e.Success.Status) == 0 {
		e.Success.Status = []int{200, 201}
	}
	for name, missing := range map[string]bool{
		"a path that begins with /": !strings.HasPrefix(e.Path, "/"), "a body": e.Body == "", "an otherBody": e.OtherBody == "",
	} {
		if missing {
			return Endpoint{}, fmt.Errorf("a description needs %s", name)
		}
	}
	if e.OtherBody == e.Body {
		return Endpoint{}, errors.New("otherBody must be another request than body")
	}
	if e.Prepare != nil && e.Prepare.Method == "" {
		e.Prepare.Method = http.MethodPost
	}
	return e, nil
}

// intent is one thing that is asked for: what texts stand for in it.
type intent struct {
	key    string
	values map[string]string
}

func newIntent() intent {
	return intent{key: uuid.NewString(), values: map[string]string{"fresh": uuid.NewString()}}
}

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// fill puts values for what is in braces.
func (i intent) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		if value, known := i.values[found[2:len(found)-1]]; known {
			return value
		}
		return found
	})
}

// request is one of an intent's.
type request struct {
	method, path string
	header       http.Header
	body         string
}

// asks is the endpoint's request for an intent, under a key as it shall stand in the header.
func (e Endpoint) asks(i intent, body string, keys ...string) request {
	r := request{method: e.Method, path: i.fill(e.Path), header: http.Header{}, body: i.fill(body)}
	for name, value := range e.Headers {
		r.header.Set(name, i.fill(value))
	}
	for _, key := range keys {
		r.header.Add("Idempotency-Key", key)
	}
	return r
}

// asOther is the request of another caller.
func (e Endpoint) asOther(r request, i intent) request {
	r.header = r.header.Clone()
	for name, value := range e.OtherCaller {
		r.header.Set(name, i.fill(value))
	}
	return r
}

// succeeded tells whether an answer has done what was asked.
func (e Endpoint) succeeded(a answer) bool {
	return slices.Contains(e.Success.Status, a.status) && bytes.Contains(a.body, []byte(e.Success.Contains))
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	from   time.Time // when the request was sent
	until  time.Time // when the answer was there
}

// same tells whether two answers say the same, byte for byte.
func (a answer) same(b answer) bool { return a.status == b.status && bytes.Equal(a.body, b.body) }

// String shows it.
func (a answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", a.status, http.StatusText(a.status))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if name == "Content-Type" || name == "Link" || name == "Retry-After" || strings.HasPrefix(name, "Idempot") {
			fmt.Fprintf(&b, ", %s: %s", name, a.header.Get(name))
		}
	}
	const most = 300
	fmt.Fprintf(&b, ", %q", a.body[:min(most, len(a.body))])
	return b.String()
}
