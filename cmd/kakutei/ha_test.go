//go:build ha

package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// haRounds is how often a leader is killed: HA_ROUNDS, or 3.
func haRounds(t *testing.T) int {
	t.Helper()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("HA_ROUNDS"), "3"))
	require.NoError(t, err, "HA_ROUNDS")
	require.Positive(t, rounds, "HA_ROUNDS")
	return rounds
}

// shop is a cluster, a provider and three instances of the service, each of them a process of its own, and the clients
// that keep them busy.
type shop struct {
	ground
	cluster   *cluster
	provider  string
	instances []*instance
	*notebook
}

func openShop(t *testing.T, c *cluster, settings ...string) *shop {
	t.Helper()
	rows, err := sql.Open("pgx", c.url())
	require.NoError(t, err)
	rows.SetMaxIdleConns(0)
	t.Cleanup(func() { assert.NoError(t, rows.Close()) })
	provider := providerProcess(t)
	s := &shop{cluster: c, provider: provider, notebook: newNotebook(), ground: ground{t: t, rows: rows, env: map[string]string{
		"KAKUTEI_DATABASE_URL": c.url(), "KAKUTEI_GATEWAY": provider,
		"KAKUTEI_LEASE": crashLease.String(), "KAKUTEI_GATEWAY_TIMEOUT": "1s", "KAKUTEI_RECOVERY_INTERVAL": "100ms",
	}}}
	s.ground = s.with(settings...)
	for range 3 {
		s.instances = append(s.instances, s.start())
	}
	return s
}

// providerProcess is the payment provider simulator as a process, with a book of its own.
func providerProcess(t *testing.T) (url string) {
	t.Helper()
	r := &running{t: t, stdout: newOutput(), stderr: newOutput()}
	c := exec.CommandContext(t.Context(), binary(t), "gateway", "--listen", "127.0.0.1:0",
		"--book", filepath.Join(t.TempDir(), "book.db"))
	c.Dir, c.Stdout, c.Stderr, c.Env = t.TempDir(), r.stdout, r.stderr, withoutKakutei(os.Environ())
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return r.stdout.await(t, `gateway +(http://\S+)\n`)[1]
}

// notebook is what the clients have been told, and when.
type notebook struct {
	mu       sync.Mutex
	changed  chan struct{}
	answers  []told
	payments []*insistence
	paid     map[string]bool // the orders whose payment was acknowledged, by path
}

// told is one answer, or that none came.
type told struct {
	sent, came time.Time
	what       string
	success    bool
}

func newNotebook() *notebook { return &notebook{changed: make(chan struct{}), paid: map[string]bool{}} }

func (j *notebook) note(p *insistence, sent time.Time, a answered, err error) {
	n := told{sent: sent, came: time.Now(), what: "no answer"}
	if err == nil {
		var problem struct{ Code string }
		_ = json.Unmarshal([]byte(a.body), &problem)
		n.what = strings.TrimSpace(fmt.Sprint(a.status, " ", problem.Code))
		n.success = a.status == http.StatusOK || a.status == http.StatusCreated
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers = append(j.answers, n)
	if n.success && p.order != "" {
		j.paid[p.order] = true
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *notebook) add(p *insistence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.payments = append(j.payments, p)
}

// acknowledged are the orders that clients know to be paid.
func (j *notebook) acknowledged() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.paid))
}

// since are the answers to requests that were sent after a moment, as they came.
func (j *notebook) since(moment time.Time) (after []told, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range j.answers {
		if n.sent.After(moment) {
			after = append(after, n)
		}
	}
	return after, j.changed
}

// successes waits for so many to requests that were sent after a moment.
func (j *notebook) successes(t *testing.T, n int, moment time.Time) {
	t.Helper()
	late := time.After(patience)
	for {
		found, changed := j.since(moment)
		count := 0
		for _, a := range found {
			if a.success {
				count++
			}
		}
		if count >= n {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(t, "too few successes", "%d of %d", count, n)
		}
	}
}

// longestPause is the longest time without a success since a moment, up to the last success.
func (j *notebook) longestPause(since time.Time) (from, to time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := since
	for _, n := range j.answers {
		if !n.success || n.came.Before(since) {
			continue
		}
		if n.came.Sub(last) > to.Sub(from) {
			from, to = last, n.came
		}
		last = n.came
	}
	return from, to
}

