// Package fault is the one error vocabulary: what went wrong, what it means for the caller's key and what the caller
// should do about it. It knows nothing of HTTP, and declares no faults itself: each package declares those it raises.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Code names a fault for programs. Codes are published (docs/contract.md, Problems) and stored in records: none is ever
// renamed or removed.
type Code string

// Advice is the client's instruction. It alone decides whether a fault is an outcome: see Refusal.
type Advice string

const (
	// SameKey says: an accident or a wait; send the identical request again with the same key.
	SameKey Advice = "same-key"
	// NewKey says: decided for good under this key; correct the intent and use a new key.
	NewKey Advice = "new-key"
	// AfterFix says: the request was wrong and used no key; fix it and send it again.
	AfterFix Advice = "after-fix"
	// Never says: it is done already; do not send it again.
	Never Advice = "never"
)

// Fault is a typed error: an immutable value behind a pointer. Every method that seems to change it returns a copy, so
// that a package-level fault can be declared once and enriched where it is raised.
type Fault struct {
	code       Code
	advice     Advice
	detail     string
	wait       time.Duration
	members    []Member
	violations []Violation
	cause      error
}

// Member is one more thing that a caller's program may want to know, by its published name.
type Member struct {
	Name  string
	Value any
}

// Violation says what is wrong with one part of a request.
type Violation struct {
	// Field is the path to the part in the request's own names, as in "lines/0/quantity"; empty for the whole request.
	Field  string
	Detail string
}

// CodeInvalid is the code of every fault made by Invalid.
const CodeInvalid Code = "invalid_request"

// New declares a fault. The detail is for people: what is wrong, and what to do when the advice does not say it.
func New(code Code, advice Advice, detail string) *Fault {
	return &Fault{code: code, advice: advice, detail: detail}
}

// Invalid is the fault of a request that breaks a rule anyone can read; it names each violation.
func Invalid(violations ...Violation) *Fault {
	f := New(CodeInvalid, AfterFix, "the request is not valid")
	if len(violations) > 0 {
		f.detail = violations[0].String()
	}
	f.violations = slices.Clone(violations)
	return f
}

// String reads like a sentence: the field, then what is wrong with it.
func (v Violation) String() string {
	if v.Field == "" {
		return v.Detail
	}
	return v.Field + ": " + v.Detail
}

// Error is for logs; clients read Detail.
func (f *Fault) Error() string {
	text := string(f.code) + ": " + f.detail
	if f.cause != nil {
		text += ": " + f.cause.Error()
	}
	return text
}

// Code is the fault's published name.
func (f *Fault) Code() Code { return f.code }

// Advice is what the caller should do.
func (f *Fault) Advice() Advice { return f.advice }

// Detail explains this fault to a person; it says nothing of the inside of the service.
func (f *Fault) Detail() string { return f.detail }

// Wait is how long the caller should wait before following the advice SameKey; zero when nothing is known.
func (f *Fault) Wait() time.Duration { return f.wait }

// Members are the fault's further facts, in the order they were added.
func (f *Fault) Members() []Member { return slices.Clone(f.members) }

// Violations are the parts of the request that are wrong; only faults made by Invalid have any.
func (f *Fault) Violations() []Violation { return slices.Clone(f.violations) }

// Unwrap is the accident behind the fault, for logs and errors.Is; never shown to clients.
func (f *Fault) Unwrap() error { return f.cause }

// Is tells that two faults are the same when their codes are.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.code == f.code
}

// Because is the fault with the error that caused it.
func (f *Fault) Because(cause error) *Fault {
	c := f.copied()
	c.cause = cause
	return c
}

// After is the fault with the time to wait before the next try.
func (f *Fault) After(wait time.Duration) *Fault {
	c := f.copied()
	c.wait = wait
	return c
}

// With is the fault with one more member.
func (f *Fault) With(name string, value any) *Fault {
	c := f.copied()
	c.members = append(c.members, Member{Name: name, Value: value})
	return c
}

// Saying is the fault with a detail of its own.
func (f *Fault) Saying(format string, args ...any) *Fault {
	c := f.copied()
	c.detail = fmt.Sprintf(format, args...)
	return c
}

func (f *Fault) copied() *Fault {
	c := *f
	c.members = slices.Clone(f.members)
	return &c
}

// From is the fault in err's chain.
func From(err error) (*Fault, bool) {
	var f *Fault
	ok := errors.As(err, &f)
	return f, ok
}

// Refusal is the fault in err's chain if it is a decision of the domain: exactly those that advise a new key. A refusal
// is an outcome, recorded and replayed; every other error is a failure and leaves none.
func Refusal(err error) (*Fault, bool) {
	f, ok := From(err)
	return f, ok && f.advice == NewKey
}
