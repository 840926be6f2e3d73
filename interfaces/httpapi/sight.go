package httpapi

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
)

// Answered is what became of one request.
type Answered struct {
	Method string
	Route  string // as it was registered; empty when there is none
	Status int
	Took   time.Duration
	Code   fault.Code // of the problem that was answered, unless it was a recorded one; empty for none
}

// pathMetrics is where metrics are scraped. It needs no token: it names routes, operations and codes, and nobody.
const pathMetrics = "/metrics"

// routeMetrics has metrics answered, if there are any.
func (s *Server) routeMetrics() {
	if s.config.Metrics == nil {
		return
	}
	scraped := func(c echo.Context) error {
		notStored.on(c.Response().Header())
		s.config.Metrics.ServeHTTP(c.Response(), c.Request())
		return nil
	}
	s.echo.GET(pathMetrics, scraped)
	s.echo.HEAD(pathMetrics, scraped)
}

// tell tells whoever wants to know that a request is answered.
func (s *Server) tell(c echo.Context, took time.Duration) {
	if s.config.Answered == nil {
		return
	}
	s.config.Answered(c.Request().Context(), Answered{
		Method: c.Request().Method, Route: c.Path(), Status: c.Response().Status, Took: took, Code: visitOf(c).code,
	})
}

// RequestID is the id of the request that the context belongs to, as it is answered; empty when there is none.
func RequestID(ctx context.Context) string {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.requestID
	}
	return ""
}

// traceID is the trace that a request is in; empty when it is in none, or nobody traces.
func (s *Server) traceID(c echo.Context) string {
	if s.config.TraceID == nil {
		return ""
	}
	return s.config.TraceID(c.Request().Context())
}
