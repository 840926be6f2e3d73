package main

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

const thousand = `{"amount":1000,"currency":"JPY"}`

// onEachStore runs the test on every kind of store.
func onEachStore(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("memory", func(t *testing.T) { test(t, "memory:") })
	t.Run("SQLite", func(t *testing.T) { test(t, sqliteFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgtest.Empty(t)) })
}

func sqliteFile(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
}

func TestAnOrderIsPlacedAndPaidAndTheRetryGetsTheSameBytes(t *testing.T) {
	onEachStore(t, func(t *testing.T, url string) {
		r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url})
		order := r.placed("place-1")
		first := r.post(order+"/confirm-payment", "pay-1", thousand)
		require.Equal(t, http.StatusOK, first.status, first.body)
		assert.False(t, first.replayed)

		again := r.post(order+"/confirm-payment", "pay-1", thousand)
		assert.Equal(t, answered{http.StatusOK, true, first.body}, again)
		assert.Equal(t, http.StatusOK, r.get("/readyz").status)
		r.stop()
	})
}

func TestARestartForgetsNothing(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"SQLite":     sqliteFile,
		"PostgreSQL": func(t *testing.T) string { return pgtest.Empty(t) },
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"KAKUTEI_DATABASE_URL": url(t)}
			before := serving(t, env)
			order := before.placed("place-1")
			paid := before.post(order+"/confirm-payment", "pay-1", thousand)
			require.Equal(t, http.StatusOK, paid.status, paid.body)
			before.stop()

			after := serving(t, env)
			assert.Contains(t, after.get(order).body, `"status":"PAID"`)
			assert.Equal(t, answered{http.StatusOK, true, paid.body},
				after.post(order+"/confirm-payment", "pay-1", thousand), "the record is there")
			assert.Equal(t, answered{http.StatusOK, false, paid.body},
				after.post(order+"/confirm-payment", "pay-2", thousand), "a new key gets the original payment")
		})
	}
}

// The first answer to pm_lost_answer is lost, later ones come from the book: only who has forgotten loses it again.
func TestTheSimulatorsBookOutlivesTheServiceUnlessItIsInMemory(t *testing.T) {
	for book, want := range map[string]int{"store": http.StatusOK, "memory:": http.StatusServiceUnavailable} {
		t.Run(book, func(t *testing.T) {
			env := map[string]string{
				"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_SIMULATOR_BOOK": book,
				"KAKUTEI_RECOVERY_INTERVAL": "0", // its first round would be at the payment when the client is
			}
			const lost = `{"amount":1000,"currency":"JPY","paymentMethod":"pm_lost_answer"}`
			before := serving(t, env)
			order := before.placed("place-1")
			require.Equal(t, http.StatusServiceUnavailable, before.post(order+"/confirm-payment", "pay-1", lost).status)
			before.stop()

			assert.Equal(t, want, serving(t, env).post(order+"/confirm-payment", "pay-1", lost).status)
		})
	}
}

func TestThePrintedLinesWorkWhenPasted(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t)})
	printed := r.stdout.await(t, `(?m)^(ORDER=\$\(curl .+)\n(curl .+)\n`)
	require.Equal(t, 2, strings.Count(r.stdout.String(), "curl "))
	paste := func(lines string) string {
		pasted := exec.CommandContext(t.Context(), "bash")
		pasted.Stdin = strings.NewReader(lines)
		said, err := pasted.CombinedOutput()
		require.NoError(t, err)
		return string(said)
	}
	first := paste(printed[0])
	assert.Regexp(t, `\Aorder \S{36}\n\{"orderId":.*"status":"PAID".*\}\n\z`, first)
	second := paste(printed[0] + printed[2] + "\n")
	lines := strings.Split(strings.TrimSpace(second), "\n")
	require.Len(t, lines, 3)
	assert.NotEqual(t, strings.Split(first, "\n")[0], lines[0], "the first line places another order each time")
	assert.Equal(t, lines[1], lines[2], "the second line again is a retry")
}

