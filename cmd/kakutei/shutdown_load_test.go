package main

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// C60 with the real program: it is told to stop while many payments run, and what it leaves behind is looked at by the
// next instance.

// asked waits until the provider has booked each payment, and thinks.
func (s *sleeping) asked(g ground) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		return !slices.ContainsFunc(s.payments, func(p *insistence) bool { return g.charges(p.order) == 0 })
	}, soon, time.Millisecond)
}

// collect waits for what the clients were told, and keeps it beside what they are told later. It tells how many were
// answered.
func (s *sleeping) collect() (answered int) {
	s.clients.Wait()
	for k, p := range s.payments {
		if s.errs[k] == nil {
			answered++
		}
		if s.answers[k].status == http.StatusOK {
			p.final = append(p.final, s.answers[k].body)
		}
	}
	return answered
}

// signalled sends the process its signals, each once the one before has been taken in, and returns how it ended, and when
// after the last.
func (i *instance) signalled(signals ...syscall.Signal) (code int, took time.Duration) {
	i.t.Helper()
	for n, s := range signals {
		if n > 0 {
			i.stderr.await(i.t, "stopping")
		}
		if err := i.process.Process.Signal(s); n == 0 || !errors.Is(err, os.ErrProcessDone) {
			require.NoError(i.t, err)
		}
	}
	began := time.Now()
	i.end()
	return i.process.ProcessState.ExitCode(), time.Since(began)
}

func TestTwentyPaymentsThatRunAtTheFirstSignalAreAnswered(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, open(t)).with("KAKUTEI_LEASE", "10s", "KAKUTEI_GATEWAY_TIMEOUT", "9s")
			i := g.start()
			s := sent(i, 0, 20, "pm_slow_1500")
			s.asked(g)
			code, _ := i.signalled(syscall.SIGTERM)
			assert.Equal(t, 0, code)
			assert.True(t, i.refuses())
			assert.Equal(t, 20, s.collect())
			for _, a := range s.answers {
				assert.Equal(t, http.StatusOK, a.status, a.body)
			}
			g.whole(g.start().running, s.payments...)
		})
	}
}

func TestTwentyPaymentsThatOutliveTheGraceAreTakenOver(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, open(t)).with("KAKUTEI_LEASE", "10s", "KAKUTEI_GATEWAY_TIMEOUT", "9s", "KAKUTEI_SHUTDOWN_GRACE", "300ms")
			i := g.start()
			s := sent(i, 0, 20, "pm_slow_8000")
			s.asked(g)
			code, took := i.signalled(syscall.SIGTERM)
			assert.Equal(t, 1, code)
			assert.Less(t, took, 1300*time.Millisecond+slack, "the grace and a second")
			assert.Zero(t, s.collect())
			assert.Zero(t, g.number(`SELECT count(*) FROM orders WHERE status = 'PAID'`), "nothing is half done")
			assert.Equal(t, 20, g.number(`SELECT count(*) FROM idempotency_records WHERE status = 'IN_PROGRESS'`))

			next, ended := g.start(), time.Now()
			for _, p := range s.payments {
				require.NoError(t, p.insist(t.Context(), func() *running { return next.running }))
			}
			assert.Less(t, time.Since(ended), 10*time.Second+slack, "the lease")
			g.whole(next.running, s.payments...)
		})
	}
}

// slack is what a busy machine may add.
const slack = 2 * time.Second

func TestASecondSignalUnderLoadLosesNoCommit(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, open(t))
			var payments []*insistence
			answered, i := 0, g.start()
			const rounds, atOnce = 4, 8
			for round := range rounds {
				quick := round%2 == 0
				method := "pm_ok"
				if !quick {
					method = "pm_slow_900"
				}
				s := sent(i, round, atOnce, method)
				<-time.After(rand.N(20 * time.Millisecond))
				code, took := i.signalled(syscall.SIGTERM, syscall.SIGTERM)
				assert.Less(t, took, time.Second+slack)
				assert.True(t, quick || code == 1, "slow ones are cut off: exit %d", code)
				answered += s.collect()
				i = g.start()
				for _, p := range s.payments {
					require.NoError(t, p.insist(t.Context(), func() *running { return i.running }))
				}
				payments = append(payments, s.payments...)
			}
			t.Logf("%d of %d payments were answered before the second signal", answered, rounds*atOnce)
			g.whole(i.running, payments...)
		})
	}
}
