package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
)

// stumbling is a store whose first transaction panics and whose second one fails.
type stumbling struct {
	port.UnitOfWork
	rounds chan int
	round  int
}

func (s *stumbling) Do(ctx context.Context, wait port.Wait, fn func(port.Tx) error) error {
	s.round++
	select {
	case s.rounds <- s.round:
	case <-ctx.Done():
	}
	switch s.round {
	case 1:
		panic("a bug")
	case 2:
		return port.ErrUnavailable.Because(errors.New("gone for a moment"))
	}
	return s.UnitOfWork.Do(ctx, wait, fn)
}

func TestTheSweeperOutlivesErrorsAndPanics(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := newOutput(), make(chan struct{})
	work := &stumbling{UnitOfWork: memory.New(time.Now), rounds: make(chan int)}
	s := sweeper{work: work, interval: time.Millisecond, log: slog.New(slog.NewJSONHandler(log, nil))}
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	for round := 1; round <= 4; round++ {
		assert.Equal(t, round, <-work.rounds)
	}
	cancel()
	<-ended
	assert.Regexp(t, `sweeping expired records failed.*panic: a bug`, log.String())
	assert.Regexp(t, `sweeping expired records failed.*gone for a moment`, log.String())
}

func TestASweeperThatIsOffNeverSweeps(t *testing.T) {
	sweeper{}.run(t.Context()) // it returns, and has no store to sweep
}

func TestThePauseIsTheIntervalGiveOrTakeATenth(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		p := around(time.Minute)
		assert.GreaterOrEqual(t, p, 54*time.Second)
		assert.LessOrEqual(t, p, 66*time.Second)
		seen[p] = true
	}
	assert.Greater(t, len(seen), 1)
	assert.Equal(t, time.Nanosecond, around(time.Nanosecond))
}
