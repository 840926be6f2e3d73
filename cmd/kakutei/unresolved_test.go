package main

import (
	"encoding/json"
	"net/http"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaving is a store with one order whose payment under the key pay-1 has ended in an unknown outcome, and a service
// without recovery over it.
func leaving(t *testing.T, url, method string) (env map[string]string, r *running, order string) {
	t.Helper()
	env = map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "0"}
	r = serving(t, env)
	return env, r, r.unanswered("1", method)
}

// naming are the options that name the record of that payment.
func naming(command string, more ...string) []string {
	return append([]string{command, "--operation", "ConfirmPayment", "--actor", "alice", "--key", "pay-1"}, more...)
}

// operators is an answer to an operator's GET.
func (r *running) operators(path string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+path, nil)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer demo-operator")
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	require.Equal(r.t, http.StatusOK, res.StatusCode)
	var text json.RawMessage
	require.NoError(r.t, json.NewDecoder(res.Body).Decode(&text))
	return string(text)
}

// refused checks that the command said in one line what is wrong, and nothing else.
func refused(t *testing.T, got called, pattern string) {
	t.Helper()
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stdout)
	assert.Regexp(t, `\Akakutei: .*`+pattern+`.*\n\z`, got.stderr)
	assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
}

func TestStuckListsWhatTheRouteLists(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		env, r, order := leaving(t, url, "pm_down")
		again := r.post(order+"/confirm-payment", "pay-1", paidBy("pm_down"))
		require.Equal(t, http.StatusServiceUnavailable, again.status)
		second := r.unanswered("2", "pm_lost_answer")
		paid := r.placed("place-3")
		require.Equal(t, http.StatusOK, r.post(paid+"/confirm-payment", "pay-3", thousand).status)

		got := alone(t, env, "stuck", "--json")
		require.Equal(t, 0, got.code, got.stderr)
		assert.Equal(t, r.operators("/api/unresolved")+"\n", got.stdout)
		assert.Contains(t, got.stdout, `"idempotencyKey":"pay-1","executions":2,`)

		table := alone(t, env, "stuck")
		require.Equal(t, 0, table.code, table.stderr)
		lines := strings.Split(strings.TrimSuffix(table.stdout, "\n"), "\n")
		require.Len(t, lines, 3)
		assert.Equal(t, []string{"OPERATION", "ACTOR", "KEY", "EXECUTIONS", "CREATED", "LEASE", "EXPIRED", "ORDER"},
			strings.Fields(lines[0]))
		for i, want := range [][]string{
			{"ConfirmPayment", "alice", "pay-1", "2", strings.TrimPrefix(order, "/api/orders/")},
			{"ConfirmPayment", "alice", "pay-2", "1", strings.TrimPrefix(second, "/api/orders/")},
		} {
			words := strings.Fields(lines[i+1])
			require.Len(t, words, 7)
			assert.Equal(t, want, append(words[:4:4], words[6]))
			for _, at := range words[4:6] {
				assert.Regexp(t, `\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\z`, at)
			}
		}
		r.stop()
		assert.Equal(t, got.stdout, alone(t, env, "stuck", "--json").stdout, "it asks the store itself")
	})
}

func TestStuckWithNothingToShow(t *testing.T) {
	env := map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t)}
	assert.Equal(t, called{code: 0, stdout: "{\"records\":[]}\n"}, alone(t, env, "stuck", "--json"))
	table := alone(t, env, "stuck")
	assert.Equal(t, 0, table.code)
	assert.Equal(t, 1, strings.Count(table.stdout, "\n"))
}

func TestReleaseFreesARecordAndTellsTheAuditLogWhoSaidSo(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		env, r, order := leaving(t, url, "pm_lost_answer")
		listed := r.operators("/api/unresolved")
		got := alone(t, env, naming("release", "--by", "olga")...)
		require.Equal(t, 0, got.code, got.stderr)
		assert.Empty(t, got.stderr)
		assert.Equal(t, listed, `{"records":[`+strings.TrimSuffix(got.stdout, "\n")+`]}`)
		assert.Equal(t, 0, alone(t, env, naming("release")...).code, "it may be repeated")

		me, err := user.Current()
		require.NoError(t, err)
		audited := r.operators("/api/audit?kind=released")
		assert.Equal(t, 2, strings.Count(audited, `"idempotencyKey":"pay-1"`), audited)
		assert.Regexp(t, `released by olga".*released by `+regexp.QuoteMeta(me.Username)+`"`, audited)
		assert.Contains(t, r.get(order).body, `"status":"PAYMENT_PENDING"`, "no money is decided")
		r.stop()

		recovering := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "50ms"})
		recovering.becomes(order, "PAID")
		recovering.stop()
		refused(t, alone(t, env, naming("release")...), "not_found")
	})
}

