package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// The states of an outcome.
const (
	OutcomeInProgress = "IN_PROGRESS" // not known yet: ask again after RetryAfter, or send the operation again
	OutcomeSucceeded  = "SUCCEEDED"
	OutcomeFailed     = "FAILED" // refused, for good under this key
)

// Outcome is what became of an operation.
type Outcome struct {
	Operation   Operation       `json:"operation"`
	Key         Intent          `json:"idempotencyKey"`
	Status      string          `json:"status"`
	Executions  int             `json:"executions"`
	CreatedAt   time.Time       `json:"createdAt"`
	CompletedAt time.Time       `json:"completedAt"`
	ExpiresAt   time.Time       `json:"expiresAt"` // from then on the key is new; zero while in progress
	Response    json.RawMessage `json:"response"`  // of OutcomeSucceeded
	Problem     json.RawMessage `json:"problem"`   // of OutcomeFailed

	RetryAfter time.Duration `json:"-"` // of OutcomeInProgress: when to ask again
	Answer     Answer        `json:"-"`
}

// Outcome asks what became of PlaceOrder, ConfirmPayment or CancelOrder under a key, without sending it again. No record
// is an *Error with CodeNotFound: the key was not used (or its record has expired).
func (c *Client) Outcome(ctx context.Context, operation Operation, key Intent) (Outcome, error) {
	var o Outcome
	of := call{
		operation: ReadOutcome, key: key, method: http.MethodGet,
		path: "/api/idempotency-keys/" + url.PathEscape(string(key)) +
			"?operation=" + url.QueryEscape(string(operation)),
		read: o.readFrom,
	}
	if err := key.Check(); err != nil {
		return Outcome{}, notSent(of, err)
	}
	answer, err := c.do(ctx, of)
	if err != nil {
		return Outcome{}, err
	}
	o.Answer, o.RetryAfter = answer, retryAfter(answer.Header, time.Now(), c.pace.maxRetryAfter)
	return o, nil
}

func (o *Outcome) readFrom(a Answer) error {
	return decoded(a.Body, o, func() bool {
		switch o.Status {
		case OutcomeSucceeded:
			return len(o.Response) > 0
		case OutcomeFailed:
			return len(o.Problem) > 0
		default:
			return o.Status == OutcomeInProgress
		}
	})
}

// ErrNoOutcome says that there is no outcome yet.
var ErrNoOutcome = errors.New("client: the outcome is not known yet")

// Receipt is the outcome of ConfirmPayment as that operation would have returned it. Errors: the recorded refusal as an
// *Error, ErrNoOutcome.
func (o Outcome) Receipt() (Receipt, error) {
	var r Receipt
	err := o.read(r.readFrom)
	return r, err
}

// Order is the outcome of PlaceOrder or CancelOrder as that operation would have returned it. Errors: as of Receipt.
func (o Outcome) Order() (Order, error) {
	var order Order
	err := o.read(order.readFrom)
	return order, err
}

func (o Outcome) read(from func(Answer) error) error {
	switch o.Status {
	case OutcomeSucceeded:
		return from(Answer{Body: o.Response})
	case OutcomeFailed:
		return o.refusal()
	default:
		return ErrNoOutcome
	}
}

func (o Outcome) refusal() error {
	var recorded struct {
		Status int `json:"status"`
	}
	_ = json.Unmarshal(o.Problem, &recorded) // errorIn reads the same bytes and tells
	a := Answer{Status: recorded.Status, Header: o.Answer.Header, Body: o.Problem, Tries: o.Answer.Tries}
	refusal, said := errorIn(a, call{operation: o.Operation, key: o.Key})
	if !said {
		return &Unreadable{Answer: o.Answer, Cause: errIncomplete}
	}
	return refusal
}
