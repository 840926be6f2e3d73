package httpapi

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/application/port"
)

// capacity is how many requests may be at work at once. What comes on top is refused at once and not queued: a queue
// that grows makes every answer late, also those of the requests that could have been answered. Nil is no bound.
type capacity chan struct{}

func newCapacity(limit int) capacity {
	if limit == 0 {
		return nil
	}
	return make(capacity, limit)
}

// errShed marks a request that found no place, or a store that is crowded.
var errShed = errors.New("as many requests are at work as can be")

var errFull = port.ErrUnavailable.Saying("too many requests are at work; nothing was done").Because(errShed)

// Why requests are shed, as the log tells.
const (
	noPlace = "requests are shed: as many as are allowed are at work"
	noRoom  = "requests are shed: too many wait for the store's connections"
)

// shedLine is how often the log tells that requests are shed.
const shedLine = 10 * time.Second

// shedding counts the requests that found no place since the log told of them.
type shedding struct {
	told  atomic.Int64 // when, in nanoseconds of Unix time
	count atomic.Int64
}

// admitted gives the request a place for as long as it is at work; reading on behind a refusal is no work. Only here is
// one turned away because others wait for the store: it has done nothing yet. Error: errFull.
func (s *Server) admitted(next echo.HandlerFunc) echo.HandlerFunc {
	next = s.whileThereIsRoom(next)
	if s.slots == nil {
		return next
	}
	return func(c echo.Context) error {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			return next(c)
		default:
			s.shed.tell(s.log, noPlace, slog.Int("limit", cap(s.slots)))
			return errFull
		}
	}
}

func (s *Server) whileThereIsRoom(next echo.HandlerFunc) echo.HandlerFunc {
	if s.config.Crowded == nil {
		return next
	}
	return func(c echo.Context) error {
		if s.config.Crowded() {
			s.turned.tell(s.log, noRoom)
			return errFull
		}
		return next(c)
	}
}

// tell has the log tell now and then, so that overload is not made worse by lines about it.
func (s *shedding) tell(log *slog.Logger, why string, more ...any) {
	count := s.count.Add(1)
	now, told := time.Now().UnixNano(), s.told.Load()
	if now-told >= int64(shedLine) && s.told.CompareAndSwap(told, now) {
		s.count.Add(-count)
		log.Warn(why, append([]any{"shed", count}, more...)...)
	}
}
