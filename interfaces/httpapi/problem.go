package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

var (
	errInternal = fault.New(codeInternal, fault.SameKey,
		"something went wrong inside the service; the request id names this case in its log")
	errNoRoute  = fault.New("not_found", fault.AfterFix, "there is nothing at this address")
	errNoMethod = fault.New("method_not_allowed", fault.AfterFix, "the address does not have this method; see Allow")
)

// answerError is the one place where an error becomes an answer, and where its cause is logged.
func (s *Server) answerError(err error, c echo.Context) {
	f := faultOf(err)
	s.logFault(c, f, err)
	if c.Response().Committed {
		return
	}
	v := visitOf(c)
	about := origin{requestID: v.requestID, traceID: s.traceID(c)}
	document, err := problemDocument(f, about)
	if err != nil {
		f = errInternal
		s.logFault(c, f, err)
		document, _ = problemDocument(f, about) // it has texts only
	}
	v.code = f.Code()
	if f.Advice() == fault.SameKey {
		s.advise(c, f.Wait())
	}
	hurry(c)
	_ = send(c, problemsByCode[f.Code()].status, typeProblem, document) // the client may be gone
}

// faultOf names every error by a published code. What has none is a bug.
func faultOf(err error) *fault.Fault {
	if f, ok := fault.From(err); ok {
		if _, published := problemsByCode[f.Code()]; published {
			return f
		}
		return errInternal.Because(err)
	}
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return errNoRoute
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return errNoMethod
	case errors.Is(err, port.ErrCommitUnknown): // however it was lost
		return idempotency.ErrOutcomeUnknown.Because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return port.ErrUnavailable.Because(err)
	default:
		return errInternal.Because(err)
	}
}

// logFault logs what only operators may know: bugs and accidents, and why a token was refused, of which the answer says
// nothing. Any other request that is wrong is no news, and of those that are shed the log tells in a line for many.
func (s *Server) logFault(c echo.Context, f *fault.Fault, err error) {
	level := slog.LevelDebug
	switch status := problemsByCode[f.Code()].status; {
	case status == http.StatusInternalServerError:
		level = slog.LevelError
	case status == http.StatusServiceUnavailable && !errors.Is(err, errShed):
		level = slog.LevelWarn
	case status == http.StatusUnauthorized:
		level = slog.LevelInfo
	}
	v := visitOf(c)
	attributes := []slog.Attr{
		slog.String("requestId", v.requestID),
		slog.String("code", string(f.Code())),
		slog.String("error", v.key.HiddenIn(err.Error())),
	}
	var p *panicked
	if errors.As(err, &p) {
		attributes = append(attributes, slog.String("stack", string(p.stack)))
	}
	s.log.LogAttrs(context.WithoutCancel(c.Request().Context()), level, "request failed", attributes...)
}

// panicked is a panic on its way to the log.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// advise tells how long to wait before the same request is sent again: whole seconds, at least one, at most the lease.
func (s *Server) advise(c echo.Context, wait time.Duration) {
	seconds := int64((wait + time.Second - 1) / time.Second)
	seconds = max(min(seconds, int64(s.config.Lease/time.Second)), 1)
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.FormatInt(seconds, 10))
}

func sendView(c echo.Context, status int, view any) error {
	document, err := Documents{}.Result(view)
	if err != nil {
		return err
	}
	return send(c, status, typeJSON, document)
}

func send(c echo.Context, status int, mediaType string, document []byte) error {
	c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(document)))
	return c.Blob(status, mediaType, document)
}
