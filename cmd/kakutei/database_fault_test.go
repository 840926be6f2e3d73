package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/gormstore/pgtest"
)

// proxied is a service that reaches its database through a wire that fails when it is told. Only its clients drive it:
// so the next COMMIT is a client's.
func proxied(t *testing.T, settings ...string) (ground, *pgproxy.Proxy, *running) {
	t.Helper()
	g := groundOn(t, pgtest.Empty(t))
	proxy, url := pgproxy.Between(t, g.env["KAKUTEI_DATABASE_URL"])
	return g, proxy, g.driven(t, url, settings...)
}

// driven is a service on the ground that only its clients drive, by another way to the database.
func (g ground) driven(t *testing.T, url string, settings ...string) *running {
	t.Helper()
	own := g.with("KAKUTEI_DATABASE_URL", url, "KAKUTEI_RECOVERY_INTERVAL", "0", "KAKUTEI_SWEEP_INTERVAL", "0").with(settings...)
	return serving(t, own.env)
}

// The commits of a payment, from the moment it is sent.
const (
	reservation = 1
	completion  = 2
)

// C10, C46: the wire to the database breaks at each of a payment's commits, before it or after it.
func TestACommitThatTheWireBreaksIsSettledByWhatStands(t *testing.T) {
	for name, c := range map[string]struct {
		commit int
		fault  pgproxy.Fault
	}{
		"the reservation's is applied, its answer lost": {reservation, pgproxy.LoseAnswer},
		"the reservation's never arrives":               {reservation, pgproxy.LoseCommit},
		"the completion's is applied, its answer lost":  {completion, pgproxy.LoseAnswer},
		"the completion's never arrives":                {completion, pgproxy.LoseCommit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, proxy, r := proxied(t)
			p := paymentOf(r.placed("place-1"), "pay-1")
			struck := proxy.Strike(c.commit, c.fault)
			_, err := p.try(t.Context(), r)
			require.NoError(t, err)
			<-struck
			assert.Equal(t, http.StatusOK, p.first.status, "the service settles it by itself: %s", p.first.body)
			assert.False(t, p.first.replayed, "it is its own execution's answer")
			g.whole(r, p)
			r.stop()
		})
	}
}

// C46: the commit's answer is on its way for ever. There is less time then for settling it: the first answer may be that
// the outcome is unknown.
func TestACommitWhoseAnswerIsStuckIsSettledByWhatStands(t *testing.T) {
	for name, commit := range map[string]int{"the reservation's": reservation, "the completion's": completion} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, proxy, r := proxied(t, "KAKUTEI_LOCK_TIMEOUT", "300ms")
			p := paymentOf(r.placed("place-1"), "pay-1")
			struck := proxy.Strike(commit, pgproxy.HoldAnswer)
			_, err := p.try(t.Context(), r)
			require.NoError(t, err)
			<-struck
			assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, p.first.status, p.first.body)
			require.NoError(t, p.insist(t.Context(), func() *running { return r }))
			g.whole(r, p)
			r.stop()
		})
	}
}

// C69: the database is away, too, when the service looks what has become of its commit. Then it does not know; the
// client's retry and the recovery find out, both at once.
func TestACommitInDoubtOnADatabaseThatIsAwayIsUnknownUntilItIsBack(t *testing.T) {
	for name, commit := range map[string]int{"the reservation's": reservation, "the completion's": completion} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, proxy, r := proxied(t, "KAKUTEI_RECOVERY_INTERVAL", "20ms")
			p := paymentOf(r.placed("place-1"), "pay-1")
			struck := proxy.Strike(commit, pgproxy.LoseAnswerAndCut)
			_, err := p.try(t.Context(), r)
			require.NoError(t, err)
			<-struck
			assert.Equal(t, http.StatusServiceUnavailable, p.first.status, p.first.body)
			assert.Contains(t, p.first.body, `"code":"outcome_unknown"`)
			again, err := r.ask(t.Context(), p.path, p.key, p.body)
			require.NoError(t, err)
			assert.Equal(t, http.StatusServiceUnavailable, again.status, again.body)
			assert.Contains(t, again.body, `"code":"unavailable"`, "this request has done nothing")

			proxy.Mend()
			back := time.Now()
			require.NoError(t, p.insist(t.Context(), func() *running { return r }))
			t.Logf("whole %s after the database was back", time.Since(back).Round(time.Millisecond))
			g.whole(r, p)
			r.stop()
		})
	}
}