func TestResolveTakesAnOperatorsWord(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		t.Run("charged", func(t *testing.T) {
			env, r, order := leaving(t, url, "pm_down")
			got := alone(t, env, naming("resolve", "--outcome", "charged", "--charge-id", "ch_seen", "--note", "rang them up",
				"--by", "olga")...)
			require.Equal(t, 0, got.code, got.stderr)
			assert.NotContains(t, got.stderr, "pay-1")
			assert.Contains(t, r.get(order).body, `"status":"PAID"`)
			replay := r.post(order+"/confirm-payment", "pay-1", paidBy("pm_down"))
			assert.Equal(t, http.StatusOK, replay.status)
			assert.True(t, replay.replayed)
			looked := r.get("/api/idempotency-keys/pay-1?operation=ConfirmPayment")
			assert.Equal(t, looked.body+"\n", got.stdout)

			audited := r.operators("/api/audit?kind=resolved")
			for _, part := range []string{"ch_seen", "olga", "rang them up", `"idempotencyKey":"pay-1"`} {
				assert.Contains(t, audited, part)
			}
			assert.Contains(t, r.operators("/api/audit?kind=takeover"), `"idempotencyKey":"pay-1"`,
				"what it met on its way is audited before it ends")
			refused(t, alone(t, env, naming("resolve", "--outcome", "charged", "--charge-id", "ch_2", "--note", "n")...),
				"not_found")
			r.stop()
		})
	})
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		t.Run("not charged", func(t *testing.T) {
			env, r, order := leaving(t, url, "pm_down")
			got := alone(t, env, naming("resolve", "--outcome", "not_charged", "--note", "they never saw it")...)
			require.Equal(t, 0, got.code, got.stderr)
			assert.Contains(t, got.stdout, `"declineCode":"resolved_not_charged"`)
			assert.Contains(t, r.get(order).body, `"status":"PLACED"`)
			replay := r.post(order+"/confirm-payment", "pay-1", paidBy("pm_down"))
			assert.Equal(t, http.StatusPaymentRequired, replay.status)
			assert.True(t, replay.replayed)
			assert.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-2", thousand).status)
			r.stop()
			assert.Equal(t, 0, alone(t, env, "reconcile").code)
		})
	})
}

func TestResolveBelievesTheProvidersListMoreThanAnOperator(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		env, r, order := leaving(t, url, "pm_lost_answer")
		refused(t, alone(t, env, naming("resolve", "--outcome", "not_charged", "--note", "n")...), "charge_found")
		assert.Contains(t, r.get(order).body, `"status":"PAYMENT_PENDING"`)
		assert.NotContains(t, r.operators("/api/audit"), `"resolved"`)
		r.stop()
	})
}

// "Paid" would not be true of it; "not charged" ends it as it stands.
func TestAPaymentWhoseOrderAHandHasCancelledIsEndedByAPersonAsTheOrderStands(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, by func(string)) {
		env, r, order := leaving(t, url, "pm_down")
		by(`UPDATE orders SET status = 'CANCELLED' WHERE id = '` + strings.TrimPrefix(order, "/api/orders/") + `'`)
		listed := alone(t, env, "stuck", "--json").stdout
		refused(t, alone(t, env, naming("resolve", "--outcome", "charged", "--charge-id", "ch_seen", "--note", "n")...),
			"--outcome the order was CANCELLED by hand")
		assert.Equal(t, listed, alone(t, env, "stuck", "--json").stdout, "nothing has changed")
		assert.NotContains(t, r.operators("/api/audit"), `"resolved"`)

		got := alone(t, env, naming("resolve", "--outcome", "not_charged", "--note", "n")...)
		require.Equal(t, 0, got.code, got.stderr)
		assert.Contains(t, got.stdout, `"code":"invalid_state"`)
		assert.Contains(t, r.get(order).body, `"status":"CANCELLED"`)
		replay := r.post(order+"/confirm-payment", "pay-1", paidBy("pm_down"))
		assert.Equal(t, http.StatusConflict, replay.status)
		assert.True(t, replay.replayed)
		assert.JSONEq(t, `{"records":[]}`, alone(t, env, "stuck", "--json").stdout)
		r.stop()
	})
}

