package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kakutei/interfaces/web"
)

// Reader is for whom the description is shown.
type Reader struct {
	// Base is the address of the service in the examples: scheme and host.
	Base string
	// Demo lets the examples have tokens; else they have a placeholder.
	Demo bool
}

// View is the description as a page shows it.
type View struct {
	Summary, About string
	Groups         []Group
	Schemas        []Schema
}

// Group is the operations for one kind of callers.
type Group struct {
	Name, About string
	Operations  []Operation
}

// Operation is one thing to ask for.
type Operation struct {
	ID, Method, Path, Title, About string
	NeedsToken                     bool
	After                          string // the operation that the example's command needs before it
	Command                        string // for a shell; empty for pages, which browsers show
	Parameters                     []Parameter
	Body                           *Content
	Answers                        []Answer
}

// Parameter is a part of the request beside its body.
type Parameter struct {
	Name, In, About, Example string
	Required                 bool
	Form                     Form
}

// Content is a body.
type Content struct {
	Form     Form
	Examples []Example
}

// Example is a body that was sent; Problem is its code if it is a problem document, which has a page of its own.
type Example struct{ Name, JSON, Problem string }

// Answer is what an operation may say.
type Answer struct {
	Status, Means, About string
	Headers              []Header
	Content              *Content
}

// Header is one of an answer's.
type Header struct{ Name, About string }

// Schema is the form of an object, or of a value that has rules of its own.
type Schema struct {
	Name, About string
	Form        Form
	Members     []Member
}

// Member is one of an object's.
type Member struct {
	Name, About string
	Required    bool
	Form        Form
}

// Form is what a value looks like, in a notation that needs no language. Schema is the name of the one that tells more.
type Form struct {
	Text, Schema, Suffix string
}

// In is the description in a language.
func (r Reader) In(l web.Language) View {
	v := views[l][r.Demo]()
	v.Groups = slices.Clone(v.Groups)
	for i, group := range v.Groups {
		operations := slices.Clone(group.Operations)
		for j, o := range operations {
			operations[j].Command = strings.ReplaceAll(o.Command, anyBase, r.Base)
		}
		v.Groups[i].Operations = operations
	}
	return v
}

// anyBase stands in for the address of the service: everything else about a view is the same for all readers.
const anyBase = "\x00"

// views are read from the document once, which takes a while, by language and by whether there are demo tokens.
var views = func() map[web.Language]map[bool]func() View {
	all := make(map[web.Language]map[bool]func() View, len(web.Languages))
	for _, l := range web.Languages {
		all[l] = map[bool]func() View{}
		for _, demo := range []bool{false, true} {
			all[l][demo] = sync.OnceValue(builder{parsed, l, Reader{Base: anyBase, Demo: demo}}.view)
		}
	}
	return all
}()

func (b builder) view() View {
	v := View{Summary: b.say(b.Info.Summary), About: b.say(b.Info.Description)}
	for _, tag := range b.Tags {
		v.Groups = append(v.Groups, Group{Name: tag.Name, About: b.say(tag.Description), Operations: b.operations(tag.Name)})
	}
	for _, schema := range b.Components["schemas"] {
		v.Schemas = append(v.Schemas, b.schema(schema.Name, schema.Value))
	}
	return v
}

type builder struct {
	parts
	language web.Language
	reader   Reader
}

func (b builder) say(text string) string { return Translated(b.language, text) }

func (b builder) operations(tag string) (all []Operation) {
	for _, path := range b.Paths {
		methods, _ := read[fields](b.parts, path.Value)
		for _, method := range methods {
			o, _ := read[operation](b.parts, method.Value)
			if slices.Contains(o.Tags, tag) {
				all = append(all, b.operation(strings.ToUpper(method.Name), path.Name, o))
			}
		}
	}
	return all
}