// between counts the answers that came in a time, by what they said.
func (j *notebook) between(from, to time.Time) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	counts := map[string]int{}
	for _, n := range j.answers {
		if n.came.After(from) && n.came.Before(to) {
			counts[n.what]++
		}
	}
	var text []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%d × %s", counts[what], what))
	}
	return strings.Join(text, ", ")
}

// insist repeats the request at one instance after another until its answer is final.
func (s *shop) insist(ctx context.Context, p *insistence, turn int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for ; ; turn++ {
		sent := time.Now()
		once, end := context.WithTimeout(ctx, 10*time.Second)
		a, err := s.instances[turn%len(s.instances)].ask(once, p.path, p.key, p.body)
		end()
		s.note(p, sent, a, err)
		switch {
		case err != nil, a.status == http.StatusConflict, a.status == http.StatusServiceUnavailable:
		case a.status == http.StatusOK, a.status == http.StatusCreated:
			p.final = append(p.final, a.body)
			return nil
		default:
			return errors.Join(errAnswer, errors.New(a.body))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(errors.New("no final answer"), ctx.Err())
		}
	}
}

// busy has clients place orders and pay them until the test's story is told. Each payment that has begun comes to its end.
func (s *shop) busy(story func()) {
	s.t.Helper()
	over, end := context.WithCancel(s.t.Context())
	defer end()
	errs := make([]error, 6)
	var clients sync.WaitGroup
	for c := range errs {
		clients.Go(func() {
			for n := 0; over.Err() == nil && errs[c] == nil; n++ {
				errs[c] = s.buys(context.WithoutCancel(over), fmt.Sprint(c, "-", n), c+n)
				<-time.After(30 * time.Millisecond) // the machine has others to serve
			}
		})
	}
	story()
	end()
	clients.Wait()
	require.NoError(s.t, errors.Join(errs...))
}

// buys is a client that places an order and pays it, whatever it takes.
func (s *shop) buys(ctx context.Context, name string, turn int) error {
	o := placing("place-" + name)
	if err := s.insist(ctx, o, turn); err != nil {
		return err
	}
	p := paymentOf(orderIn(o.final[0]), "pay-"+name)
	if turn%3 == 0 {
		p.body = paidBy("pm_slow_20")
	}
	s.add(p)
	return s.insist(ctx, p, turn+1)
}

// found is how many of these orders the cluster knows to be paid.
func (s *shop) found(orders []string) (n int) {
	s.t.Helper()
	ids := make([]string, len(orders))
	for i, path := range orders {
		ids[i] = strings.TrimPrefix(path, "/api/orders/")
	}
	require.Eventually(s.t, func() bool {
		err := s.rows.QueryRowContext(s.t.Context(),
			`SELECT count(*) FROM orders WHERE status = 'PAID' AND id = ANY ($1::uuid[])`, ids).Scan(&n)
		return err == nil
	}, patience, 100*time.Millisecond, "the cluster can be asked")
	return n
}

// strikes lets something happen to the leader amid the load, and tells what the clients saw of it. It returns how long
// nobody had a success.
func (s *shop) strikes(what string, happen func()) (away time.Duration) {
	s.t.Helper()
	s.successes(s.t, 60, time.Now())
	before, began := s.acknowledged(), time.Now()
	happen()
	s.successes(s.t, 60, time.Now())
	found := s.found(before)
	assert.Len(s.t, before, found, "what was acknowledged before is there afterwards")
	from, to := s.longestPause(began)
	away = to.Sub(from)
	s.t.Logf("%s: of %d acknowledged payments %d are found; no success for %s, instead: %s",
		what, len(before), found, away.Round(time.Millisecond), s.between(from, to))
	return away
}

// times are how long something took.
type times []time.Duration

func (d *times) add(took time.Duration) { *d = append(*d, took) }

func (d *times) String() string {
	sorted := slices.Sorted(slices.Values(*d))
	return fmt.Sprintf("median %s, worst %s", sorted[len(sorted)/2].Round(time.Millisecond),
		sorted[len(sorted)-1].Round(time.Millisecond))
}

