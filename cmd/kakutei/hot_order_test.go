package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// pause is what a provider makes of its first charge: it keeps it until it is told to go on.
type pause struct {
	reached chan struct{} // closed when the charge has come
	goOn    func()
}

// pausing is a ground whose provider thinks about its first charge for as long as the test does. Nothing but time limits
// differ from production's: the holder of the first payment stays alive.
func pausing(t *testing.T, settings ...string) (ground, pause) {
	t.Helper()
	reached, released := make(chan struct{}), make(chan struct{})
	p := pause{reached: reached, goOn: sync.OnceFunc(func() { close(released) })}
	var charges atomic.Int64
	g := groundOn(t, pgtest.Empty(t), func(provider http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && charges.Add(1) == 1 {
				close(reached)
				<-released
			}
			provider.ServeHTTP(w, r)
		})
	})
	t.Cleanup(p.goOn)
	return g.with("KAKUTEI_LEASE", "60s", "KAKUTEI_GATEWAY_TIMEOUT", "30s", "KAKUTEI_RECOVERY_INTERVAL", "0").
		with(settings...), p
}

// begun sends the payment and returns when the provider has it. The channel has its end.
func (r *running) begun(p *insistence, provider pause) <-chan error {
	r.t.Helper()
	answered := make(chan error, 1)
	go func() {
		a, err := r.ask(context.WithoutCancel(r.t.Context()), p.path, p.key, p.body)
		if p.first = a; a.status == http.StatusOK {
			p.final = append(p.final, a.body)
		}
		answered <- err
	}()
	select {
	case <-provider.reached:
	case <-time.After(soon):
		require.FailNow(r.t, "the charge does not come", r.stderr)
	}
	return answered
}

// others pays n other orders, one after another, and demands that each is answered 200 the first time it is asked for:
// whoever waits for a connection longer than the lock timeout is not.
func (r *running) others(n int) (paid []*insistence) {
	r.t.Helper()
	slowest := time.Duration(0)
	for i := range n {
		began := time.Now()
		p := paymentOf(r.placed(fmt.Sprint("place-other-", i)), fmt.Sprint("pay-other-", i))
		_, err := p.try(r.t.Context(), r)
		require.NoError(r.t, err)
		require.Equal(r.t, http.StatusOK, p.first.status, "another order is served at once: %s", p.first.body)
		slowest = max(slowest, time.Since(began))
		paid = append(paid, p)
	}
	r.t.Logf("%d other orders were placed and paid meanwhile, the slowest in %s", n, slowest.Round(time.Millisecond))
	return paid
}

// waits checks the advice to wait: whole seconds, from 1 to the lease.
func waits(t *testing.T, header http.Header, lease time.Duration) {
	t.Helper()
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if assert.NoError(t, err) {
		assert.GreaterOrEqual(t, seconds, 1)
		assert.LessOrEqual(t, time.Duration(seconds)*time.Second, lease)
	}
}

// crowd sends all these payments at once. Each must be told code, while the first one is still under way.
func (r *running) crowd(payments []*insistence, code string, lease time.Duration) (told func()) {
	r.t.Helper()
	var clients sync.WaitGroup
	for _, p := range payments {
		clients.Go(func() {
			a, header, err := r.askAs(context.WithoutCancel(r.t.Context()), "demo-alice", p.path, p.key, p.body)
			if assert.NoError(r.t, err) && assert.Equal(r.t, http.StatusConflict, a.status, a.body) {
				assert.Contains(r.t, a.body, code)
				waits(r.t, header, lease)
			}
		})
	}
	return clients.Wait
}

// C19, C63: one order is being paid, and everybody wants it. Those who ask for it are told so, under whatever keys, and the
// few connections there are stay with the others. Afterwards every key has the one receipt.
func TestOneHotOrderLeavesThePoolToTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		clients int
		key     func(i int) string
		code    string
	}{
		"a hundred keys":            {100, func(i int) string { return fmt.Sprint("pay-", i) }, `"code":"payment_in_progress"`},
		"fifty duplicates of a key": {50, func(int) string { return "pay-first" }, `"code":"idempotency_in_progress"`},
	} {
		t.Run(name, func(t *testing.T) {
			g, provider := pausing(t, "KAKUTEI_DB_POOL", "4")
			r := serving(t, g.env)
			first := paymentOf(r.placed("place-hot"), "pay-first")
			answer := r.begun(first, provider)
			var hot []*insistence
			for i := range c.clients {
				hot = append(hot, paymentOf(first.order, c.key(i)))
			}
			told := r.crowd(hot, c.code, time.Minute)
			payments := r.others(20)
			told()
			provider.goOn()
			require.NoError(t, <-answer)
			assert.Equal(t, http.StatusOK, first.first.status, first.first.body)

			payments = append(payments, first)
			if c.key(0) != first.key {
				payments = append(payments, hot...)
			}
			together(t, payments, r.inTheEnd)
			g.whole(r, payments...)
			r.stop()
		})
	}
}

// together does it for each at once.
func together(t *testing.T, payments []*insistence, do func(*insistence)) {
	t.Helper()
	start := make(chan struct{})
	var clients sync.WaitGroup
	for _, p := range payments {
		clients.Go(func() {
			<-start
			do(p)
		})
	}
	close(start)
	clients.Wait()
}

// eitherWay sends a payment the first time, when others want the same: it is paid, or under way.
func (r *running) eitherWay(p *insistence) {
	r.t.Helper()
	if _, err := p.try(r.t.Context(), r); err != nil {
		r.t.Error(err)
		return
	}
	assert.Contains(r.t, []int{http.StatusOK, http.StatusConflict}, p.first.status, p.first.body)
}

