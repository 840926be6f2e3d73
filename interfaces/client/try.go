package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Try is one sending of a call's request, as an observer is told of it. All tries of a call have the same key and the
// same body. (Not an attempt, which is the service's word for charging an order.)
type Try struct {
	Operation Operation
	Key       Intent
	Number    int    // from 1
	RequestID string // sent with the request, so it is known although no answer came
	Status    int    // of the answer; 0 if there was none
	Answer    Answer // as it came, or as much of it as did
	Err       error  // nil for a success; else *Error, *Unreadable, or the transport's error
	Took      time.Duration
	Again     bool          // whether the request is sent once more
	Wait      time.Duration // until then
}

func bodyOf(of call) io.Reader {
	if of.body == nil {
		return http.NoBody
	}
	return bytes.NewReader(of.body)
}

// do sends the call's request until there is a definite answer or the budget is spent. A success has been read. Errors:
// *Error, *NoAnswer, *UnknownOutcome, and others for what was never sent.
func (c *Client) do(ctx context.Context, of call) (Answer, error) {
	if err := errors.Join(c.check(), ctx.Err()); err != nil {
		return Answer{}, notSent(of, err)
	}
	whole, cancel := context.WithTimeout(ctx, c.budget.total)
	defer cancel()
	for n := 1; ; n++ {
		t := c.try(whole, of, n)
		wait, end := c.next(ctx, whole, t)
		c.observer(t.told(end == nil && t.err != nil, wait))
		if end != nil || t.err == nil {
			return t.answer, end
		}
		if !slept(whole, wait) {
			return t.answer, c.without(ended(ctx), t)
		}
	}
}

// next is how long to wait for the next try, or the error with which the call ends; neither after a success.
func (c *Client) next(ctx, whole context.Context, t tried) (time.Duration, error) {
	switch {
	case t.err == nil:
		return 0, nil
	case !t.again:
		return 0, c.settled(t)
	case whole.Err() != nil:
		return 0, c.without(ended(ctx), t)
	case t.number >= c.budget.tries:
		return 0, c.without(ErrTries, t)
	}
	now := time.Now()
	wait := c.pace.after(t.number, t.answer.Header, now)
	deadline, _ := whole.Deadline()
	if now.Add(wait).Before(deadline) {
		return wait, nil
	}
	if callers, limited := ctx.Deadline(); limited && !callers.After(deadline) {
		return 0, c.without(context.DeadlineExceeded, t)
	}
	return 0, c.without(ErrTotalTime, t)
}

// settled is the error of a try after which there is no other, whatever the budget.
func (c *Client) settled(t tried) error {
	var problem *Error
	switch said := errors.As(t.err, &problem); {
	case neverSent(t.err) && t.number == 1:
		return notSent(t.of, t.err)
	case !said:
		return c.without(ErrNotSettled, t)
	case t.of.changes() && problem.Retry == AfterFix && t.number > 1:
		// The service says that this try has not used the key. An earlier one, of which nothing was heard, may have.
		return c.without(ErrNotSettled, t)
	default:
		return problem
	}
}

// without is the error of a call that ends without a definite answer.
func (c *Client) without(cause error, t tried) error {
	n := NoAnswer{
		Operation: t.of.operation, Key: t.of.key, Tries: t.number, Cause: cause, Last: t.err, Status: t.answer.Status,
		RequestID: t.requestID, RetryAfter: retryAfter(t.answer.Header, time.Now(), c.pace.maxRetryAfter),
	}
	if t.of.changes() {
		return &UnknownOutcome{NoAnswer: n}
	}
	return &n
}

func notSent(of call, cause error) error {
	return fmt.Errorf("client: %s was not sent: %w", of.operation, cause)
}

// ended is why a call is over whose time is: the caller's context, or the budget.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrTotalTime
}

// slept tells whether the wait was over before the context was.
func slept(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tried is a try that has ended.
type tried struct {
	of        call
	number    int
	requestID string
	answer    Answer // whatever of it came
	err       error  // nil for a success that was read
	again     bool   // as the policy has it, whatever the budget
	took      time.Duration
}

func (t tried) told(again bool, wait time.Duration) Try {
	return Try{
		Operation: t.of.operation, Key: t.of.key, Number: t.number, RequestID: t.requestID, Status: t.answer.Status,
		Answer: t.answer, Err: t.err, Took: t.took, Again: again, Wait: wait,
	}
}

// try sends the request once and judges what comes back.
func (c *Client) try(ctx context.Context, of call, number int) tried {
	t := tried{of: of, number: number, requestID: uuid.NewString()}
	started := time.Now()
	t.answer, t.err = c.send(ctx, of, t.requestID)
	t.took = time.Since(started)
	t.answer.Tries = number
	if id := t.answer.RequestID(); id != "" {
		t.requestID = id
	}
	switch {
	case errors.Is(t.err, errTooLong):
		t.err = &Unreadable{Answer: t.answer, Cause: t.err}
		t.again = again(t.answer.Status, nil)
	case t.err != nil:
		t.again = !neverSent(t.err)
	case t.answer.Status >= 200 && t.answer.Status < 300:
		if err := of.read(t.answer); err != nil {
			t.err = &Unreadable{Answer: t.answer, Cause: err}
		}
	default:
		t.again = again(t.answer.Status, t.answer.Body)
		if problem, said := errorIn(t.answer, of); said {
			t.err = problem
		} else {
			t.err = &Unreadable{Answer: t.answer}
		}
	}
	return t
}

// send is one exchange. An answer that is cut off in its middle is an error of the connection, like one that never came.
func (c *Client) send(ctx context.Context, of call, requestID string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.budget.try)
	defer cancel()
	request, err := c.request(ctx, of, requestID)
	if err != nil {
		return Answer{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	return readAnswer(response)
}

// neverSent recognises the error of a connection that will fail the same way next time, before anything is sent.
func neverSent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}