func (b builder) operation(method, path string, o operation) Operation {
	shown := Operation{
		ID: o.OperationID, Method: method, Path: path, Title: b.say(o.Summary), About: b.say(o.Description),
		NeedsToken: o.Security == nil, Command: b.command(method, path, o, ""),
	}
	shown.After, _, _ = strings.Cut(o.After, "#")
	for _, raw := range o.Parameters {
		p, _ := read[parameter](b.parts, raw)
		example := ""
		if p.Example != nil {
			example = fmt.Sprint(p.Example)
		}
		shown.Parameters = append(shown.Parameters, Parameter{
			Name: p.Name, In: p.In, About: b.say(p.Description), Required: p.Required, Form: b.form(p.Schema), Example: example,
		})
	}
	if o.RequestBody != nil {
		shown.Body = b.content(o.RequestBody.Content)
	}
	for _, answer := range o.Responses {
		shown.Answers = append(shown.Answers, b.answer(answer.Name, answer.Value))
	}
	return shown
}

func (b builder) answer(status string, raw json.RawMessage) Answer {
	said, _ := read[response](b.parts, raw)
	code, _ := strconv.Atoi(status)
	shown := Answer{Status: status, Means: http.StatusText(code), About: b.say(said.Description), Content: b.content(said.Content)}
	for _, h := range said.Headers {
		header, _ := read[struct{ Description string }](b.parts, h.Value)
		shown.Headers = append(shown.Headers, Header{Name: h.Name, About: b.say(header.Description)})
	}
	return shown
}

// content is the first one's; a document for programs has no other, a page's is a page.
func (b builder) content(all fields) *Content {
	if len(all) == 0 || !strings.HasSuffix(all[0].Name, "json") {
		return nil
	}
	m, _ := read[mediaType](b.parts, all[0].Value)
	shown := &Content{Form: b.form(m.Schema)}
	for _, e := range m.Examples {
		example, code := read[struct{ Value json.RawMessage }](b.parts, e.Value)
		shown.Examples = append(shown.Examples, Example{Name: e.Name, JSON: pretty(example.Value), Problem: code})
	}
	return shown
}

// schemaPart is what of a schema is shown; what only a validator needs is in the document.
type schemaPart struct {
	Description      string
	Type             any
	Const            any
	Enum             []any
	Minimum, Maximum *json.Number
	MaxLength        *int
	Format           string
	Items            json.RawMessage
	OneOf            []json.RawMessage
	Required         []string
	Properties       fields
}

func (b builder) schema(name string, raw json.RawMessage) Schema {
	s, _ := read[schemaPart](b.parts, raw)
	shown := Schema{Name: name, About: b.say(s.Description), Form: b.form(raw)}
	for _, property := range s.Properties {
		p, _ := read[schemaPart](b.parts, property.Value)
		own := schemaPart{}
		must(json.Unmarshal(property.Value, &own))
		about := own.Description
		if about == "" && len(p.Properties) == 0 {
			about = p.Description
		}
		shown.Members = append(shown.Members, Member{
			Name: property.Name, About: b.say(about), Required: slices.Contains(s.Required, property.Name),
			Form: b.form(property.Value),
		})
	}
	return shown
}

func (b builder) form(raw json.RawMessage) Form {
	s, name := read[schemaPart](b.parts, raw)
	switch {
	case name != "":
		return Form{Schema: name}
	case s.Const != nil:
		return Form{Text: written(s.Const)}
	case len(s.Enum) > 0:
		texts := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			texts[i] = written(value)
		}
		return Form{Text: strings.Join(texts, " | ")}
	case len(s.OneOf) > 0:
		texts := make([]string, len(s.OneOf))
		for i, one := range s.OneOf {
			form := b.form(one)
			texts[i] = cmp.Or(form.Schema, form.Text)
		}
		return Form{Text: strings.Join(texts, " | ")}
	case len(s.Items) > 0:
		form := b.form(s.Items)
		form.Suffix += "[]"
		return form
	}
	return Form{Text: kind(s.Type) + s.limits()}
}

// kind is a type, or several.
func kind(of any) string {
	several, isList := of.([]any)
	if !isList {
		return fmt.Sprint(of)
	}
	names := make([]string, len(several))
	for i, name := range several {
		names[i] = fmt.Sprint(name)
	}
	return strings.Join(names, " | ")
}

func (s schemaPart) limits() string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(" %s…%s", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(" ≥ %s", *s.Minimum)
	case s.MaxLength != nil:
		return fmt.Sprintf(" 1…%d", *s.MaxLength)
	case s.Format != "":
		return " (" + s.Format + ")"
	}
	return ""
}

func written(value any) string {
	text, err := json.Marshal(value)
	must(err)
	return string(text)
}
