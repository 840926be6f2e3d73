//go:build ha

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shop is a cluster, a provider and three instances of the service, each of them a process of its own, and the clients
// that keep them busy.
type shop struct {
	ground
	cluster   *cluster
	provider  string
	instances []*instance
	woken     bool // a leader of the past may be asked, which does not know the newest orders
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
		case err != nil, a.status == http.StatusConflict, a.status == http.StatusServiceUnavailable,
			s.woken && a.status == http.StatusNotFound:
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

// asks sends each payment once, all at a time. What it returns waits for the answers, and demands that nobody is told of a
// success.
func (s *shop) asks(payments []*insistence) (noneIsAcknowledged func()) {
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
	return func() {
		s.t.Helper()
		clients.Wait()
		for i, a := range answers {
			require.NoError(s.t, errs[i])
			assert.Contains(s.t, []int{http.StatusConflict, http.StatusServiceUnavailable}, a.status, a.body)
		}
	}
}

// end brings every payment to its end.
func (s *shop) end(payments []*insistence) {
	s.t.Helper()
	for i, p := range payments {
		require.NoError(s.t, s.insist(s.t.Context(), p, i))
	}
}
