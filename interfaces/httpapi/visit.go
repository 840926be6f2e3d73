package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

const headerLink = "Link"

// visit is what the edge knows of one request while it is here.
type visit struct {
	requestID string
	actor     string          // once the token is accepted
	key       idempotency.Key // of an order POST or a look-up, if it is valid
	keyErr    error           // of an order POST: why there is no key
	bodyBegun bool
	code      fault.Code // of the problem that is the answer

	connection context.Context // over when the client has hung up; only what shows and does nothing may end by it
}

type visitKey struct{}

func visitOf(c echo.Context) *visit {
	v, _ := c.Request().Context().Value(visitKey{}).(*visit)
	return v
}

// begin sets what every answer has, whatever becomes of the request.
func (s *Server) begin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request, header := c.Request(), c.Response().Header()
		v := &visit{requestID: requestID(request.Header), connection: request.Context()}
		header.Set(echo.HeaderXRequestID, v.requestID)
		secure(header)
		if isAPI(request) {
			notStored.on(header)
		}
		if isOrderPost(c) {
			if v.key, v.keyErr = keyIn(request.Header); v.keyErr == nil {
				header.Set(headerKey, string(v.key))
			}
		}
		// The answer does not depend on the connection: neither a client that hangs up nor the server's read timeout
		// leaves a request half done.
		detached := context.WithValue(context.WithoutCancel(v.connection), visitKey{}, v)
		ctx, cancel := context.WithTimeout(detached, s.config.Deadline)
		defer cancel()
		c.SetRequest(request.WithContext(ctx))
		err := next(c)
		linger(c)
		return err
	}
}

// requestID is the client's own if it can stand in any log, else a new one.
func requestID(h http.Header) string {
	given := h[echo.HeaderXRequestID]
	if len(given) != 1 || given[0] == "" || len(given[0]) > 64 ||
		strings.ContainsFunc(given[0], func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return rand.Text()
	}
	return given[0]
}

func isOrderPost(c echo.Context) bool {
	if c.Request().Method != http.MethodPost {
		return false
	}
	switch c.Path() {
	case pathOrders, pathConfirm, pathCancel:
		return true
	default:
		return false
	}
}

// logged writes one line per request. Keys are hashed, tokens and paths with keys in them left out.
func (s *Server) logged(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		started := time.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		v, took := visitOf(c), time.Since(started)
		s.tell(c, took)
		ctx, lines := c.Request().Context(), s.log.Handler()
		if !lines.Enabled(ctx, slog.LevelInfo) {
			return nil
		}
		// written past the logger, which would look up from where for each line
		line := slog.NewRecord(started.Add(took), slog.LevelInfo, "request", 0)
		attributes := append(make([]slog.Attr, 0, 8),
			slog.String("method", c.Request().Method),
			slog.String("route", c.Path()),
			slog.Int("status", c.Response().Status),
			slog.Duration("duration", took),
			slog.String("requestId", v.requestID),
		)
		if v.actor != "" {
			attributes = append(attributes, slog.String("actor", v.actor))
		}
		if v.key != "" {
			attributes = append(attributes, slog.String("keyHash", v.key.Digest()))
		}
		if v.code != "" {
			attributes = append(attributes, slog.String("code", string(v.code)))
		}
		line.AddAttrs(attributes...)
		_ = lines.Handle(ctx, line) // as every logger does: there is nowhere to tell of it
		return nil
	}
}

// recovered makes an error of a panic. http.ErrAbortHandler is no accident: it closes the connection without an answer.
func recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch value := recover(); value {
			case nil:
			case http.ErrAbortHandler:
				panic(value)
			default:
				err = &panicked{value: value, stack: debug.Stack()}
			}
		}()
		return next(c)
	}
}

// onlyKnownMethods answers 405 wherever the path has another method, HEAD and OPTIONS not excepted, which Echo would
// answer by itself. Only a browser's question before a request (CORS) is answered.
func (s *Server) onlyKnownMethods(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		allow, isOther := c.Get(echo.ContextKeyHeaderAllow).(string)
		if !isOther {
			return next(c)
		}
		allow = strings.TrimPrefix(allow, http.MethodOptions+", ")
		if s.isPreflight(c.Request()) {
			return answerPreflight(c, allow)
		}
		c.Response().Header().Set(echo.HeaderAllow, allow)
		return echo.ErrMethodNotAllowed
	}
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
