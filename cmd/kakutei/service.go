package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// service is the program while it serves: what runs, and in which order it ends.
type service struct {
	server     *http.Server
	listener   net.Listener
	background []func(ctx context.Context) // what runs beside the requests, until ctx ends
	last       func(ctx context.Context)   // what is told by all that, so it ends after them
	dropped    func()                      // says what last has not come to, when there is no time for it
	lastly     func(ctx context.Context)   // sends what is to be said of all that, within a moment
	store      io.Closer                   // needed until the last request has ended
	unready    func()                      // says from now on that the service is not ready
	grace      time.Duration
	log        *slog.Logger
}

// farewell is how long the listener stays open once the service has said that it is not ready: whoever is connecting in
// that moment is still served.
const farewell = 300 * time.Millisecond

// errCutOff is the end of a service that could not finish what it had begun.
var errCutOff = errors.New("running requests were cut off; each key can be taken over when its lease is over")

// run serves until ctx ends, and itself ends when everything has come to its end. Errors: the listener's, the store's
// on closing, and errCutOff when the grace is over or cut ends.
func (s *service) run(ctx, cut context.Context, started func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for _, work := range s.background {
		running.Go(func() { work(ctx) })
	}
	lastly, endLast := context.WithCancel(context.WithoutCancel(ctx))
	defer endLast()
	var ending sync.WaitGroup
	ending.Go(func() { s.last(lastly) })
	new(newcomers).watch(s.server)
	broken := make(chan error, 1)
	go func() { broken <- s.server.Serve(s.listener) }()
	started()

	var err error
	select {
	case <-ctx.Done():
		s.log.Info("stopping: running requests are finished, no new ones begun", "grace", s.grace.String())
	case err = <-broken:
		err = fmt.Errorf("the listener failed: %w", err)
		cancel()
	}
	return errors.Join(err, s.drain(cut, func() {
		running.Wait()
		endLast()
		ending.Wait()
	}))
}

// drain lets what runs come to its end, but not for longer than the grace, and not when cut has ended.
func (s *service) drain(cut context.Context, others func()) error {
	s.unready()
	limit, cancel := context.WithTimeout(cut, s.grace)
	defer cancel()
	finished := make(chan error, 1)
	go func() { finished <- s.finish(limit, others) }()
	select {
	case err := <-finished:
		if err == nil || limit.Err() == nil {
			return err
		}
	case <-limit.Done():
	}
	_ = s.server.Close() // the process ends with what it still holds
	s.dropped()
	return errCutOff
}

// finish ends everything in the order in which it is needed: requests need the store.
func (s *service) finish(limit context.Context, others func()) error {
	s.server.SetKeepAlivesEnabled(false)
	select {
	case <-time.After(min(farewell, s.grace/2)):
	case <-limit.Done():
	}
	if err := s.server.Shutdown(limit); err != nil {
		return err
	}
	others()
	s.lastly(limit)
	return s.store.Close()
}