// L5: every answer comes in bounded time, also when the database's never do.
func TestADatabaseThatStallsIsUnavailableInBoundedTime(t *testing.T) {
	g, proxy, r := proxied(t, "KAKUTEI_LOCK_TIMEOUT", "300ms")
	p := paymentOf(r.placed("place-1"), "pay-1")
	proxy.Stall()
	began := time.Now()
	_, err := p.try(t.Context(), r)
	require.NoError(t, err)
	took := time.Since(began)
	assert.Equal(t, http.StatusServiceUnavailable, p.first.status, p.first.body)
	assert.Less(t, took, 5*time.Second, "the gateway timeout and five lock timeouts are half of that")
	t.Logf("answered after %s", took.Round(time.Millisecond))
	proxy.Mend()
	require.NoError(t, p.insist(t.Context(), func() *running { return r }))
	g.whole(r, p)
	r.stop()
}

// The first of two hosts falls silent, with every connection of the pool. Those are given up, and not waited for: the next
// are with the other host. pgx alone would keep the pool waiting for 15 s more.
func TestAPoolWhoseServerFallsSilentGoesOnWithTheNextHost(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	behind := g.env["KAKUTEI_DATABASE_URL"]
	proxy, first := pgproxy.Between(t, behind)
	both, err := url.Parse(first)
	require.NoError(t, err)
	second, err := url.Parse(behind)
	require.NoError(t, err)
	both.Host += "," + second.Host
	r := serving(t, g.with("KAKUTEI_DATABASE_URL", both.String()+"&connect_timeout=1", "KAKUTEI_DB_POOL", "1",
		"KAKUTEI_LOCK_TIMEOUT", "300ms", "KAKUTEI_RECOVERY_INTERVAL", "0", "KAKUTEI_SWEEP_INTERVAL", "0").env)
	p := paymentOf(r.placed("place-1"), "pay-1")
	proxy.Stall()
	began := time.Now()
	require.NoError(t, p.insist(t.Context(), func() *running { return r }))
	took := time.Since(began)
	assert.Less(t, took, 10*time.Second, "four lock timeouts and the connect timeout are a quarter of that")
	t.Logf("paid after %s", took.Round(time.Millisecond))
	proxy.Mend()
	g.whole(r, p)
	r.stop()
}

// While the provider is asked, somebody else takes what the completion needs: the order's row or, on SQLite, the file. The
// outcome is unknown then, since the money may have been taken, and known when it is given back.
func TestARowOrAFileThatIsHeldFromOutsideLeavesTheOutcomeUnknownUntilItIsGivenBack(t *testing.T) {
	for name, hold := range map[string][]string{
		"SQLite": {`BEGIN IMMEDIATE`}, "PostgreSQL": {`BEGIN`, `SELECT id FROM orders FOR UPDATE`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, lastingStores[name](t)).with("KAKUTEI_LEASE", "5s", "KAKUTEI_GATEWAY_TIMEOUT", "4s",
				"KAKUTEI_LOCK_TIMEOUT", "300ms", "KAKUTEI_SWEEP_INTERVAL", "0")
			r := serving(t, g.env)
			p := paymentOf(r.placed("place-1"), "pay-1")
			p.body = paidBy("pm_slow_2000")
			answered := make(chan error, 1)
			go func() {
				_, err := p.try(t.Context(), r)
				answered <- err
			}()
			require.Eventually(t, func() bool { return g.charges(p.order) == 1 }, soon, time.Millisecond)
			outside, err := g.rows.Conn(t.Context())
			require.NoError(t, err)
			for _, statement := range hold {
				_, err := outside.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			require.NoError(t, <-answered)
			assert.Equal(t, http.StatusServiceUnavailable, p.first.status, p.first.body)
			assert.Contains(t, p.first.body, `"code":"outcome_unknown"`)
			again := paymentOf(p.order, p.key)
			again.body = p.body
			began := time.Now()
			final, err := again.try(t.Context(), r)
			require.NoError(t, err)
			assert.False(t, final)
			assert.Less(t, time.Since(began), 2*time.Second, "a repeat is answered promptly")

			_, err = outside.ExecContext(t.Context(), `ROLLBACK`)
			require.NoError(t, err)
			require.NoError(t, outside.Close())
			require.NoError(t, p.insist(t.Context(), func() *running { return r }))
			g.whole(r, p)
			r.stop()
		})
	}
}

