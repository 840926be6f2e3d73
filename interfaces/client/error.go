package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Error is the service's definite word on a request: it was not done, or not as it was asked. Retry says what may be
// done now; only NewKey allows a new intent for the same thing.
type Error struct {
	Operation Operation
	Key       Intent // of an operation under a key
	Status    int
	Code      Code
	Retry     Advice
	Title     string
	Detail    string
	RequestID string

	DeclineCode string      // of CodePaymentDeclined: the provider's reason
	OrderStatus string      // of CodeInvalidState: the order's state
	Parts       []PartError // of CodeInvalidRequest: what is wrong

	Answer Answer // as it came, with all members
}

// PartError is one thing that is wrong with a request.
type PartError struct {
	Pointer string `json:"pointer"` // into the body (RFC 6901); empty for the whole of it, and for path and query
	Detail  string `json:"detail"`
}

// Error names the code and the request.
func (e *Error) Error() string {
	return fmt.Sprintf("client: %s: %s: %s (status %d, request %s)", e.Operation, e.Code, e.Detail, e.Status, e.RequestID)
}

// CodeOf is the code of the *Error in err's chain, empty if there is none: a switch over it reads well.
func CodeOf(err error) Code {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}

// errorIn reads an answer that holds a problem of the service.
func errorIn(a Answer, of call) (*Error, bool) {
	p, said := problemIn(a.Body)
	if !said {
		return nil, false
	}
	e := &Error{
		Operation: of.operation, Key: of.key, Status: a.Status, Code: p.Code, Retry: p.Retry, Title: p.Title,
		Detail: p.Detail, RequestID: a.RequestID(), Answer: a,
	}
	var members struct {
		DeclineCode string      `json:"declineCode"`
		OrderStatus string      `json:"orderStatus"`
		Errors      []PartError `json:"errors"`
	}
	if json.Unmarshal(a.Body, &members) == nil { // a member of another type than it should be is left out
		e.DeclineCode, e.OrderStatus, e.Parts = members.DeclineCode, members.OrderStatus, members.Errors
	}
	return e, true
}

// Unreadable is an answer that is not the service's, or not whole: a proxy's page, an empty body, half a document.
type Unreadable struct {
	Answer Answer
	Cause  error // what is wrong with it; nil if only the status is known
}

// Error tells the status and what is wrong.
func (u *Unreadable) Error() string {
	if u.Cause == nil {
		return fmt.Sprintf("client: an answer with status %d that is not the service's", u.Answer.Status)
	}
	return fmt.Sprintf("client: an answer with status %d that cannot be read: %v", u.Answer.Status, u.Cause)
}

// Unwrap is what is wrong with the answer.
func (u *Unreadable) Unwrap() error { return u.Cause }

// Why a call ended without a definite answer, unless its context did.
var (
	// ErrTries says that the last try that WithTries allows has had no definite answer.
	ErrTries = errors.New("client: no tries are left")
	// ErrTotalTime says that what WithTotalTime allows is over, or would be before the next try.
	ErrTotalTime = errors.New("client: no time is left")
	// ErrNotSettled says that the last answer is not one to ask again after, and does not tell the outcome either.
	ErrNotSettled = errors.New("client: the answer does not tell the outcome")
)

// NoAnswer says that a call ended without a definite answer. It unwraps to Cause alone: an *Error in a chain is always
// the service's definite word.
type NoAnswer struct {
	Operation  Operation
	Key        Intent
	Tries      int           // how often the request was sent
	Cause      error         // ErrTries, ErrTotalTime, ErrNotSettled, or why the context ended
	Last       error         // how the last try ended: *Error, *Unreadable, or the transport's error
	Status     int           // of the last answer; 0 if there was none
	RequestID  string        // of the last try
	RetryAfter time.Duration // what the last answer asked for; 0 if nothing
}

// Error tells why, and how the last try ended.
func (n *NoAnswer) Error() string {
	return fmt.Sprintf("client: no definite answer to %s after %d tries: %v; the last one: %v",
		n.Operation, n.Tries, n.Cause, n.Last)
}

// Unwrap is why the call ended: errors.Is(err, context.Canceled), say.
func (n *NoAnswer) Unwrap() error { return n.Cause }

// UnknownOutcome says that an operation may have had its effect or not. Ask with Client.Outcome(ctx, u.Operation, u.Key),
// or call the operation again with the same intent; for a document, post it again. Never take a new intent for it.
type UnknownOutcome struct{ NoAnswer }

// Error says so, and what to do.
func (u *UnknownOutcome) Error() string {
	if u.Operation == OpPostJournalEntry {
		return u.NoAnswer.Error() + "; its outcome is unknown, post the same document again"
	}
	return fmt.Sprintf("%s; its outcome is unknown, ask for the key %s", u.NoAnswer.Error(), u.Key)
}

// Unwrap is the *NoAnswer.
func (u *UnknownOutcome) Unwrap() error { return &u.NoAnswer }
