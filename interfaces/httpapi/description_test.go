package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/reference"
)

// description is the published description of the interface, as the tests hold requests and answers against it: answers
// may have no member and no header that it does not name, although clients shall ignore such ones.
type description struct {
	*openapi3.T
	// found are exchanges that the description allows, by what is alike in them: the validator compiles a schema for
	// every comparison, and a storm of identical requests would wait for it.
	found *sync.Map
	one   *sync.Mutex // comparison at a time: of a storm's exchanges that are alike the others wait for the first
}

var described = func() description {
	for _, mediaType := range []string{"text/html", "text/css", "text/javascript", "image/svg+xml"} {
		openapi3filter.RegisterBodyDecoder(mediaType, openapi3filter.PlainBodyDecoder)
	}
	var raw map[string]any
	if err := json.Unmarshal(reference.Document(), &raw); err != nil {
		panic(err) // it is embedded
	}
	closeObjects(raw["components"].(map[string]any)["schemas"])
	text, err := json.Marshal(raw)
	if err != nil {
		panic(err) // it was JSON
	}
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err) // TestTheDescriptionIsOpenAPI tells more
	}
	d := description{document, &sync.Map{}, &sync.Mutex{}}
	for _, response := range d.responses() {
		d.addCommonHeaders(response)
	}
	return d
}()

// closeObjects lets no object have members that are not named.
func closeObjects(schema any) {
	object, isObject := schema.(map[string]any)
	if !isObject {
		return
	}
	if _, named := object["properties"]; named && object["type"] == "object" && object["additionalProperties"] == nil {
		object["additionalProperties"] = false
	}
	for _, part := range object {
		closeObjects(part)
	}
}

// responses are all that the document has.
func (d description) responses() (all []*openapi3.Response) {
	for _, shared := range d.Components.Responses {
		all = append(all, shared.Value)
	}
	for _, item := range d.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, response := range operation.Responses.Map() {
				all = append(all, response.Value)
			}
		}
	}
	return all
}

// sentWith is where a header is on every answer, or may be on any: whatever stands below that path.
func sentWith(h *openapi3.HeaderRef) string {
	below, _ := h.Value.Extensions["x-sent-with"].(string)
	return below
}

// addCommonHeaders adds the headers that every answer has, and those that any answer under /api/ may have.
func (d description) addCommonHeaders(response *openapi3.Response) {
	if response.Headers == nil {
		response.Headers = openapi3.Headers{}
	}
	for name, header := range response.Headers {
		delete(response.Headers, name)
		response.Headers[http.CanonicalHeaderKey(name)] = header
	}
	for name, header := range d.Components.Headers {
		name, below := http.CanonicalHeaderKey(name), sentWith(header)
		if _, own := response.Headers[name]; own || below == "" {
			continue
		}
		common := *header.Value
		common.Required = below == "/"
		response.Headers[name] = &openapi3.HeaderRef{Value: &common}
	}
}

// netHTTP are the headers that net/http adds, or that belong to the body.
var netHTTP = []string{"Connection", "Content-Length", "Content-Type", "Date", "Transfer-Encoding"}

// conforming is a transport that brings no answer which the description does not allow, and lets no request be served
// which it forbids. Requests that are wrong on purpose need no other mark than their refusal.
type conforming struct {
	http.RoundTripper
	description
}

func (c conforming) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(sent))
	response, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), ending{err}))
	if err != nil { // it is the test's to see
		return response, nil //nolint:nilerr // when it reads so far
	}
	if err := c.judge(r, sent, answer{response.StatusCode, response.Header, string(body)}); err != nil {
		return nil, fmt.Errorf("%s %s is answered %d, %s\nThe description has it otherwise: %w",
			r.Method, r.URL, response.StatusCode, body, err)
	}
	return response, nil
}

// ending is the end of a body, with the error it came with.
type ending struct{ error }

func (e ending) Read([]byte) (int, error) {
	if e.error != nil {
		return 0, e.error
	}
	return 0, io.EOF
}

// judge compares a request and its answer with the description.
func (d description) judge(r *http.Request, sent []byte, a answer) error {
	header := a.header.Clone()
	header.Del("Date")
	header.Del("Content-Length")
	alike := likeness(fmt.Sprint(r.Method, r.URL.RequestURI(), r.Header, a.status, header, a.body)) + string(sent)
	if _, allowed := d.found.Load(alike); allowed {
		return nil
	}
	d.one.Lock()
	defer d.one.Unlock()
	if _, allowed := d.found.Load(alike); allowed {
		return nil
	}
	err := d.compare(r, sent, a)
	if err == nil {
		d.found.Store(alike, true)
	}
	return err
}

// isChanging tells whether a word is another one each time, and no more or less right for that: an id, a time, a key or a
// request id of the tests.
func isChanging(word string) bool {
	switch n := len(word); {
	case strings.HasPrefix(word, "key-"), n == 36 && strings.Count(word, "-") == 4:
		return true
	case n == 26 && strings.ToUpper(word) == word && !strings.ContainsAny(word, "-:."):
		return true
	case n >= len("2006-01-02T15:04:05Z") && word[10] == 'T':
		_, err := time.Parse("2006-01-02T15:04:05.999999Z", word)
		return err == nil
	default:
		return false
	}
}

