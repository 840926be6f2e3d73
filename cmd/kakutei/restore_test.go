package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// backUps back a store up as docs/operations/README.md says, by name, and return how the copy becomes another store.
var backUps = map[string]func(t *testing.T, g ground) (restore func() (url string)){
	"SQLite": func(t *testing.T, g ground) func() string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "copy.db")
		g.exec(`VACUUM INTO '` + file + `'`)
		return func() string { return "sqlite:" + file }
	},
	"PostgreSQL": func(t *testing.T, g ground) func() string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "copy.dump")
		calls(t, "pg_dump", "--format=custom", "--file="+file, g.env["KAKUTEI_DATABASE_URL"])
		return func() string {
			url := pgtest.Empty(t)
			calls(t, "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+url, file)
			return url
		}
	},
}

// calls runs another program to its good end.
func calls(t *testing.T, program string, args ...string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", program, said)
}

// theStatementAfterARestore is the SQL that the operations page has run before the service starts on a restored database.
func theStatementAfterARestore(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "operations", "README.md"))
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```sql\n\\s*(UPDATE orders.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, 1)
	return found[0][1]
}

// forgetting is a provider that can be made to forget its keys, as each does one day: the same key is a new charge then.
func forgetting(over *atomic.Bool) func(http.Handler) http.Handler {
	return func(provider http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if key := r.Header.Get("Idempotency-Key"); key != "" && over.Load() {
				r.Header.Set("Idempotency-Key", key+"/anew")
			}
			provider.ServeHTTP(w, r)
		})
	}
}

// A restore takes the database back in time, and the provider stays where it is. Orders that were paid since are PLACED or
// PAYMENT_PENDING again, their keys are new, and the provider may know none of the gateway's keys any more.
func TestARestoredBackUpChargesNobodyTwiceAndReconcileTellsWhatIsLost(t *testing.T) {
	for name, backUp := range backUps {
		t.Run(name, func(t *testing.T) {
			var forgotten atomic.Bool
			g := groundOn(t, lastingStores[name](t), forgetting(&forgotten))
			before := g.with("KAKUTEI_RECOVERY_INTERVAL", "0").start()
			pays := func(r *running, order, key string) *insistence {
				p := paymentOf(order, key)
				require.NoError(t, p.insist(t.Context(), func() *running { return r }))
				return p
			}
			paid := pays(before.running, before.placed("place-paid"), "pay-paid")
			open, untouched, declined := before.placed("place-open"), before.placed("place-untouched"), before.placed("place-declined")
			a := before.post(declined+"/confirm-payment", "pay-declined", paidBy("pm_declined"))
			require.Equal(t, http.StatusPaymentRequired, a.status, a.body)
			pending := before.unanswered("pending", "pm_lost_answer")

			restore := backUp(t, g)

			pays(before.running, open, "pay-open")
			pays(before.running, declined, "pay-again")
			a = before.post(pending+"/confirm-payment", "pay-pending", paidBy("pm_lost_answer"))
			require.Equal(t, http.StatusOK, a.status, a.body)
			lost := before.placed("place-lost")
			pays(before.running, lost, "pay-lost")
			before.kill()

			forgotten.Store(true)
			g = g.over(restore())
			g.exec(theStatementAfterARestore(t))
			told := alone(t, g.env, "reconcile")
			assert.Equal(t, int(findings), told.code, told.stderr)
			for _, order := range []string{open, declined, pending, lost} {
				assert.Contains(t, told.stdout, strings.TrimPrefix(order, "/api/orders/"), "its money was taken")
			}
			assert.Equal(t, 3, strings.Count(told.stdout, "charged_not_paid"), told.stdout)
			assert.Contains(t, told.stdout, "unresolved order "+strings.TrimPrefix(pending, "/api/orders/"))

			after := g.start()
			after.becomes(pending, "PAID") // by the recovery
			for _, p := range []*insistence{
				pays(after.running, open, "pay-open"), pays(after.running, declined, "pay-again"),
				pays(after.running, untouched, "pay-untouched"), paid,
				{
					path: pending + "/confirm-payment", key: "pay-pending", body: paidBy("pm_lost_answer"), order: pending,
				},
			} {
				again := after.post(p.path, p.key, p.body)
				assert.Equal(t, http.StatusOK, again.status, again.body)
				assert.True(t, again.replayed)
				for _, first := range p.final {
					assert.Equal(t, first, again.body)
				}
				assert.Equal(t, 1, g.charges(p.order), "%s is charged once", p.key)
			}
			a = after.post(lost+"/confirm-payment", "pay-lost", thousand)
			assert.Equal(t, http.StatusNotFound, a.status, "it is gone, and its money is to be given back")

			told = alone(t, g.env, "reconcile")
			assert.Equal(t, int(findings), told.code, told.stderr)
			assert.Regexp(t, `\A\S*charged_not_paid.*`+strings.TrimPrefix(lost, "/api/orders/")+`.*\n\z`, told.stdout)
		})
	}
}

// What took no more than a moment between back-up and restore: the provider knows its keys, so the clients' own retries
// make everything whole without a word of an operator's.
func TestAStoreThatIsTakenBackAMomentIsMadeWholeByTheClientsRetries(t *testing.T) {
	for name, backUp := range backUps {
		t.Run(name, func(t *testing.T) {
			g := groundOn(t, lastingStores[name](t))
			before := g.start()
			p := paymentOf(before.placed("place"), "pay")
			restore := backUp(t, g)
			require.NoError(t, p.insist(t.Context(), func() *running { return before.running }))
			before.kill()

			g = g.over(restore())
			after := g.start()
			p.final = nil // the receipt is a new one: its time and its id are of the second recording
			require.NoError(t, p.insist(t.Context(), func() *running { return after.running }))
			g.whole(after.running, p)
		})
	}
}
