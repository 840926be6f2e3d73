package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// slowly has the database take its time for each transaction of a payment, as a slow disk would, without work for the
// machine: a tenth of a second for placing the order, and for each of the two commits that confirm its payment.
const slowly = `
	CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END $$;
	CREATE TRIGGER slowly BEFORE INSERT ON idempotency_records FOR EACH ROW EXECUTE FUNCTION slowly();
	CREATE TRIGGER slowly BEFORE INSERT ON journal_entries FOR EACH ROW EXECUTE FUNCTION slowly()`

// shopping is what clients have seen that pay one order after the other.
type shopping struct {
	mu    sync.Mutex
	paid  []time.Duration // of each payment that was accepted, how long its confirmation took
	shed  int
	other []string
}

func (s *shopping) median() time.Duration {
	slices.Sort(s.paid)
	return s.paid[len(s.paid)/2]
}

func (s *shopping) answer(a answered, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.status == http.StatusOK:
		s.paid = append(s.paid, took)
	case kind(a) == "503 unavailable":
		s.shed++
	case a.status != http.StatusCreated:
		s.other = append(s.other, kind(a))
	}
}

// sent sends it once, over a client that keeps its connections.
func (p *insistence) sent(r *running, over *http.Client) (answered, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.base+p.path, strings.NewReader(p.body))
	if err != nil {
		return answered{}, err
	}
	req.Header.Set("Authorization", "Bearer demo-alice")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", p.key)
	res, err := over.Do(req)
	if err != nil {
		return answered{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answered{status: res.StatusCode, body: string(text)}, err
}

// shop has so many clients pay one order after the other until the time is over. They are impatient: who is shed comes
// back sooner than it is told to.
func (r *running) shop(name string, clients int, lasting time.Duration) *shopping {
	over, seen := time.Now().Add(lasting), &shopping{}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer web.CloseIdleConnections()
	try := func(p *insistence) (body string, ok bool) {
		for time.Now().Before(over) {
			begun := time.Now()
			a, err := p.sent(r, web)
			if err != nil {
				r.t.Error(err)
				return "", false
			}
			seen.answer(a, time.Since(begun))
			if a.status < http.StatusBadRequest {
				return a.body, true
			}
			time.Sleep(500 * time.Millisecond)
		}
		return "", false
	}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := 0; time.Now().Before(over); n++ {
				if placed, ok := try(placing(fmt.Sprint("place-", name, c, "-", n))); ok {
					try(paymentOf(orderIn(placed), fmt.Sprint("pay-", name, c, "-", n)))
				}
			}
		})
	}
	all.Wait()
	return seen
}

// probed asks for health and metrics all the while, and is told how often when it is called.
func (r *running) probed() (probes func() int) {
	stop, probed := make(chan struct{}), make(chan int)
	go func() {
		probes := 0
		defer func() { probed <- probes }()
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
				a, err := r.send(http.MethodGet, path, "", "")
				if assert.NoError(r.t, err) {
					assert.Equal(r.t, http.StatusOK, a.status, path)
				}
				probes++
			}
		}
	}()
	return func() int {
		close(stop)
		return <-probed
	}
}

// firstLine is the first line of a log that has such a text.
func firstLine(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// With the settings as they come there are many more places than connections: what is too much for the database is shed
// all the same. The crowd that they are in the first second is taken as it is, and late; so the storm is long enough for it
// to be the smaller part of what is accepted.
func TestTenTimesTheLoadOnTheDefaultSettingsIsShedAndWhatIsAcceptedIsAnsweredAsBefore(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_LOCK_TIMEOUT", "1s")
	r := serving(t, g.env)
	_, err := g.rows.ExecContext(t.Context(), slowly)
	require.NoError(t, err)

	const connections = 16 // KAKUTEI_DB_POOL
	const calmFor, stormFor = 3 * time.Second, 10 * time.Second
	// Calm and storm are not at the same time: whoever else uses the machine during one of them only would be taken for the
	// difference. Whoever uses it in each of three rounds is the service.
	for round := range 3 {
		calm := r.shop(fmt.Sprint("calm-", round, "-"), connections, calmFor)
		assert.Zero(t, calm.shed, "this much is sustainable")
		assert.Empty(t, calm.other)
		probes := r.probed()
		storm := r.shop(fmt.Sprint("storm-", round, "-"), 10*connections, stormFor)
		assert.Positive(t, probes())
		t.Logf("calm: %d accepted, median %s; ten times that: %d accepted, median %s, %d shed",
			len(calm.paid), calm.median(), len(storm.paid), storm.median(), storm.shed)
		assert.Empty(t, storm.other, "accepted or shed, nothing else")
		assert.Greater(t, storm.shed, len(storm.paid))
		goesOn := 2*float64(len(storm.paid))/stormFor.Seconds() > float64(len(calm.paid))/calmFor.Seconds()
		hardlyWaits := storm.median() < 2*calm.median()
		if goesOn && hardlyWaits {
			break
		}
		if round == 2 {
			assert.True(t, goesOn, "at half of the rate at least: the work goes on")
			assert.True(t, hardlyWaits, "it is let in where it hardly waits; in a queue it would be ten times as long")
		}
	}
	assert.Regexp(t, "too many wait for the store's connections", firstLine(r.stderr.String(), "requests are shed"))
	g.agrees()
	r.stop()
}

// A payment that waits for the provider holds a place and no connection: a slow provider is no crowded store. When it
// answers them all at once, they are a crowd that has begun: each is answered.
func TestTwoHundredPaymentsAtASlowProviderAreNoCrowd(t *testing.T) {
	const many = 200
	reached, released := make(chan struct{}, many), make(chan struct{})
	var charges atomic.Int64
	g := groundOn(t, pgtest.Empty(t), func(provider http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && charges.Add(1) <= many {
				reached <- struct{}{}
				<-released
			}
			provider.ServeHTTP(w, r)
		})
	}).with("KAKUTEI_LEASE", "2m", "KAKUTEI_GATEWAY_TIMEOUT", "1m", "KAKUTEI_RECOVERY_INTERVAL", "0")
	answerThem := sync.OnceFunc(func() { close(released) })
	t.Cleanup(answerThem)
	r := serving(t, g.env)
	payments := r.fresh("slow-", many)
	var paying sync.WaitGroup
	for some := range slices.Chunk(payments, 20) {
		for _, p := range some {
			paying.Go(func() {
				_, err := p.try(t.Context(), r)
				assert.NoError(t, err)
			})
		}
		for range some {
			select {
			case <-reached:
			case <-time.After(soon):
				require.FailNow(t, "a charge does not come", r.stderr)
			}
		}
	}
	payments = append(payments, r.others(20)...)
	answerThem()
	paying.Wait()
	for _, p := range payments {
		assert.Equal(t, http.StatusOK, p.first.status, p.first.body)
	}
	g.whole(r, payments...)
	assert.Empty(t, firstLine(r.stderr.String(), "requests are shed"))
	r.stop()
}