func TestAPaymentWhoseOrderAHandHasMadePlacedIsNotChargedAgain(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, by func(string)) {
		env, r, order := leaving(t, url, "pm_lost_answer")
		by(`UPDATE orders SET status = 'PLACED', paying_key = NULL WHERE id = '` + strings.TrimPrefix(order, "/api/orders/") + `'`)
		for range 2 {
			again := r.post(order+"/confirm-payment", "pay-1", paidBy("pm_lost_answer"))
			assert.Equal(t, http.StatusServiceUnavailable, again.status)
			assert.Contains(t, again.body, `"code":"outcome_unknown"`)
		}
		assert.Contains(t, r.get(order).body, `"status":"PLACED"`)
		refused(t, alone(t, env, naming("resolve", "--outcome", "not_charged", "--note", "n")...), "charge_found")
		got := alone(t, env, naming("resolve", "--outcome", "charged", "--charge-id", "ch_seen", "--note", "n")...)
		require.Equal(t, 0, got.code, got.stderr)
		assert.Contains(t, r.get(order).body, `"status":"PAID"`)
		r.stop()
	})
}

func TestACommandsWordAboutAnotherOrdersChargeIsRefusedByName(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		env, r, first := leaving(t, url, "pm_down")
		second := r.unanswered("2", "pm_down")
		require.Equal(t, 0, alone(t, env, naming("resolve", "--outcome", "charged", "--charge-id", "ch_1", "--note", "n")...).code)
		said := func(chargeID string) called {
			return alone(t, env, "resolve", "--operation", "ConfirmPayment", "--actor", "alice", "--key", "pay-2",
				"--outcome", "charged", "--charge-id", chargeID, "--note", "n")
		}
		refused(t, said("ch_1"), "--charge-id another order is paid by this charge")
		assert.Contains(t, r.get(second).body, `"status":"PAYMENT_PENDING"`)
		assert.Equal(t, 0, said("ch_2").code)
		for _, order := range []string{first, second} {
			assert.Contains(t, r.get(order).body, `"status":"PAID"`)
		}
		r.stop()
	})
}

// The provider is the one of the settings: the same variables as the service's.
func TestResolveAsksTheConfiguredProvider(t *testing.T) {
	provider := simulating(t, nil, "--book", "memory:")
	env := map[string]string{
		"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_RECOVERY_INTERVAL": "0", "KAKUTEI_GATEWAY": provider.base + "/",
	}
	r := serving(t, env)
	r.unanswered("2", "pm_down")
	r.unanswered("1", "pm_down")
	r.stop()
	delete(env, "KAKUTEI_GATEWAY")
	got := alone(t, env, "resolve", "--operation", "ConfirmPayment", "--actor", "alice", "--key", "pay-2",
		"--outcome", "not_charged", "--note", "n", "--gateway", provider.base)
	assert.Equal(t, 0, got.code, got.stderr)
	provider.stop()
	env["KAKUTEI_GATEWAY"] = provider.base
	refused(t, alone(t, env, naming("resolve", "--outcome", "not_charged", "--note", "n")...), "unavailable")
}

// In a shell without the service's KAKUTEI_GATEWAY the simulator would be asked, whose empty book says that nothing was
// charged. What an attempt was asked of is in the store, and nobody else is believed about it.
func TestAProviderThatAnAttemptWasNotAskedOfIsNotBelievedAboutIt(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		provider := simulating(t, nil, "--book", "memory:")
		right := map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "0", "KAKUTEI_GATEWAY": provider.base}
		wrong := map[string]string{"KAKUTEI_DATABASE_URL": url}
		r := serving(t, right)
		order := r.unanswered("1", "pm_lost_answer") // the money is taken
		r.stop()

		refused(t, alone(t, wrong, naming("resolve", "--outcome", "not_charged", "--note", "n")...),
			"unavailable: .* was asked of gateway, this is simulator")
		wrong["KAKUTEI_SIMULATOR_BOOK"] = "memory:"
		refused(t, alone(t, wrong, naming("resolve", "--outcome", "not_charged", "--note", "n")...), "KAKUTEI_SIMULATOR_BOOK")
		delete(wrong, "KAKUTEI_SIMULATOR_BOOK")
		refused(t, alone(t, right, naming("resolve", "--outcome", "not_charged", "--note", "n")...), "charge_found")

		wrong["KAKUTEI_RECOVERY_INTERVAL"] = "20ms" // a service that was started so charges nobody anew
		strange := serving(t, wrong)
		strange.stderr.await(t, `not recovered yet.*is another provider's.*was asked of gateway`)
		again := strange.post(order+"/confirm-payment", "pay-1", paidBy("pm_lost_answer"))
		assert.Equal(t, http.StatusServiceUnavailable, again.status, again.body)
		assert.Contains(t, strange.get(order).body, `"status":"PAYMENT_PENDING"`)
		strange.stop()

		r = serving(t, right)
		assert.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-1", paidBy("pm_lost_answer")).status)
		r.stop()
		clean := alone(t, right, "reconcile")
		assert.Equal(t, 0, clean.code, clean.stdout+clean.stderr)
		assert.Contains(t, clean.stderr, "compared 1 charges and 1 payments")
		compared := alone(t, wrong, "reconcile")
		assert.Equal(t, 1, compared.code, "it is neither a clean bill nor a finding")
		assert.Empty(t, compared.stdout)
		assert.Regexp(t, `not everything could be compared: 1 payments were asked of gateway`+
			`, and KAKUTEI_GATEWAY is simulator\n\z`, compared.stderr)
	})
}

