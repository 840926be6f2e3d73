package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
)

// maxBody is the largest request body in bytes.
const maxBody = 64 << 10

var (
	errTooLarge = fault.New("payload_too_large", fault.AfterFix, "the request body is larger than 64 KiB")
	errNotJSON  = fault.New("unsupported_media_type", fault.AfterFix,
		"the request body must be application/json, without a Content-Encoding")
)

// readBody is the whole body, checked for what can be known before it is decoded. Errors: errNotJSON, errTooLarge,
// fault.Invalid when it breaks off.
func readBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	if !isJSON(r.Header) {
		return nil, errNotJSON
	}
	if r.ContentLength > maxBody {
		return nil, errTooLarge
	}
	visitOf(c).bodyBegun = true
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := body.ReadFrom(io.LimitReader(r.Body, maxBody+1))
	switch {
	case n > maxBody:
		return nil, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, invalidBody("the body did not arrive in time")
	case err != nil: // of the client's making: it broke off, or its chunks are none
		return nil, invalidBody("the body is incomplete")
	default:
		return body.Bytes(), nil
	}
}

func isJSON(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 || len(h["Content-Encoding"]) > 0 {
		return false
	}
	if types[0] == typeJSON { // as nearly everybody writes it
		return true
	}
	mediaType, _, err := mime.ParseMediaType(types[0])
	return err == nil && mediaType == typeJSON
}

// What becomes of a refused body. net/http reads up to 256 KiB of it before it sends the answer, so that the connection
// can go on. A client that does not send is not waited for, and one that sends more is listened to: closing a
// connection with unread data resets it, and the client may never see its answer (RFC 9112 §9.6).
const (
	refusalPatience = time.Second
	lingerTime      = 5 * time.Second
	lingerBytes     = 16 << 20
)

// hurry bounds the wait for the rest of a body that nobody wants. It comes before the answer.
func hurry(c echo.Context) {
	if c.Request().ContentLength != 0 {
		_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(refusalPatience))
	}
}

// linger reads on once a refusal is sent. A body that has been read ends that at once; a client that waits for "100
// Continue" before it sends any is not waited for in turn.
func linger(c echo.Context) {
	r := c.Request()
	refused := c.Response().Committed && c.Response().Status >= http.StatusBadRequest
	waits := r.Header.Get("Expect") != "" && !visitOf(c).bodyBegun
	if r.ContentLength == 0 || !refused || waits {
		return
	}
	connection := http.NewResponseController(c.Response())
	if connection.Flush() == nil && connection.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // whatever ends it: the answer is out
	}
}
