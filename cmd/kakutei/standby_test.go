package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// awaiting is a service on a server of its own, of which a standby's word may be demanded for each of the service's
// commits, and for nobody else's.
type awaiting struct {
	ground
	server
	service *running
}

// awaitingStandby is such a service. No standby is demanded yet.
func awaitingStandby(t *testing.T) awaiting {
	t.Helper()
	s := ownServer(t)
	s.crash()
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = conf.WriteString("wal_level = replica\nmax_wal_senders = 2\nsynchronous_commit = local\n")
	require.NoError(t, err)
	require.NoError(t, conf.Close())
	s.restart()
	g := groundOn(t, s.url)
	own := g.with("KAKUTEI_DATABASE_URL", s.url+"&synchronous_commit=on", "KAKUTEI_LOCK_TIMEOUT", "300ms",
		"KAKUTEI_RECOVERY_INTERVAL", "0", "KAKUTEI_SWEEP_INTERVAL", "0",
		"KAKUTEI_LEASE", "4s", "KAKUTEI_GATEWAY_TIMEOUT", "3s")
	return awaiting{g, s, serving(t, own.env)}
}

// execute runs a statement as an operator.
func (a awaiting) execute(statement string) {
	a.service.t.Helper()
	_, err := a.rows.ExecContext(a.service.t.Context(), statement)
	require.NoError(a.service.t, err)
}

// unconfirmed is how many commits wait for a standby.
func (a awaiting) unconfirmed() int {
	a.service.t.Helper()
	return a.number(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
}

// cancelWaits ends the wait of all commits that wait now.
const cancelWaits = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`

// demandStandby has every commit from now on wait for a standby that does not come. It is in force when the first one
// waits, which is one of this test's own.
func (a awaiting) demandStandby() {
	t := a.service.t
	t.Helper()
	a.execute(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	a.execute(`SELECT pg_reload_conf()`)
	own, err := pgx.Connect(t.Context(), a.url+"&synchronous_commit=on")
	require.NoError(t, err)
	var waited atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var err error
		for !waited.Load() && err == nil {
			_, err = own.Exec(t.Context(), `SELECT pg_logical_emit_message(true, 'a test', '')`)
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return a.unconfirmed() == 1 }, soon, time.Millisecond)
	waited.Store(true)
	a.execute(cancelWaits)
	require.NoError(t, <-ended)
	require.NoError(t, own.Close(t.Context()))
}

// renounceStandby lets all commits go that wait: what a standby does that has come, as far as the service can see.
func (a awaiting) renounceStandby() {
	a.service.t.Helper()
	a.execute(`ALTER SYSTEM RESET synchronous_standby_names`)
	a.execute(`SELECT pg_reload_conf()`)
}

// unanswered demands that the answer acknowledges nothing.
func unanswered(t *testing.T, a answered) {
	t.Helper()
	assert.Contains(t, []int{http.StatusConflict, http.StatusServiceUnavailable}, a.status, a.body)
	assert.NotContains(t, a.body, `"code":"unavailable"`, "something may have been done")
}

// While a commit waits for its standby, nobody is told of it, however long that is; and nothing that the service does
// cuts the wait short, else the commit would be seen here and could still be lost.
func TestACommitThatWaitsForAStandbyIsNeitherAcknowledgedNorCutShort(t *testing.T) {
	t.Parallel()
	t.Run("the reservation's", func(t *testing.T) {
		t.Parallel()
		a := awaitingStandby(t)
		p := paymentOf(a.service.placed("place-1"), "pay-1")
		a.demandStandby()
		for range 2 {
			got, err := a.service.ask(t.Context(), p.path, p.key, p.body)
			require.NoError(t, err)
			unanswered(t, got)
		}
		assert.Equal(t, 1, a.unconfirmed(), "the commit waits still")
		assert.Zero(t, a.number(`SELECT count(*) FROM idempotency_records WHERE operation = 'ConfirmPayment'`))
		assert.Zero(t, a.charges(p.order), "without a reservation the provider is not asked")
		a.settles(p)
	})
	t.Run("the completion's", func(t *testing.T) {
		t.Parallel()
		a := awaitingStandby(t)
		p, first := a.completing(1500)
		unanswered(t, <-first)
		again, err := a.service.ask(t.Context(), p.path, p.key, p.body)
		require.NoError(t, err)
		unanswered(t, again)
		assert.Equal(t, 1, a.unconfirmed(), "the commit waits still")
		assert.Zero(t, a.number(`SELECT count(*) FROM orders WHERE status = 'PAID'`))
		a.settles(p)
	})
}

// completing is a payment whose provider takes its time, so many milliseconds, and the standby goes meanwhile.
func (a awaiting) completing(milliseconds int) (*insistence, <-chan answered) {
	t := a.service.t
	t.Helper()
	p := paymentOf(a.service.placed("place-1"), "pay-1")
	p.body = paidBy(fmt.Sprint("pm_slow_", milliseconds))
	first := make(chan answered, 1)
	go func() {
		got, err := a.service.ask(t.Context(), p.path, p.key, p.body)
		assert.NoError(t, err)
		first <- got
	}()
	require.Eventually(t, func() bool { return a.charges(p.order) == 1 }, soon, time.Millisecond)
	a.demandStandby()
	return p, first
}

// settles demands that all comes to its end when commits need no longer wait.
func (a awaiting) settles(p *insistence) {
	t := a.service.t
	t.Helper()
	a.renounceStandby()
	require.NoError(t, p.insist(t.Context(), func() *running { return a.service }))
	a.whole(a.service, p)
	a.service.stop()
}

// Somebody cuts the wait short: then the commit is seen on this server, and lost if the standby takes over without it. The
// server calls that a success, with a warning. The service does not, and answers no retry from it until a standby has it.
func TestACommitWhoseWaitForAStandbyWasCutShortIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	for how, cut := range map[string]string{
		"by a cancel":           cancelWaits,
		"by ending the session": `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a := awaitingStandby(t)
			p, first := a.completing(1500)
			var got answered
			cuts := 0
			require.Eventually(t, func() bool {
				cuts += a.number(`SELECT count(*) FROM (` + cut + `) AS cut`)
				select {
				case got = <-first:
					return true
				default:
					return false
				}
			}, soon, time.Millisecond)
			assert.Positive(t, cuts)
			unanswered(t, got)
			assert.Equal(t, 1, a.number(`SELECT count(*) FROM orders WHERE status = 'PAID'`), "it is seen here")

			retry, err := a.service.ask(t.Context(), p.path, p.key, p.body)
			require.NoError(t, err)
			unanswered(t, retry)
			a.settles(p)
		})
	}
}

// A posting without an answer is repeated under its own id, and then finds itself: it must not take what it has written
// before for confirmed.
func TestAPostingWhoseWaitForAStandbyWasCutShortIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	a := awaitingStandby(t)
	a.demandStandby()
	answers := make(chan answered, 1)
	go func() {
		answers <- a.service.posted("inv-1")
	}()
	var got answered
	cuts := 0
	require.Eventually(t, func() bool {
		cuts += a.number(`SELECT count(*) FROM (` + cancelWaits + `) AS cut`)
		select {
		case got = <-answers:
			return true
		default:
			return false
		}
	}, soon, time.Millisecond)
	assert.Greater(t, cuts, 1, "its repeats wait, too")
	unanswered(t, got)
	assert.Equal(t, 1, a.number(`SELECT count(*) FROM journal_entries`), "it is seen here")

	a.renounceStandby()
	again := a.service.posted("inv-1")
	assert.Equal(t, http.StatusOK, again.status, again.body)
	a.service.stop()
}