func TestNeitherReleaseNorResolveTouchesARecordWhoseHolderIsAlive(t *testing.T) {
	provider := heldProvider(t)
	env := map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_GATEWAY": provider.url}
	r := serving(t, env)
	order := r.placed("place-1")
	paid := make(chan answered, 1)
	go func() {
		defer close(paid)
		if a, err := r.send(http.MethodPost, order+"/confirm-payment", "pay-1", thousand); err == nil {
			paid <- a
		}
	}()
	<-provider.asked
	assert.JSONEq(t, `{"records":[]}`, alone(t, env, "stuck", "--json").stdout)
	refused(t, alone(t, env, naming("release")...), "lease_alive")
	refused(t, alone(t, env, naming("resolve", "--outcome", "charged", "--charge-id", "c", "--note", "n")...), "lease_alive")
	provider.release()
	assert.Equal(t, http.StatusOK, (<-paid).status)
	r.stop()
}

func TestAMissingOrBadOptionIsNamed(t *testing.T) {
	env := map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t)}
	without := func(option string, args []string) []string {
		var rest []string
		for i := 0; i < len(args); i++ {
			if args[i] == option {
				i++
				continue
			}
			rest = append(rest, args[i])
		}
		return rest
	}
	more := func(args []string, options ...string) []string { return append(slices.Clone(args), options...) }
	release := naming("release")
	yes := naming("resolve", "--outcome", "charged", "--charge-id", "ch_1", "--note", "n")
	no := naming("resolve", "--outcome", "not_charged", "--note", "n")
	for _, c := range []struct {
		args   []string
		option string
	}{
		{without("--operation", release), "--operation is required"},
		{without("--actor", release), "--actor is required"},
		{without("--key", release), "--key is required"},
		{[]string{"release"}, "--operation is required"},
		{without("--operation", yes), "--operation is required"},
		{without("--actor", yes), "--actor is required"},
		{without("--key", yes), "--key is required"},
		{without("--outcome", no), "--outcome must be charged or not_charged"},
		{more(without("--outcome", no), "--outcome", "paid"), "--outcome must be charged or not_charged"},
		{without("--charge-id", yes), "--charge-id is required with charged"},
		{more(no, "--charge-id", "ch_1"), "--charge-id is not for not_charged"},
		{without("--note", yes), "--note is required"},
		{without("--note", no), "--note is required"},
		{more(release, "--outcome", "charged"), "unknown flag --outcome"},
		{more(release, "--key"), "--key"},
		{more(no, "--lease", "5s"), "KAKUTEI_LEASE .+ KAKUTEI_GATEWAY_TIMEOUT"},
		{release, "not_found"},
		{yes, "not_found"},
		{no, "not_found"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { refused(t, alone(t, env, c.args...), c.option) })
	}
}

func TestNoneOfTheOperatorsCommandsWorksOnAStoreInMemory(t *testing.T) {
	for _, args := range [][]string{
		{"stuck"}, {"stuck", "--json"}, naming("release"), naming("resolve", "--outcome", "not_charged", "--note", "n"),
	} {
		refused(t, alone(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"}, args...), "KAKUTEI_DATABASE_URL: .*memory:")
	}
}

func TestHelpHasALineForEachOfTheOperatorsCommands(t *testing.T) {
	lines := strings.Split(call(t, nil, "help").stdout, "\n")
	for _, name := range []string{"stuck", "release", "resolve"} {
		assert.True(t, anyLine(lines, func(words []string) bool { return words[0] == name && len(words) > 3 }), name)
	}
	for _, option := range []string{"--operation", "--actor", "--key", "--by", "--outcome", "--charge-id", "--note"} {
		assert.Contains(t, call(t, nil, "help").stdout, option)
	}
}
