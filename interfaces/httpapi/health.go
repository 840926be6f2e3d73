package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/application/port"
)

const (
	readyTimeout = 2 * time.Second
	// readyFor is how long an answer of the store is good enough. Together with the time of a request's own way it
	// stays below the two seconds that are promised.
	readyFor = time.Second
)

// readiness asks the store whether it can work, at most once at a time and not for every probe.
type readiness struct {
	ask      func(ctx context.Context) error
	draining atomic.Bool

	mu    sync.Mutex
	asked time.Time // when the last answer came
	err   error
}

var errDraining = errors.New("the service is shutting down")

// check is the store's answer, a moment old at most, and errDraining from Drain on, whatever the store says.
func (r *readiness) check(ctx context.Context) error {
	if r.draining.Load() {
		return errDraining
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) >= readyFor {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		r.err = r.ask(ctx)
		r.asked = time.Now()
	}
	if r.draining.Load() {
		return errDraining
	}
	return r.err
}

// Drain makes /readyz answer 503 from now on, so that no new requests are sent here while the service shuts down. What
// would not end by itself, the live view, ends.
func (s *Server) Drain() {
	s.ready.draining.Store(true)
	if s.config.Live != nil {
		s.config.Live.Close()
	}
}

func (s *Server) getReadyz(c echo.Context) error {
	if err := s.ready.check(c.Request().Context()); err != nil {
		return port.ErrUnavailable.Because(err)
	}
	return sendHealth(c, "ready")
}

func getHealthz(c echo.Context) error { return sendHealth(c, "alive") }

func sendHealth(c echo.Context, status string) error {
	notStored.on(c.Response().Header())
	return sendView(c, http.StatusOK, struct {
		Status string `json:"status"`
	}{status})
}