// underLoad has clients place orders and pay them, one after another, until the fault has run its course. Each payment that
// has begun comes to its end.
func (r *running) underLoad(fault func()) (payments []*insistence) {
	r.t.Helper()
	return underLoadAt(r.t, fault, r)
}

// underLoadAt is underLoad with the clients spread over several instances.
func underLoadAt(t *testing.T, fault func(), at ...*running) (payments []*insistence) {
	t.Helper()
	over, end := context.WithCancel(t.Context())
	defer end()
	paid, errs := make([][]*insistence, 8*len(at)), make([]error, 8*len(at))
	var clients sync.WaitGroup
	for c := range paid {
		clients.Go(func() {
			for n := 0; over.Err() == nil && errs[c] == nil; n++ {
				var p *insistence
				p, errs[c] = at[c%len(at)].paysInTheEnd(context.WithoutCancel(over), fmt.Sprint(c, "-", n))
				paid[c] = append(paid[c], p)
			}
		})
	}
	fault()
	end()
	clients.Wait()
	require.NoError(t, errors.Join(errs...))
	return slices.Concat(paid...)
}

// paysInTheEnd is a client that places an order and pays it, whatever it takes.
func (r *running) paysInTheEnd(ctx context.Context, name string) (*insistence, error) {
	here := func() *running { return r }
	o := placing("place-" + name)
	if err := o.insist(ctx, here); err != nil {
		return nil, err
	}
	p := paymentOf(orderIn(o.final[0]), "pay-"+name)
	return p, p.insist(ctx, here)
}

// repeatedly has something happen at every tick, for a time.
func repeatedly(every, during time.Duration, happen func()) (times int) {
	tick, end := time.NewTicker(every), time.After(during)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			happen()
			times++
		case <-end:
			return times
		}
	}
}

// loadFor is how long the load lasts while connections break.
const loadFor = 3 * time.Second

// L6: all sessions are ended again and again. No client sees a 500, and nothing is done twice.
func TestSessionsThatTheServerEndsUnderLoadCostNothing(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	r := serving(t, g.env)
	ended := 0
	payments := r.underLoad(func() {
		repeatedly(200*time.Millisecond, loadFor, func() {
			ended += g.number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		})
	})
	require.NotZero(t, ended)
	t.Logf("%d payments while %d sessions were ended", len(payments), ended)
	g.whole(r, payments...)
	r.stop()
}

// L3: the wire breaks again and again, wherever a transaction stands.
func TestConnectionsThatAreResetUnderLoadCostNothing(t *testing.T) {
	g, proxy, r := proxied(t)
	resets := 0
	payments := r.underLoad(func() { resets = repeatedly(100*time.Millisecond, loadFor, proxy.Reset) })
	t.Logf("%d payments while all connections were reset %d times", len(payments), resets)
	g.whole(r, payments...)
	r.stop()
}