func TestWhatIsPrintedNamesPageAndStoreAndNoPassword(t *testing.T) {
	database, err := url.Parse(pgtest.Empty(t))
	require.NoError(t, err)
	database.User = url.UserPassword(database.User.Username(), "s3cret") // not asked for, as it comes over loopback
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": database.String()})
	assert.Regexp(t, `store +PostgreSQL at \S+`, r.stdout.String())
	assert.NotContains(t, r.stdout.String()+r.stderr.String(), "s3cret")
	assert.Contains(t, r.get("/").body, "Kakutei")
}

func TestNeitherKeysNorTokensAreLogged(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_LOG_LEVEL": "debug"})
	order := r.placed("place-1f0c")
	for _, body := range []string{thousand, thousand, `{"amount":1,"currency":"JPY"}`, `{}`} {
		r.post(order+"/confirm-payment", "pay-1f0c", body)
	}
	r.get("/api/idempotency-keys/pay-1f0c?operation=ConfirmPayment")
	r.stop()
	assert.Contains(t, r.stderr.String(), `"msg":"request"`)
	assert.NotContains(t, r.stderr.String(), "1f0c")
	assert.NotContains(t, r.stderr.String(), "demo-alice")
}

func TestAnExposedDemoIsWarnedOfAndReachableUnderAnyName(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_DEMO_EXPOSED": "yes"},
		func(p *program) { p.args = []string{"serve", "--listen", "0.0.0.0:0"} })
	assert.Regexp(t, `"level":"WARN","msg":"DEMO MODE IS EXPOSED`, r.stderr.String())
	assert.Regexp(t, `\Ahttp://127\.0\.0\.1:\d+\z`, r.base, "the printed address can be called")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"/healthz", nil)
	require.NoError(t, err)
	req.Host = "shop.example"
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, http.StatusOK, res.StatusCode)
}

func TestAnAddressThatIsTakenStopsTheStart(t *testing.T) {
	first := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	second := begin(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"}, func(p *program) {
		p.args = []string{"serve", "--listen", strings.TrimPrefix(first.base, "http://")}
	})
	assert.Equal(t, 1, second.exitCode())
	assert.Regexp(t, `\Akakutei: KAKUTEI_LISTEN: .*address already in use\n\z`, second.stderr.String())
	assert.Empty(t, second.stdout.String(), "nothing is promised before it serves")
}

func TestMigrateAndSweepRefuseAStoreInMemory(t *testing.T) {
	for _, name := range []string{"migrate", "sweep"} {
		got := call(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"}, name)
		assert.Equal(t, 1, got.code, name)
		assert.Regexp(t, `\Akakutei: KAKUTEI_DATABASE_URL: .+\n\z`, got.stderr, name)
		assert.Empty(t, got.stdout, name)
	}
}

func TestSweepDeletesExpiredRecordsOnceAndTellsHowMany(t *testing.T) {
	env := map[string]string{
		"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_RETENTION": "1ms", "KAKUTEI_SWEEP_INTERVAL": "0",
	}
	require.Equal(t, 0, alone(t, env, "migrate").code)
	r := serving(t, env)
	r.post(r.placed("place-1")+"/confirm-payment", "pay-1", thousand)
	r.stop()

	assert.Equal(t, called{code: 0, stdout: "2\n"}, alone(t, env, "sweep"))
	assert.Equal(t, called{code: 0, stdout: "0\n"}, alone(t, env, "sweep"))
}

func TestTheServiceSweepsByItself(t *testing.T) {
	r := serving(t, map[string]string{
		"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_RETENTION": "1ms", "KAKUTEI_SWEEP_INTERVAL": "20ms",
	})
	r.placed("place-1")
	r.stderr.await(t, `"msg":"swept expired records","deleted":1`)
	r.stop()
}
