// Package reference holds the published description of the HTTP interface, an OpenAPI 3.1 document, and makes of it what
// people read. The document is written by hand; the tests of httpapi hold every request and every answer against it.
package reference

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed openapi.json
var document []byte

// Document is the description as it is served. Not to be changed.
func Document() []byte { return document }

// fields is a JSON object whose members keep their order: the order in which people read them.
type fields []field

type field struct {
	Name  string
	Value json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *fields) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return fmt.Errorf("reference: no object begins with %v (%w)", opening, err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		*f = append(*f, field{fmt.Sprint(name), value})
	}
	return nil
}

func (f fields) find(name string) (value json.RawMessage, found bool) {
	for _, field := range f {
		if field.Name == name {
			return field.Value, true
		}
	}
	return nil, false
}

// parts are what of the document is shown.
type parts struct {
	Info struct {
		Title, Summary, Description string
	}
	Tags []struct {
		Name, Description string
		DemoToken         string `json:"x-demo-token"` // one that may use these operations in demo mode
	}
	Paths      fields
	Components map[string]fields
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Security                          *[]any // empty: no token is needed
	Parameters                        []json.RawMessage
	RequestBody                       *struct{ Content fields }
	Responses                         fields
	// After is the operation that an example of this one needs before it, with the name of that one's example behind a
	// "#" where it is not the first.
	After string `json:"x-after"`
	// Keeps are members of the answer that later examples need, by the name of the shell's variable.
	Keeps map[string]string `json:"x-keeps"`
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                json.RawMessage
	Example               any
}

type response struct {
	Description string
	Headers     fields
	Content     fields
}

type mediaType struct {
	Schema   json.RawMessage
	Examples fields
}

// parsed is the document as it was written. It is embedded, so what is wrong with it is wrong in every test.
var parsed = func() (d parts) {
	if err := json.Unmarshal(document, &d); err != nil {
		panic(err)
	}
	return d
}()

// read decodes a part, which may stand elsewhere: then name is what it is called there.
func read[T any](d parts, raw json.RawMessage) (part T, name string) {
	var elsewhere struct {
		Ref string `json:"$ref"`
	}
	must(json.Unmarshal(raw, &elsewhere))
	if path, isElsewhere := strings.CutPrefix(elsewhere.Ref, "#/components/"); isElsewhere {
		kind, called, _ := strings.Cut(path, "/")
		found, is := d.Components[kind].find(called)
		if !is {
			panic("reference: there is no " + elsewhere.Ref)
		}
		raw, name = found, called
	}
	must(json.Unmarshal(raw, &part))
	return part, name
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("reference: the document is embedded, and cannot be read: %v", err))
	}
}

// pretty is JSON as people read it: in lines, with the order of members as it was written.
func pretty(raw json.RawMessage) string {
	var text bytes.Buffer
	must(json.Indent(&text, raw, "", "  "))
	return text.String()
}

// Problem is the example of the problem document with this code, for people to read; empty if there is none.
func Problem(code string) string {
	raw, found := parsed.Components["examples"].find(code)
	if !found {
		return ""
	}
	example, _ := read[struct{ Value json.RawMessage }](parsed, raw)
	return pretty(example.Value)
}