// inTheEnd insists.
func (r *running) inTheEnd(p *insistence) {
	r.t.Helper()
	assert.NoError(r.t, p.insist(r.t.Context(), func() *running { return r }), p.key)
}

// fresh is the payments of n orders that have just been placed, by a client who comes again when he is told to: on a busy
// machine a short lock timeout is over soon.
func (r *running) fresh(name string, n int) (payments []*insistence) {
	r.t.Helper()
	for i := range n {
		order := placing(fmt.Sprint("place-", name, i))
		order.insistHere(r)
		payments = append(payments, paymentOf(orderIn(order.final[0]), fmt.Sprint("pay-", name, i)))
	}
	return payments
}

// C63: fifty keys for one fresh order, at once: whoever loses is told to wait, not that something is broken.
func TestFiftyKeysForOneFreshOrderPayItOnce(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	r := serving(t, g.env)
	order := r.placed("place-1")
	var payments []*insistence
	for i := range 50 {
		payments = append(payments, paymentOf(order, fmt.Sprint("pay-", i)))
	}
	together(t, payments, r.eitherWay)
	together(t, payments, r.inTheEnd)
	g.whole(r, payments...)
	r.stop()
}

// C78: with two connections fifty payments come through. Nobody holds one and waits for another; whoever waits too long
// for his turn is told so, and comes again.
func TestFiftyPaymentsComeThroughAPoolOfTwo(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_DB_POOL", "2", "KAKUTEI_LOCK_TIMEOUT", "1s")
	r := serving(t, g.env)
	payments := r.fresh("of-two-", 50)
	var refused atomic.Int64
	together(t, payments, func(p *insistence) {
		for {
			a, header, err := r.askAs(t.Context(), "demo-alice", p.path, p.key, p.body)
			if err != nil {
				t.Error(err)
				return
			}
			if a.status == http.StatusOK {
				p.final = append(p.final, a.body)
				return
			}
			refused.Add(1)
			waits(t, header, crashLease)
			if !assert.Contains(t, []string{"503 unavailable", "503 outcome_unknown"}, kind(a)) {
				return
			}
		}
	})
	t.Logf("%d times there was no connection in time", refused.Load())
	g.whole(r, payments...)
	r.stop()
}

// C65: while a payment waits for the order's row, its holder cancels the order, or makes it dearer. The payment sees what
// the holder has made of it.
func TestWhatDecidesIsReadBehindTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		status int
		code   string
	}{
		"cancelled": {`UPDATE orders SET status = 'CANCELLED', cancelled_at = now()`, http.StatusConflict, "invalid_state"},
		"dearer":    {`UPDATE orders SET amount = 1001`, http.StatusUnprocessableEntity, "amount_mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			g := groundOn(t, pgtest.Empty(t))
			r := serving(t, g.env)
			hot := r.fresh("hot-", 1)[0]
			holder := g.outside(c.change)
			keys := []*insistence{hot, paymentOf(hot.order, "pay-another")}
			waited := make(chan struct{})
			go func() {
				defer close(waited)
				for g.waiting() < len(keys) && t.Context().Err() == nil {
				}
				holder.gives("COMMIT")
			}()
			together(t, keys, func(p *insistence) {
				for {
					a, err := r.ask(t.Context(), p.path, p.key, p.body)
					if err != nil {
						t.Error(err)
						return
					}
					if strings.Contains(a.body, `"code":"payment_in_progress"`) {
						continue // it has waited as long as a reservation waits, and is not on record
					}
					assert.Equal(t, c.status, a.status, a.body)
					assert.Contains(t, a.body, `"code":"`+c.code+`"`)
					return
				}
			})
			<-waited
			assert.Zero(t, g.charges(hot.order))
			assert.Zero(t, g.number(`SELECT count(*) FROM orders WHERE status = 'PAID'`))
			g.rests()
			r.stop()
		})
	}
}

// C62: hundreds of clients lose their patience with orders that somebody holds. Their requests leave no session behind that
// would spoil another one's.
func TestHangUpsOnHeldOrdersSpoilNoSession(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_DB_POOL", "5", "KAKUTEI_MAX_IN_FLIGHT", "1000")
	r := serving(t, g.env)
	held := r.fresh("held", 25)
	holder := g.outside(`SELECT id FROM orders FOR UPDATE`)
	normal := r.fresh("normal", 200)
	var clients sync.WaitGroup
	turns := make(chan struct{}, 50)
	for _, p := range slices.Repeat(held, 20) {
		turns <- struct{}{}
		clients.Go(func() {
			defer func() { <-turns }()
			ctx, hangUp := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer hangUp()
			_, _ = r.ask(ctx, p.path, p.key, p.body) // whatever comes, nobody is there to read it
		})
	}
	clients.Wait()
	holder.gives("ROLLBACK")
	// The work of those who have hung up goes on. On a busy machine there is still a line of it, and who comes then is told to
	// come again: the first one does, and behind him nobody stands in line.
	r.inTheEnd(normal[0])
	for _, p := range normal[1:] {
		_, err := p.try(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, p.first.status, p.first.body)
	}
	for _, p := range held {
		require.NoError(t, p.insist(t.Context(), func() *running { return r }))
	}
	g.whole(r, slices.Concat(held, normal)...)
	for _, line := range g.logged() {
		assert.NotContains(t, line, "idle-in-transaction timeout", "the service ends its transactions itself")
	}
	r.stop()
}
