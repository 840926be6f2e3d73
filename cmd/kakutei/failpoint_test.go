package main

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFailpointIsRefusedWhereCallersAreNotDemos(t *testing.T) {
	c := readAs(t, map[string]string{"KAKUTEI_FAILPOINT": "after-commit", "KAKUTEI_JWT_SECRET": jwtKey})
	require.NoError(t, c.check())
	c.access.auth = "jwt"
	require.EqualError(t, c.check(), "KAKUTEI_FAILPOINT: only where KAKUTEI_AUTH is demo")
	c.failing.at = ""
	require.NoError(t, c.check())
}

func TestAFailpointThatIsSetIsWarnedOfAndNothingStandsInTheWayWithoutOne(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_FAILPOINT": "during-recovery"})
	assert.Regexp(t, `"level":"WARN","msg":"A FAILPOINT IS SET.*"failpoint":"during-recovery"`, r.stderr.String())
	paid := r.post(r.placed("place-1")+"/confirm-payment", "pay-1", thousand)
	assert.Equal(t, http.StatusOK, paid.status, "no recovery has come to the point")
	r.stop()

	r = serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	r.stop()
	assert.NotContains(t, r.stderr.String(), "FAILPOINT")
}

// deaths are the failpoints and what a process leaves that dies there.
var deaths = []struct {
	at      failpoint
	charges int
	order   string
}{
	{afterReservation, 0, "PAYMENT_PENDING"},
	{afterCharge, 1, "PAYMENT_PENDING"},
	{beforeCommit, 1, "PAYMENT_PENDING"},
	{afterCommit, 1, "PAID"},
	{duringRecovery, 1, "PAYMENT_PENDING"},
}

// C01, C56: whatever a dead process has left is finished by the client's retry, or without any client.
func TestAProcessThatDiesAtAFailpointLosesNothingAndRepeatsNothing(t *testing.T) {
	for name, open := range lastingStores {
		for _, death := range deaths {
			t.Run(name+", "+string(death.at)+", the client retries", func(t *testing.T) {
				t.Parallel()
				g := groundOn(t, open(t)).with("KAKUTEI_RECOVERY_INTERVAL", "0")
				p, died := g.dies(death.at)
				g.left(p, death.charges, death.order)
				r := g.start()
				require.NoError(t, p.insist(t.Context(), func() *running { return r.running }))
				t.Logf("whole %s after the death", time.Since(died).Round(time.Millisecond))
				g.whole(r.running, p)
			})
			t.Run(name+", "+string(death.at)+", no client comes again", func(t *testing.T) {
				t.Parallel()
				g := groundOn(t, open(t))
				p, died := g.dies(death.at)
				g.left(p, death.charges, death.order)
				r := g.start()
				r.becomes(p.order, "PAID")
				t.Logf("whole %s after the death", time.Since(died).Round(time.Millisecond))
				g.whole(r.running, p)
			})
		}
	}
}

// dies has a payment begun by a process that dies at the failpoint.
func (g ground) dies(at failpoint) (p *insistence, died time.Time) {
	g.t.Helper()
	first := at
	if at == duringRecovery {
		first = afterCharge
	}
	i := g.with("KAKUTEI_FAILPOINT", string(first)).start()
	p = paymentOf(i.placed("place-1"), "pay-1")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.end()
	}()
	g.t.Cleanup(func() { <-ended })
	for alive := true; alive; { // a slow machine's payment may have ended before it came to the failpoint
		final, err := p.try(g.t.Context(), i.running)
		require.NoError(g.t, err)
		require.False(g.t, final, "%s is on the way of every payment", first)
		select {
		case <-ended:
			alive = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	i.diedAt(first)
	if at != duringRecovery {
		return p, time.Now()
	}
	i = g.with("KAKUTEI_FAILPOINT", string(at), "KAKUTEI_RECOVERY_INTERVAL", "100ms").start()
	i.end()
	i.diedAt(at)
	return p, time.Now()
}

// diedAt demands that the process has killed itself there.
func (i *instance) diedAt(at failpoint) {
	i.t.Helper()
	status, ok := i.process.ProcessState.Sys().(syscall.WaitStatus)
	require.True(i.t, ok)
	require.Equal(i.t, syscall.SIGKILL, status.Signal(), i.stderr)
	require.Contains(i.t, i.stderr.String(), `"failpoint reached, the process kills itself","failpoint":"`+string(at)+`"`)
}

// left demands that this is how far a payment has come, without any answer.
func (g ground) left(p *insistence, charges int, order string) {
	g.t.Helper()
	require.Empty(g.t, p.final, "nobody was answered")
	require.Equal(g.t, charges, g.charges(p.order))
	require.Equal(g.t, 1, g.number(`SELECT count(*) FROM orders WHERE status = '`+order+`'`), "the order is %s", order)
}
