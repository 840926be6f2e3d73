package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crashRounds is how often TestKillsAtAnyMomentLoseNothingAndRepeatNothing kills an instance on each store: few unless
// CRASH_ROUNDS says otherwise, as `make crash` does.
func crashRounds(t *testing.T) int {
	t.Helper()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("CRASH_ROUNDS"), "30"))
	require.NoError(t, err, "CRASH_ROUNDS")
	require.Positive(t, rounds, "CRASH_ROUNDS")
	return rounds
}

// pair is two instances over one store, of which one or the other is always alive.
type pair struct {
	mu   sync.Mutex
	both [2]*instance
}

func (p *pair) at(turn int) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.both[turn%2]
}

func (p *pair) replace(turn int, i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.both[turn%2] = i
}

// insist repeats the request at the one and the other in turn.
func (p *pair) insist(ctx context.Context, request *insistence, turn int) error {
	return request.insist(ctx, func() *running {
		turn++
		return p.at(turn).running
	})
}

// recoveries are how long interrupted payments waited for their answers.
type recoveries struct {
	mu   sync.Mutex
	took []time.Duration
}

func (r *recoveries) add(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
}

func (r *recoveries) String() string {
	if len(r.took) == 0 {
		return "none was interrupted"
	}
	slices.Sort(r.took)
	return fmt.Sprintf("%d were interrupted and final after: median %s, worst %s", len(r.took),
		r.took[len(r.took)/2].Round(time.Millisecond), r.took[len(r.took)-1].Round(time.Millisecond))
}

// C56: an instance is killed up to 30 ms after a confirmation was sent to it, again and again. The clients repeat their
// requests at either instance while the killing goes on; the recovery works beside them.
func TestKillsAtAnyMomentLoseNothingAndRepeatNothing(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			rounds := crashRounds(t)
			g := groundOn(t, open(t))
			instances := &pair{both: [2]*instance{g.start(), g.start()}}
			var payments []*insistence
			var clients sync.WaitGroup
			var recovered recoveries
			for round := range rounds {
				p := paymentOf(instances.at(round+1).placed(fmt.Sprint("place-", round)), fmt.Sprint("pay-", round))
				if round%2 == 0 { // the provider takes its time: then most kills come while it is asked
					p.body = paidBy("pm_slow_10")
				}
				payments = append(payments, p)
				victim, began := instances.at(round), make(chan struct{})
				clients.Go(func() {
					close(began)
					final, err := p.try(t.Context(), victim.running)
					if !final && err == nil {
						since := time.Now()
						err = instances.insist(t.Context(), p, round)
						recovered.add(time.Since(since))
					}
					assert.NoError(t, err, p.key)
				})
				<-began
				<-time.After(rand.N(30 * time.Millisecond))
				victim.kill()
				instances.replace(round, g.start())
			}
			clients.Wait()
			g.whole(instances.at(0).running, payments...)
			t.Logf("%d kills amid %d payments; %s", rounds, rounds, &recovered)
		})
	}
}

// sleeping is n payments that are under way at an instance that is stopped then: it neither works nor dies, and knows
// nothing of the time that passes.
type sleeping struct {
	payments []*insistence
	answers  []answered // of the instance that sleeps
	errs     []error
	clients  sync.WaitGroup
}

// sent has n payments sent to an instance.
func sent(i *instance, round, n int, method string) *sleeping {
	i.t.Helper()
	s := &sleeping{answers: make([]answered, n), errs: make([]error, n)}
	for k := range n {
		name := fmt.Sprint(round, "-", k)
		p := paymentOf(i.placed("place-"+name), "pay-"+name)
		p.body = paidBy(method)
		s.payments = append(s.payments, p)
	}
	for k, p := range s.payments {
		s.clients.Go(func() { s.answers[k], s.errs[k] = i.ask(i.t.Context(), p.path, p.key, p.body) })
	}
	return s
}

// takenOver has another instance finish them all, then the sleeper wake up and answer: nothing else than what is on
// record, or that it does not know.
func (s *sleeping) takenOver(t *testing.T, by, sleeper *instance) {
	t.Helper()
	for _, p := range s.payments {
		require.NoError(t, p.insist(t.Context(), func() *running { return by.running }), p.key)
	}
	sleeper.signal(syscall.SIGCONT)
	s.clients.Wait()
	for k, p := range s.payments {
		require.NoError(t, s.errs[k], "whoever wakes up answers")
		switch a := s.answers[k]; a.status {
		case http.StatusOK:
			p.final = append(p.final, a.body)
		case http.StatusConflict, http.StatusServiceUnavailable:
		default:
			assert.Fail(t, "an answer that must not be", "%d %s", a.status, a.body)
		}
	}
}

// C03, C04: an instance is stopped while it waits for the provider, and wakes up when another one has taken over.
func TestAHolderThatSleepsThroughItsLeaseChangesNothingWhenItWakes(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			g := groundOn(t, open(t)).with("KAKUTEI_RECOVERY_INTERVAL", "0")
			sleeper, other := g.start(), g.start()
			s := sent(sleeper, 0, 8, "pm_slow_900")
			require.Eventually(t, func() bool {
				return !slices.ContainsFunc(s.payments, func(p *insistence) bool { return g.charges(p.order) == 0 })
			}, soon, time.Millisecond, "the provider has booked each, and thinks")
			sleeper.signal(syscall.SIGSTOP)
			s.takenOver(t, other, sleeper)
			g.whole(other.running, s.payments...)
		})
	}
}

// C04, on PostgreSQL, which ends the transactions of a client that sleeps. A process that is stopped while it writes a
// SQLite file keeps the file from all others until it wakes.
func TestAnInstanceThatIsStoppedAtAnyMomentChangesNothingWhenItWakes(t *testing.T) {
	g := groundOn(t, lastingStores["PostgreSQL"](t))
	sleeper, other := g.start(), g.start()
	var payments []*insistence
	for round := range 4 {
		s := sent(sleeper, round, 8, "pm_ok")
		<-time.After(rand.N(20 * time.Millisecond))
		sleeper.signal(syscall.SIGSTOP)
		s.takenOver(t, other, sleeper)
		payments = append(payments, s.payments...)
	}
	g.whole(other.running, payments...)
}
