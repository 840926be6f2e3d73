package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
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

func TestTheSweeperDeletesWhatIsOlderThanTheAuditRetentionAlone(t *testing.T) {
	clock := storetest.NewClock()
	work := memory.New(clock.Now)
	audited := func(n int) {
		require.NoError(t, work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			var entries []port.AuditEntry
			for range n {
				entries = append(entries, port.AuditEntry{EventID: uuid.NewString(), At: tx.Now(), Kind: port.AuditTakeover})
			}
			return tx.Audit().Append(t.Context(), entries)
		}))
	}
	audited(1500) // more than one transaction takes
	clock.Pass(time.Hour)
	audited(3)
	clock.Pass(time.Hour)
	s := sweeper{work: work, auditFor: 90 * time.Minute}
	n, err := s.sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1500, n)
	s.auditFor = time.Hour
	n, err = s.sweep(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n, "one of that very age is kept")
	clock.Pass(time.Microsecond)
	n, err = s.sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, n)
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
