package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/gormstore/pgtest"
)

// bounded is how long an answer may take in these tests: a second of the provider's, five lock timeouts, and what a busy
// machine adds.
const bounded = 7 * time.Second

// tab is one client of two instances, which asks now the one and now the other.
type tab struct {
	at   []*running
	name string
	done []*insistence // whose answers are final
}

// insist repeats a request until its answer is final. Error: an answer that was too long in coming, or must not be.
func (c *tab) insist(ctx context.Context, p *insistence) error {
	for turn := rand.N(2); ; turn++ {
		began := time.Now()
		final, err := p.try(ctx, c.at[turn%2])
		switch took := time.Since(began); {
		case took > bounded:
			return errors.Join(err, fmt.Errorf("%s was answered after %s", p.key, took))
		case err != nil:
			return fmt.Errorf("%s: %w", p.key, err)
		case final:
			return nil
		case p.tries > 3000:
			return fmt.Errorf("%s has no final answer", p.key)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// pay places an order and pays it as shoppers do: once, twice with the same key, or in two tabs.
func (c *tab) pay(ctx context.Context, n int) error {
	o := placing(fmt.Sprint("place-", c.name, "-", n))
	if err := c.insist(ctx, o); err != nil {
		return err
	}
	order, key := orderIn(o.final[0]), fmt.Sprint("pay-", c.name, "-", n)
	both := []*insistence{paymentOf(order, key)}
	switch n % 4 {
	case 1:
		both = append(both, paymentOf(order, key))
	case 2:
		both = append(both, paymentOf(order, key+"-b"))
	case 3:
		both[0].body = paidBy("pm_slow_20")
	}
	errs := make([]error, len(both)+1)
	var tabs sync.WaitGroup
	for i, p := range both {
		tabs.Go(func() { errs[i] = c.insist(ctx, p) })
	}
	if len(c.done) > 0 { // and one more click on what is paid
		errs[len(both)] = c.insist(ctx, c.done[rand.N(len(c.done))])
	}
	tabs.Wait()
	if n%4 == 1 { // one key is one payment
		both[0].final = append(both[0].final, both[1].final...)
		both = both[:1]
	}
	c.done = append(c.done, both...)
	return errors.Join(errs...)
}

// Two instances, whose payments go together, on a database on which everything goes wrong at once: sessions are ended,
// orders are held from outside, and now and then a row is refused.
func TestPaymentsInCompanyAreWholeWhateverTheDatabaseDoes(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_DB_POOL", "4", "KAKUTEI_LOCK_TIMEOUT", "800ms")
	proxy, url := pgproxy.Between(t, g.env["KAKUTEI_DATABASE_URL"])
	at := []*running{serving(t, g.env), serving(t, g.with("KAKUTEI_DATABASE_URL", url).env)}
	g.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF random() < 0.02 THEN RAISE EXCEPTION 'a test'; END IF;
		RETURN NEW;
	END $$`)
	g.exec(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION refuse()`)
	g.exec(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON journal_entries FOR EACH ROW EXECUTE FUNCTION refuse()`)
	over := make(chan struct{})
	clients, errs := make([]*tab, 24), make([]error, 26)
	var running, troubles sync.WaitGroup
	for i := range clients {
		clients[i] = &tab{at: at, name: fmt.Sprint(i)}
		running.Go(func() {
			for n := 0; errs[i] == nil; n++ {
				select {
				case <-over:
					return
				default:
					errs[i] = clients[i].pay(t.Context(), n)
				}
			}
		})
	}
	ended, held := 0, 0
	troubles.Go(func() {
		repeatedly(150*time.Millisecond, loadFor, func() {
			var n int
			errs[24] = errors.Join(errs[24], g.rows.QueryRowContext(t.Context(), `SELECT count(pg_terminate_backend(pid))
				FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
				AND application_name <> 'outside' AND random() < 0.5`).Scan(&n))
			ended += n
		})
	})
	struck := 0
	troubles.Go(func() {
		for until := time.Now().Add(loadFor); time.Now().Before(until); struck++ {
			fault := []pgproxy.Fault{pgproxy.LoseAnswer, pgproxy.LoseCommit, pgproxy.HoldAnswer}[struck%3]
			select {
			case <-proxy.Strike(1+rand.N(4), fault):
			case <-time.After(time.Second):
			}
			time.Sleep(rand.N(200 * time.Millisecond))
		}
	})
	troubles.Go(func() {
		for until := time.Now().Add(loadFor); time.Now().Before(until); {
			conn, err := g.rows.Conn(t.Context())
			if err != nil {
				continue
			}
			for _, statement := range []string{
				`SET application_name = 'outside'`, `BEGIN`,
				`SELECT FROM orders WHERE status <> 'PAID' ORDER BY random() LIMIT 6 FOR UPDATE SKIP LOCKED`,
				fmt.Sprintf(`SELECT pg_sleep(%f)`, (50+250*rand.Float64())/1000), `ROLLBACK`,
			} {
				if _, err = conn.ExecContext(t.Context(), statement); err != nil {
					break
				}
			}
			if err == nil {
				held++
			}
			_ = conn.Close()
		}
	})
	troubles.Wait() // else what follows could be ended, too
	g.exec(`DROP TRIGGER refuse ON orders`)
	g.exec(`DROP TRIGGER refuse ON journal_entries`)
	close(over)
	running.Wait()
	require.NoError(t, errors.Join(errs...))
	var payments []*insistence
	for _, c := range clients {
		payments = append(payments, c.done...)
	}
	t.Logf("%d payments, %d sessions ended, %d times orders held, %d commits without an answer", len(payments), ended, held, struck)
	require.NotZero(t, ended)
	require.NotZero(t, held)
	g.whole(at[0], payments...)
	for _, p := range slices.Backward(payments) {
		a, err := at[1].ask(t.Context(), p.path, p.key, p.body)
		require.NoError(t, err)
		assert.Equal(t, p.final[0], a.body, "the other instance answers the same")
	}
	at[0].stop()
	at[1].stop()
}
