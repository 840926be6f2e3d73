package client

import (
	"errors"
	"io"
	"net/http"
)

// Answer is an HTTP answer as it came: a replay has the same Body, byte for byte.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Tries counts the times the request was sent for it.
	Tries int
}

// Replayed tells that the answer stems from another execution than that of the try which got it: often an earlier try of
// the same call.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// RequestID is under which the service has logged the try that got the answer.
func (a Answer) RequestID() string { return a.Header.Get("X-Request-Id") }

// maxAnswer is far more than the service answers: a request has 64 KiB at most.
const maxAnswer = 1 << 20

var errTooLong = errors.New("client: the answer is longer than 1 MiB")

// readAnswer reads an answer whole. Errors: the connection's, errTooLong. Status and header are there in any case.
func readAnswer(r *http.Response) (Answer, error) {
	a := Answer{Status: r.StatusCode, Header: r.Header}
	if r.StatusCode == http.StatusSwitchingProtocols {
		return a, nil // what follows is the bare connection, which no context ends and no answer is on
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	if len(body) > maxAnswer {
		body, err = body[:maxAnswer], errTooLong
	}
	a.Body = body
	return a, err
}
