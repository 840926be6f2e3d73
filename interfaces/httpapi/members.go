package httpapi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kakutei/domain/fault"
	"kakutei/domain/money"
)

const (
	maxText       = 256 // Unicode characters
	maxViolations = 32  // more are not told
	maxNameTold   = 64  // bytes: a pointer repeats an unknown member's name
)

// A request body is described member by member, and a description reads it:
//
//	decode(body,
//		required("amount", integer(&amount, 1, money.MaxUnits)),
//		optional("paymentMethod", text(&method)))

// member is what is expected under one name of an object.
type member struct {
	name     string
	required bool
	value    reader
}

// reader reads the next value into its place. What is wrong with the value is noted in the form; the error is a
// syntaxError, after which nothing can be read.
type reader func(f *form, field string) error

// form is a body that is being read, and what is wrong with it so far.
type form struct {
	scanner
	depth int
	wrong []fault.Violation
}

func required(name string, value reader) member {
	return member{name: name, required: true, value: value}
}

func optional(name string, value reader) member { return member{name: name, value: value} }

// decode reads a body that must be one JSON object with these members and no others. The error is a fault.Invalid that
// names everything that is wrong, or only where the text stops being JSON.
func decode(body []byte, members ...member) error {
	wrong, err := readObject(body, members...)
	if err == nil && len(wrong) > 0 {
		err = fault.Invalid(wrong...)
	}
	return err
}

// readObject is decode for who has more to say about the members than what is wrong with each. The error is of a text
// that is no JSON object: a fault.Invalid that says where.
func readObject(body []byte, members ...member) (wrong []fault.Violation, err error) {
	switch {
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return nil, invalidBody("the body begins with a byte order mark")
	case !utf8.Valid(body):
		return nil, invalidBody("the body is not valid UTF-8")
	}
	f := form{scanner: scanner{text: body}}
	if f.peek() != '{' {
		return nil, invalidBody("the body must be one JSON object")
	}
	err = object(members...)(&f, "")
	switch {
	case err != nil:
		return nil, invalidBody("the body is not valid JSON: %v", err)
	case !f.end():
		return nil, invalidBody("something follows after the JSON object")
	default:
		return f.wrong, nil
	}
}

func invalidBody(format string, args ...any) error {
	return fault.Invalid(fault.Violation{Detail: fmt.Sprintf(format, args...)})
}

func (f *form) note(field, format string, args ...any) {
	if len(f.wrong) < maxViolations {
		f.wrong = append(f.wrong, fault.Violation{Field: field, Detail: fmt.Sprintf(format, args...)})
	}
}

// refuse notes that the next value is wrong, and passes it over.
func (f *form) refuse(field, format string, args ...any) error {
	f.note(field, format, args...)
	return f.skip(f.depth + 1)
}

// object expects an object with these members, each at most once, and no others. Names are case-sensitive; null counts
// as absent.
func object(members ...member) reader {
	return func(f *form, field string) error {
		if f.peek() != '{' {
			return f.refuse(field, "must be an object")
		}
		f.depth++
		defer func() { f.depth-- }()
		seen := make([]bool, len(members))
		present := make([]bool, len(members))
		err := f.object(func(name string) error {
			i := indexOf(members, name)
			if i < 0 {
				return f.refuseUnknown(field, name)
			}
			at := join(field, name)
			if seen[i] {
				return f.refuse(at, "is given twice")
			}
			seen[i] = true
			if f.peek() == 'n' {
				return f.word()
			}
			present[i] = true
			return members[i].value(f, at)
		})
		if err != nil {
			return err
		}
		for i, m := range members {
			if m.required && !present[i] {
				f.note(join(field, m.name), "is required")
			}
		}
		return nil
	}
}

func indexOf(members []member, name string) int {
	for i, m := range members {
		if m.name == name {
			return i
		}
	}
	return -1
}

// pointerEscapes make a name one token of a JSON pointer (RFC 6901 §3).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// refuseUnknown points to an unknown member, or to the object when the name is not worth repeating.
func (f *form) refuseUnknown(field, name string) error {
	if name == "" || len(name) > maxNameTold {
		return f.refuse(field, "has a member that is not known here")
	}
	return f.refuse(join(field, pointerEscapes.Replace(name)), "is not known here")
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "/" + name
}

// list expects an array of at most so many elements. next is the reader of one more element.
func list(most int, next func() reader) reader {
	return func(f *form, field string) error {
		if f.peek() != '[' {
			return f.refuse(field, "must be an array")
		}
		f.depth++
		defer func() { f.depth-- }()
		n := 0
		err := f.array(func() error {
			n++
			if n > most {
				return f.skip(f.depth + 1)
			}
			return next()(f, join(field, strconv.Itoa(n-1)))
		})
		if n > most {
			f.note(field, "must have at most %d elements, not %d", most, n)
		}
		return err
	}
}

// text expects 1 to 256 Unicode characters without control characters.
func text(into *string) reader {
	return func(f *form, field string) error {
		if f.peek() != '"' {
			return f.refuse(field, "must be a string")
		}
		content, err := f.string()
		if err != nil {
			return err
		}
		if wrong := wrongText(content); wrong != "" {
			f.note(field, "%s", wrong)
		} else {
			*into = content
		}
		return nil
	}
}

// wrongText says why a string is no text; empty if it is one.
func wrongText(content string) string {
	switch n := utf8.RuneCountInString(content); {
	case n < 1 || n > maxText:
		return fmt.Sprintf("must be 1 to %d characters, not %d", maxText, n)
	case strings.ContainsFunc(content, unicode.IsControl):
		return "must not contain control characters"
	default:
		return ""
	}
}

// plain expects a string whose rules are the domain's.
func plain(into *string) reader {
	return func(f *form, field string) error {
		if f.peek() != '"' {
			return f.refuse(field, "must be a string")
		}
		content, err := f.string()
		*into = content
		return err
	}
}

// integer expects a JSON number within the limits, written without fraction and exponent.
func integer(into *int64, least, most int64) reader {
	return func(f *form, field string) error {
		if c := f.peek(); c != '-' && (c < '0' || c > '9') {
			return f.refuse(field, "must be an integer")
		}
		literal, err := f.number()
		if err != nil {
			return err
		}
		n, fits := within(literal, least, most)
		switch {
		case literal == "-0" || strings.ContainsAny(literal, ".eE"):
			f.note(field, "must be an integer, written without fraction and exponent, and 0 without a sign")
		case !fits:
			f.note(field, "must be %d to %d", least, most)
		default:
			*into = n
		}
		return nil
	}
}

func within(literal string, least, most int64) (n int64, fits bool) {
	n, err := strconv.ParseInt(literal, 10, 64)
	return n, err == nil && n >= least && n <= most
}

// currency expects an ISO 4217 code.
func currency(into *money.Currency) reader {
	return func(f *form, field string) error {
		if f.peek() != '"' {
			return f.refuse(field, "must be a string")
		}
		code, err := f.string()
		if err != nil {
			return err
		}
		parsed, err := money.ParseCurrency(code)
		if err != nil {
			f.note(field, "must be an active ISO 4217 code in upper case")
			return nil //nolint:nilerr // noted: reading goes on, to find whatever else is wrong
		}
		*into = parsed
		return nil
	}
}
