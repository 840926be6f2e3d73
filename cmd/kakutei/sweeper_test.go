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
	"kakutei/domain/idempotency"
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
	s := sweeper{work: work, interval: time.Millisecond, log: slog.New(slog.NewJSONHandler(log, nil)), told: unseen().metrics.Swept}
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
	s := sweeper{work: work, interval: time.Minute, auditFor: 90 * time.Minute}
	_, n, err := s.sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1500, n)
	s.auditFor = time.Hour
	_, n, err = s.sweep(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n, "one of that very age is kept")
	clock.Pass(time.Microsecond)
	_, n, err = s.sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, n)
}

// What is off is the records' sweeping: nobody else keeps the audit log from growing.
func TestASweeperThatIsOffLeavesTheRecordsAndSweepsTheAuditLog(t *testing.T) {
	clock := storetest.NewClock()
	work := memory.New(clock.Now)
	scope := idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "k"}
	require.NoError(t, work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		held, err := tx.Records().Reserve(t.Context(), idempotency.Reservation{Scope: scope, Token: "t"}, time.Minute)
		if err != nil {
			return err
		}
		done := held.Completed(idempotency.Outcome{Document: []byte("{}")}, tx.Now(), time.Minute)
		entry := port.AuditEntry{EventID: "e", At: tx.Now(), Kind: port.AuditTakeover}
		return errors.Join(tx.Records().Replace(t.Context(), held, done), tx.Audit().Append(t.Context(), []port.AuditEntry{entry}))
	}))
	clock.Pass(time.Hour)
	swept := func(s sweeper) int {
		records, entries, err := s.sweep(t.Context())
		require.NoError(t, err)
		return records + entries
	}
	assert.Equal(t, 1, swept(sweeper{work: work, auditFor: time.Minute}))
	_, err := storetest.RecordIn(t.Context(), work, scope)
	require.NoError(t, err)
	assert.Equal(t, 1, swept(sweeper{work: work, auditFor: time.Minute, interval: time.Minute}))
}

func TestTheAuditLogsSweepingIsDueWhetherOrNotTheRecordsAre(t *testing.T) {
	for _, c := range []struct{ interval, auditFor, want time.Duration }{
		{time.Minute, 8760 * time.Hour, time.Minute},
		{2 * time.Hour, time.Second, 2 * time.Hour},
		{0, 8760 * time.Hour, time.Hour},
		{0, time.Minute, time.Minute},
	} {
		assert.Equal(t, c.want, sweeper{interval: c.interval, auditFor: c.auditFor}.pause(), "%+v", c)
	}
}

// An error of the one keeps the other from nothing.
func TestRecordsThatCannotBeSweptDoNotKeepTheAuditLog(t *testing.T) {
	clock := storetest.NewClock()
	work := memory.New(clock.Now)
	require.NoError(t, work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		return tx.Audit().Append(t.Context(), []port.AuditEntry{{EventID: "e", At: tx.Now(), Kind: port.AuditTakeover}})
	}))
	clock.Pass(time.Hour)
	failing := &stumbling{UnitOfWork: work, rounds: make(chan int, 9), round: 1}
	_, n, err := sweeper{work: failing, interval: time.Minute, auditFor: time.Minute}.sweep(t.Context())
	require.ErrorIs(t, err, port.ErrUnavailable)
	assert.Equal(t, 1, n)
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
