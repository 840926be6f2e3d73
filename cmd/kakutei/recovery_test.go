package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// unanswered places an order and confirms it by a method of the simulator's that gives no answer the first time.
func (r *running) unanswered(name, method string) (order string) {
	r.t.Helper()
	order = r.placed("place-" + name)
	a := r.post(order+"/confirm-payment", "pay-"+name, paidBy(method))
	require.Equal(r.t, http.StatusServiceUnavailable, a.status, a.body)
	return order
}

// paidBy is the body of a confirmation by this payment method.
func paidBy(method string) string {
	return strings.Replace(thousand, "}", `,"paymentMethod":"`+method+`"}`, 1)
}

// becomes waits until the order has the status.
func (r *running) becomes(order, status string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		return strings.Contains(r.get(order).body, `"status":"`+status+`"`)
	}, soon, time.Millisecond, "%s", r.stderr)
}

func TestAPaymentWhoseAnswerIsLostIsPaidWithoutItsClient(t *testing.T) {
	onEachStore(t, func(t *testing.T, url string) {
		r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "50ms"})
		lost, failed := r.unanswered("lost", "pm_lost_answer"), r.unanswered("failed", "pm_unavailable")
		r.becomes(lost, "PAID")
		r.becomes(failed, "PAID")
		for order, key := range map[string]string{lost: "pay-lost", failed: "pay-failed"} {
			method := map[string]string{lost: "pm_lost_answer", failed: "pm_unavailable"}[order]
			replay := r.post(order+"/confirm-payment", key, paidBy(method))
			assert.Equal(t, http.StatusOK, replay.status)
			assert.True(t, replay.replayed, "it was recorded before the client asked again")
		}
		said := r.stderr.await(t, `(?m)^.*"msg":"recovered".*$`)[0]
		assert.Contains(t, said, `"operation":"ConfirmPayment"`)
		assert.NotContains(t, r.stderr.String(), "pay-lost", "a log names keys by their digest")
		r.stop()
	})
}

func TestARecoveryThatIsOffTriesNothing(t *testing.T) {
	recovering{}.run(t.Context()) // it returns, and has nothing to try

	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_RECOVERY_INTERVAL": "0"})
	order := r.unanswered("lost", "pm_lost_answer")
	assert.Contains(t, r.get(order).body, `"status":"PAYMENT_PENDING"`)
	r.stop()
	assert.NotContains(t, r.stderr.String(), "recovered")
}

func TestTheRecoverysInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 10 * time.Second, "0": 0, "0s": 0, "1ns": 1, "250ms": 250 * time.Millisecond, "8760h": 8760 * time.Hour,
	} {
		c := readAs(t, map[string]string{"KAKUTEI_RECOVERY_INTERVAL": text})
		require.NoError(t, c.check())
		assert.Equal(t, want, c.work.recoverEvery, "%q", text)
	}
	c := readAs(t, map[string]string{"KAKUTEI_RECOVERY_INTERVAL": "1h"}, "--recovery-interval", "2s")
	assert.Equal(t, 2*time.Second, c.work.recoverEvery)
	for _, bad := range []string{"-1ns", "-10s", "10", "1d", "never", "10 s"} {
		got := call(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_RECOVERY_INTERVAL": bad}, "serve")
		assert.Equal(t, 1, got.code, bad)
		assert.Regexp(t, `\Akakutei: KAKUTEI_RECOVERY_INTERVAL: .+\n\z`, got.stderr, bad)
	}
}

// dead is a recovery that has one order to try, whose provider never answers.
type dead struct {
	recovering
	parts
	clock *storetest.Clock
	work  *memory.Store
	log   *output
	asked checkout.ConfirmPayment
}