// settled demands that each payment was taken once and is on record once, on the service's side and the provider's.
func (s *shop) settled() {
	s.t.Helper()
	t, payments := s.t, s.payments
	for n, p := range payments {
		a, err := s.instances[n%len(s.instances)].ask(t.Context(), p.path, p.key, p.body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.True(t, a.replayed, "%s has its outcome on record", p.key)
		require.Equal(t, p.final[0], a.body, "every answer of one key is the same, byte for byte")
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM orders`:                                              len(payments),
		`SELECT count(*) FROM orders WHERE status = 'PAID'`:                        len(payments),
		`SELECT count(DISTINCT charge_id) FROM orders`:                             len(payments),
		`SELECT count(*) FROM journal_entries`:                                     len(payments),
		`SELECT count(DISTINCT source_document_id) FROM journal_entries`:           len(payments),
		`SELECT count(*) FROM idempotency_records WHERE status = 'IN_PROGRESS'`:    0,
		`SELECT count(*) FROM idempotency_records WHERE operation LIKE 'Confirm%'`: len(payments),
	} {
		assert.Equal(t, want, s.number(query), query)
	}
	assert.Equal(t, len(payments), s.charged(), "the provider has taken each payment once")
	assert.Equal(t, called{stdout: "{\"findings\":[\n],\"unresolved\":[\n]}\n"},
		quiet(alone(t, s.env, "reconcile", "--json")))
	t.Logf("%d payments acknowledged, %d found; all answers: %s", len(s.acknowledged()), len(payments),
		s.between(time.Time{}, time.Now()))
}

// charged is how many charges the provider lists.
func (s *shop) charged() (n int) {
	s.t.Helper()
	after := ""
	for {
		text, err := fetch(s.t.Context(), http.MethodGet,
			s.provider+"/charges?since=2000-01-01T00:00:00Z&limit=1000"+after, nil)
		require.NoError(s.t, err)
		var page struct {
			Charges []struct{ Status string }
			Next    *string
		}
		require.NoError(s.t, json.Unmarshal(text, &page))
		for _, c := range page.Charges {
			if c.Status == "approved" {
				n++
			}
		}
		if page.Next == nil {
			return n
		}
		after = "&after=" + *page.Next
	}
}

// The leader's node dies amid the load and its synchronous standby takes over; the dead one comes back as a standby and is
// made leader again, also amid the load.
func TestHAAFailoverAndASwitchoverLoseNothingAndRepeatNothing(t *testing.T) {
	s := openShop(t, newCluster(t, synchronous))
	var failovers, switchovers times
	s.busy(func() {
		for round := range haRounds(t) {
			leader, _ := s.cluster.pair()
			require.NotNil(t, leader)
			failovers.add(s.strikes(fmt.Sprintf("round %d, %s killed", round+1, leader.name), func() { s.cluster.kill(leader) }))
			s.successes(t, 30, time.Now())
			back := time.Now()
			s.cluster.start(leader)
			s.cluster.awaitStandby()
			t.Logf("%s is a standby again after %s", leader.name, time.Since(back).Round(time.Millisecond))
			switchovers.add(s.strikes(fmt.Sprintf("round %d, switched back to %s", round+1, leader.name), s.cluster.switchOver))
			s.cluster.awaitStandby()
		}
	})
	s.settled()
	t.Logf("without a success: failovers %s; switchovers %s", &failovers, &switchovers)
	t.Logf("pg_rewind ran %d times", s.cluster.rewinds())
}

// The leader's node sleeps amid the load until another one leads, and wakes up in the belief that it leads still: its
// connections, and new ones, may be written to until its Patroni has looked around. No standby confirms what is.
func TestHAALeaderThatWakesUpBehindItsSuccessorAcknowledgesNothing(t *testing.T) {
	c := newCluster(t, synchronous)
	s := openShop(t, c)
	s.busy(func() {
		sleeper, other := c.pair()
		s.strikes(sleeper.name+" stopped", func() { c.signal(sleeper, syscall.SIGSTOP) })
		leader, _ := c.pair()
		require.Equal(t, other, leader)
		s.strikes(sleeper.name+" continued", func() { c.signal(sleeper, syscall.SIGCONT) })
		c.awaitStandby()
	})
	s.settled()
}

// placed are so many orders, each with its payment to be sent.
func (s *shop) placed(n int) (payments []*insistence) {
	s.t.Helper()
	for i := range n {
		o := placing(fmt.Sprint("place-", i))
		require.NoError(s.t, s.insist(s.t.Context(), o, i))
		p := paymentOf(orderIn(o.final[0]), fmt.Sprint("pay-", i))
		s.add(p)
		payments = append(payments, p)
	}
	return payments
}

// acknowledgedNone sends each payment once, all at a time, and demands that nobody is told of a success.
func (s *shop) acknowledgedNone(payments []*insistence) {
	s.t.Helper()
	answers, errs := make([]answered, len(payments)), make([]error, len(payments))
	var clients sync.WaitGroup
	for i, p := range payments {
		clients.Go(func() {
			sent := time.Now()
			answers[i], errs[i] = s.instances[i%len(s.instances)].ask(s.t.Context(), p.path, p.key, p.body)
			s.note(p, sent, answers[i], errs[i])
		})
	}
	clients.Wait()
	for i, a := range answers {
		require.NoError(s.t, errs[i])
		assert.Contains(s.t, []int{http.StatusConflict, http.StatusServiceUnavailable}, a.status, a.body)
	}
}

// end brings every payment to its end.
func (s *shop) end(payments []*insistence) {
	s.t.Helper()
	for i, p := range payments {
		require.NoError(s.t, s.insist(s.t.Context(), p, i))
	}
}

// A standby that receives nothing any more, be it stuck or cut off: a payment that the provider has taken meanwhile is not
// acknowledged, neither to the request nor to its repeats, until another server has it.
func TestHAWhatTheStandbyHasNotReceivedIsNotAcknowledged(t *testing.T) {
	c := newCluster(t, synchronous)
	s := openShop(t, c, "KAKUTEI_LEASE", "4s", "KAKUTEI_GATEWAY_TIMEOUT", "3s", "KAKUTEI_RECOVERY_INTERVAL", "0")
	payments := s.placed(6)
	for _, p := range payments {
		p.body = paidBy("pm_slow_1500")
	}
	withheld := make(chan struct{})
	go func() {
		defer close(withheld)
		assert.Eventually(t, func() bool { return s.charged() == len(payments) }, soon, 10*time.Millisecond)
		c.withhold()
	}()
	s.acknowledgedNone(payments)
	<-withheld
	s.acknowledgedNone(payments)
	leader, _ := c.pair()
	c.kill(leader)
	s.end(payments)
	s.settled()
}

// Asynchronous replication acknowledges it, and a failover loses it. The provider's list shows what was lost, and the
// same request under the same key makes it whole, without a second charge.
func TestHAWithAsynchronousReplicationWhatTheStandbyHasNotReceivedIsLostAndFoundByTheComparison(t *testing.T) {
	c := newCluster(t, asynchronous)
	s := openShop(t, c)
	payments := s.placed(6)
	c.withhold()
	s.end(payments)
	leader, _ := c.pair()
	c.kill(leader)
	assert.Zero(t, s.found(s.acknowledged()), "and lost")
	assert.Equal(t, len(payments), s.number(`SELECT count(*) FROM orders WHERE status = 'PLACED' AND attempt = 0`))
	assert.Zero(t, s.number(`SELECT count(*) FROM idempotency_records WHERE operation LIKE 'Confirm%'`))
	got := alone(t, s.env, "reconcile")
	assert.Equal(t, 2, got.code, got.stderr)
	assert.Equal(t, len(payments), strings.Count(got.stdout, "charged_not_paid"), got.stdout)

	for _, p := range payments {
		p.final = nil // the old answer is no more
	}
	s.end(payments)
	s.settled()
}

// A strict cluster that is down to one node acknowledges nothing, until there are two again.
func TestHAAStrictClusterAcknowledgesNothingOnOneNode(t *testing.T) {
	c := newCluster(t, strict)
	s := openShop(t, c)
	payments := s.placed(6)
	killed, other := c.pair()
	c.kill(killed)
	require.Eventually(t, func() bool {
		leader, _ := c.pair()
		return leader == other
	}, patience, 50*time.Millisecond, "the standby takes over")
	for range 2 {
		s.acknowledgedNone(payments)
	}
	c.start(killed)
	s.end(payments)
	s.settled()
}