// likeness is a text without what is another one each time.
func likeness(text string) string {
	var alike strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(r rune) bool {
			return r != '-' && r != ':' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		switch end {
		case 0:
			_, end = utf8.DecodeRuneInString(text)
		case -1:
			end = len(text)
		}
		if word := text[:end]; isChanging(word) {
			alike.WriteByte('*')
		} else {
			alike.WriteString(word)
		}
		text = text[end:]
	}
	return alike.String()
}

func (d description) compare(r *http.Request, sent []byte, a answer) error {
	in, found := d.input(r, sent)
	if !found {
		in.Route = d.anywhere()
	} else if a.wasServed() {
		if err := d.judgeRequest(r.Context(), in); err != nil {
			return err
		}
	}
	response := in.Route.Operation.Responses.Status(a.status)
	if response == nil {
		return errors.New("this status is not described")
	}
	for name := range a.header {
		if response.Value.Headers[name] == nil && !slices.Contains(netHTTP, name) {
			return fmt.Errorf("the header %s is not described", name)
		}
	}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.header,
		Body: io.NopCloser(strings.NewReader(a.body)), Options: in.Options,
	})
}

// judgeRequest is for a request that was served. Error: the description forbids it.
func (d description) judgeRequest(ctx context.Context, in *openapi3filter.RequestValidationInput) error {
	needsToken := in.Route.Operation.Security == nil
	for name := range in.Request.URL.Query() {
		if needsToken && in.Route.Operation.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("the parameter %s is not described", name)
		}
	}
	if err := openapi3filter.ValidateRequest(ctx, in); err != nil {
		return fmt.Errorf("it was served: %w", err)
	}
	return nil
}

// wasServed tells whether a use case has judged the request, so that everything about its form must have been right
// (docs/contract.md, General, Order of checks). Before that come the answers to requests that are malformed or too many.
func (a answer) wasServed() bool {
	switch a.status {
	case http.StatusPaymentRequired, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound:
		return strings.Contains(a.body, `"code":"order_not_found"`)
	default:
		return a.status < http.StatusBadRequest
	}
}

// input is the request for the validator, with its operation if it is addressed to one.
func (d description) input(r *http.Request, sent []byte) (in *openapi3filter.RequestValidationInput, found bool) {
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	for name, values := range again.Header {
		for i, value := range values {
			values[i] = strings.Trim(value, " \t") // as it is sent
		}
		if strings.Join(values, "") == "" {
			delete(again.Header, name) // which the validator would not take
		}
	}
	in = &openapi3filter.RequestValidationInput{
		Request: again, QueryParams: r.URL.Query(),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, SkipSettingDefaults: true,
			AuthenticationFunc: func(context.Context, *openapi3filter.AuthenticationInput) error {
				if !strings.HasPrefix(strings.ToLower(r.Header.Get("Authorization")), "bearer ") {
					return errors.New("there is no bearer token")
				}
				return nil
			},
		},
	}
	method := r.Method
	if method == http.MethodHead && !strings.HasPrefix(r.URL.Path, "/api/") {
		method = http.MethodGet
	}
	// A path without parameters comes first.
	paths := d.Paths.InMatchingOrder()
	for _, path := range paths {
		names, matches := match(path, r.URL.EscapedPath())
		operation := d.Paths.Value(path).GetOperation(method)
		if matches && operation != nil {
			in.PathParams = names
			in.Route = &routers.Route{
				Spec: d.T, Path: path, PathItem: d.Paths.Value(path), Method: method, Operation: operation,
			}
			return in, true
		}
	}
	return in, false
}

// match compares a path, as it was sent, with one that has parameters in braces.
func match(path, sent string) (names map[string]string, matches bool) {
	want, got := strings.Split(path, "/"), strings.Split(sent, "/")
	if len(want) != len(got) {
		return nil, false
	}
	names = map[string]string{}
	for i, segment := range want {
		name, err := url.PathUnescape(got[i])
		if strings.HasPrefix(segment, "{") && got[i] != "" {
			names[strings.Trim(segment, "{}")] = name
		} else if segment != got[i] || err != nil {
			return nil, false
		}
	}
	return names, true
}

// anywhere is what is answered where nothing is: no address, another method, a preflight, another host.
func (d description) anywhere() *routers.Route {
	responses := openapi3.NewResponsesWithCapacity(4)
	for status, name := range map[string]string{
		"204": "Preflight", "403": "Forbidden", "404": "NotFound", "405": "OtherMethod",
	} {
		responses.Set(status, d.Components.Responses[name])
	}
	return &routers.Route{Spec: d.T, Operation: &openapi3.Operation{Responses: responses}}
}

func TestTheDescriptionIsOpenAPI(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(reference.Document())
	require.NoError(t, err)
	require.True(t, document.IsOpenAPI31OrLater())
	require.NoError(t, document.Validate(t.Context()), "examples included")
}