func deadOrder(t *testing.T) dead {
	t.Helper()
	d := dead{clock: storetest.NewClock(), log: newOutput()}
	d.work = memory.New(d.clock.Now)
	c := readAs(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_LOG_FORMAT": "json"})
	log := c.log.logger(d.log)
	var err error
	d.parts, err = c.parts(opened{store: d.work, book: gateway.NewMemoryBook()}, unseen(), log)
	require.NoError(t, err)
	d.recovering = recovering{
		recovery: idempotent.NewRecovery(d.work, c.work.recoverEvery, map[idempotency.Operation]idempotent.Resume{
			checkout.OpConfirmPayment: d.till.Resume,
		}),
		interval: c.work.recoverEvery, log: log, told: unseen().metrics.Recovered,
	}
	id, err := (storetest.Shop{Till: d.till}).Place(t.Context())
	require.NoError(t, err)
	d.asked = storetest.Payment(id, "pay-1f0c")
	d.asked.Method = "pm_down"
	_, err = d.till.ConfirmPayment(t.Context(), d.asked)
	require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
	return d
}

// audited is the log of one kind, after everything that was observed is in it.
func (d dead) audited(t *testing.T, kind port.AuditKind) (entries []port.AuditEntry) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	d.auditing.Run(over) // it writes what is left, and returns
	require.NoError(t, d.work.Read(t.Context(), func(tx port.Tx) (err error) {
		entries, err = tx.Audit().After(t.Context(), 0, kind, 500)
		return err
	}))
	return entries
}

func TestHundredsOfTriesOfADeadOrderFillNeitherLogNorAuditLog(t *testing.T) {
	d := deadOrder(t)
	const tries = 400 // almost three days, far beyond what the provider knows of the charge
	for range tries {
		d.clock.Pass(10 * time.Minute)
		d.round(t.Context())
	}
	r, err := storetest.RecordIn(t.Context(), d.work, storetest.ScopeOf(d.asked))
	require.NoError(t, err)
	require.Equal(t, tries, r.Recoveries)
	require.Equal(t, idempotency.InProgress, r.Status)

	assert.Len(t, d.audited(t, port.AuditTakeover), 1)
	assert.Len(t, d.audited(t, ""), 1)
	assert.Equal(t, 1, strings.Count(d.log.String(), "\n"), d.log)
	assert.Regexp(t, `"level":"WARN","msg":"not recovered yet".*"tries":1,`, d.log.String())
	assert.NotContains(t, d.log.String(), "pay-1f0c")

	_, err = d.desk.Release(t.Context(), storetest.ScopeOf(d.asked), "olga")
	require.NoError(t, err)
	d.round(t.Context())
	assert.Equal(t, 2, strings.Count(d.log.String(), "not recovered yet"), "what an operator has asked for is news again")
	assert.Len(t, d.audited(t, port.AuditTakeover), 1)
}

func TestWhatAnOperatorHasResolvedIsNotTriedAgain(t *testing.T) {
	d := deadOrder(t)
	d.clock.Pass(10 * time.Minute)
	d.round(t.Context())
	_, err := d.till.Resolve(t.Context(), checkout.Resolution{
		Scope: storetest.ScopeOf(d.asked), Charged: true, ChargeID: "ch_seen", Note: "n", By: "olga",
	})
	require.NoError(t, err)
	d.clock.Pass(10 * time.Minute)
	d.round(t.Context())
	assert.Equal(t, 1, strings.Count(d.log.String(), "recovered"), "what has its outcome is left alone")
}

func TestTheRecoveryOutlivesAStoreThatIsAwayAndABug(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log, ended, rounds := newOutput(), make(chan struct{}), make(chan struct{})
	work := &reading{UnitOfWork: memory.New(time.Now), rounds: rounds}
	r := recovering{
		recovery: idempotent.NewRecovery(work, time.Millisecond, nil), interval: time.Millisecond,
		log: slog.New(slog.NewJSONHandler(log, nil)), told: unseen().metrics.Recovered,
	}
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	for range 4 {
		<-rounds
	}
	cancel()
	<-ended
	assert.Regexp(t, `looking for unresolved records failed.*panic: a bug`, log.String())
	assert.Regexp(t, `looking for unresolved records failed.*gone for a moment`, log.String())
}

// reading is a store that cannot be read the first two times.
type reading struct {
	port.UnitOfWork
	rounds chan struct{}
	round  int
}

func (s *reading) Read(ctx context.Context, fn func(port.Tx) error) error {
	s.round++
	select {
	case s.rounds <- struct{}{}:
	case <-ctx.Done():
	}
	switch s.round {
	case 1:
		panic("a bug")
	case 2:
		return port.ErrUnavailable.Because(errors.New("gone for a moment"))
	}
	return s.UnitOfWork.Read(ctx, fn)
}
