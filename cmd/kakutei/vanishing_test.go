package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// vanishFor is how long a record is taken away from those who work with it.
const vanishFor = 3 * time.Second

// vanishings are ways in which somebody else takes a record away. The key is new then, and so is whoever comes next.
var vanishings = map[string]string{
	"deleted": `DELETE FROM idempotency_records WHERE operation = 'ConfirmPayment'`,
	"aged": `UPDATE idempotency_records SET lease_expires_at = now() - interval '1 hour',
		expires_at = CASE WHEN expires_at IS NOT NULL THEN now() - interval '1 hour' END
		WHERE operation = 'ConfirmPayment'`,
}

// C18: a record is taken away every millisecond while twenty clients hammer its key, on a paid order and on fresh ones.
// They see their payment or that it is under way, never that something is broken, unless they have had the provider asked
// and cannot tell; each order is charged once; and when the hand rests, the record that stands is replayed.
func TestARecordThatIsTakenAwayAgainAndAgainCostsNothing(t *testing.T) {
	for name, vanish := range vanishings {
		for _, paidBefore := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, paid before: %t", name, paidBefore), func(t *testing.T) {
				t.Parallel()
				g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_SWEEP_INTERVAL", "0", "KAKUTEI_RECOVERY_INTERVAL", "0")
				r := serving(t, g.env)
				all := []*running{r, serving(t, g.env), serving(t, g.env)}
				hammered := g.hammered(all, paidBefore, func() { g.exec(vanish) })
				for _, p := range hammered { // its record may be gone
					require.NoError(t, p.insist(t.Context(), func() *running { return r }))
				}
				g.whole(r, hammered...)
				for _, r := range all {
					r.stop()
				}
			})
		}
	}
}

// C18, by the service itself: records that expire at once, and a sweeper that never rests.
func TestARetentionOfNothingAndARestlessSweeperCostNothing(t *testing.T) {
	for _, paidBefore := range []bool{true, false} {
		t.Run(fmt.Sprintf("paid before: %t", paidBefore), func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_SWEEP_INTERVAL", "1ms", "KAKUTEI_RETENTION", "1ms")
			all := []*running{serving(t, g.env), serving(t, g.env), serving(t, g.env)}
			hammered := g.hammered(all, paidBefore, func() {})
			for _, p := range hammered {
				assert.Equal(t, 1, g.charges(p.order), "%s is charged once", p.order)
			}
			g.agrees()
			g.rests()
			for _, r := range all {
				r.stop()
			}
		})
	}
}

// hammered has twenty clients send one payment again and again while something happens every millisecond. With fresh orders
// each is paid by all of them, one after another. They are spread over instances: one lets few of them meet in the store.
func (g ground) hammered(all []*running, paidBefore bool, happens func()) (payments []*insistence) {
	g.t.Helper()
	const clients = 20
	seen := map[string]int{}
	var mu sync.Mutex
	hammer := func(over context.Context, p *insistence) {
		var hammering sync.WaitGroup
		for i := range clients {
			r := all[i%len(all)]
			hammering.Go(func() {
				for asked := false; !asked || over.Err() == nil; asked = true { // also if placing the order took all the time
					a, err := r.ask(context.WithoutCancel(over), p.path, p.key, p.body)
					if err != nil {
						g.t.Error(err)
						return
					}
					mu.Lock()
					seen[kind(a)]++
					if a.status == http.StatusOK {
						p.final = append(p.final, a.body)
					}
					mu.Unlock()
				}
			})
		}
		hammering.Wait()
	}
	over, end := context.WithTimeout(g.t.Context(), vanishFor)
	defer end()
	var taking sync.WaitGroup
	taking.Go(func() { repeatedly(time.Millisecond, vanishFor, happens) })
	for n := 0; over.Err() == nil; n++ {
		p := all[0].fresh(fmt.Sprint(n, "-"), 1)[0]
		payments = append(payments, p)
		round, done := over, func() {}
		if paidBefore {
			require.NoError(g.t, p.insist(g.t.Context(), func() *running { return all[0] }))
		} else {
			round, done = context.WithTimeout(over, 100*time.Millisecond)
		}
		hammer(round, p)
		done()
	}
	taking.Wait()
	g.t.Logf("%d orders, answers: %v", len(payments), seen)
	legal := []string{"200", "409 idempotency_in_progress", "409 payment_in_progress"}
	if !paidBefore { // who has had the provider asked and loses his record each time does not know
		legal = append(legal, "503 outcome_unknown")
	}
	for answer := range seen {
		assert.Contains(g.t, legal, answer)
	}
	return payments
}

// kind is an answer by its status and, if it is a problem, its code.
func kind(a answered) string {
	_, code, isProblem := strings.Cut(a.body, `"code":"`)
	code, _, _ = strings.Cut(code, `"`)
	if !isProblem {
		return fmt.Sprint(a.status)
	}
	return fmt.Sprint(a.status, " ", code)
}
