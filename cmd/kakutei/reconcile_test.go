package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/oversight"
	"kakutei/infrastructure/gormstore/pgtest"
	"kakutei/infrastructure/memory"
)

// onEachFileOrServer runs the test on every store that another process can open; by is a way to its rows that the service
// knows nothing of.
func onEachFileOrServer(t *testing.T, test func(t *testing.T, url string, by func(statement string))) {
	for name, open := range map[string]func(t *testing.T) (url, driver, source string){
		"SQLite": func(t *testing.T) (string, string, string) {
			url := sqliteFile(t)
			return url, "sqlite", strings.TrimPrefix(url, "sqlite:") + "?_pragma=busy_timeout(5000)"
		},
		"PostgreSQL": func(t *testing.T) (string, string, string) {
			url := pgtest.Empty(t)
			return url, "pgx", url
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, driver, source := open(t)
			test(t, url, func(statement string) {
				t.Helper()
				db, err := sql.Open(driver, source)
				require.NoError(t, err)
				defer func() { assert.NoError(t, db.Close()) }()
				_, err = db.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			})
		})
	}
}

// paying is a paid order's id.
func (r *running) paying(key, method string) string {
	r.t.Helper()
	path := r.placed("place-" + key)
	r.post(path+"/confirm-payment", "pay-"+key, strings.Replace(thousand, "}", `,"paymentMethod":"`+method+`"}`, 1))
	return strings.TrimPrefix(path, "/api/orders/")
}

// kinds are the first words of the lines that name the order, and nothing else may be there.
func kinds(t *testing.T, stdout, orderID string) (kinds []string) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		require.Contains(t, line, orderID)
		kinds = append(kinds, strings.Fields(line)[0])
	}
	return kinds
}

func TestEachKindOfFindingThatIsPlantedIsFoundAndNothingElseIs(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, by func(string)) {
		env := map[string]string{"KAKUTEI_DATABASE_URL": url}
		r := serving(t, env)
		orders := map[string]string{}
		for kind := range planting {
			orders[kind] = r.paying(kind, "pm_ok")
		}
		r.paying("declined", "pm_declined")
		r.placed("never-paid")
		r.stop()
		clean := alone(t, env, "reconcile")
		require.Equal(t, 0, clean.code, clean.stdout+clean.stderr)
		assert.Empty(t, clean.stdout)
		assert.Regexp(t, `compared 5 charges and 5 payments since .*: 0 findings, 0 unresolved\n\z`, clean.stderr)

		for kind, statements := range planting {
			spoil, repair, _ := strings.Cut(strings.ReplaceAll(statements, "@order", "'"+orders[kind]+"'"), "; ")
			by(spoil)
			got := alone(t, env, "reconcile")
			assert.Equal(t, 2, got.code, kind)
			assert.Equal(t, []string{kind}, kinds(t, got.stdout, orders[kind]), kind)
			by(repair)
		}
		assert.Equal(t, 0, alone(t, env, "reconcile").code, "the shop is as it was")
	})
}

// planting is how an order is spoilt by hand and, behind the semicolon, repaired.
var planting = map[string]string{
	"charged_not_paid": `UPDATE orders SET status = 'CANCELLED' WHERE id = @order; ` +
		`UPDATE orders SET status = 'PAID' WHERE id = @order`,
	"paid_not_charged": `UPDATE simulator_charges SET order_id = 'gone', status = 'failed', charge_id = NULL WHERE order_id = @order; ` +
		`UPDATE simulator_charges SET order_id = @order, status = 'approved', ` +
		`charge_id = (SELECT charge_id FROM orders WHERE id = @order) WHERE order_id = 'gone'`,
	"charged_twice": `INSERT INTO simulator_charges
		(gateway_key, order_id, attempt, amount, currency, method, status, charge_id, booked_at)
		SELECT 'by hand', order_id, 2, amount, currency, method, status, 'ch_hand', booked_at
		FROM simulator_charges WHERE order_id = @order; DELETE FROM simulator_charges WHERE gateway_key = 'by hand'`,
	"money_differs": `UPDATE simulator_charges SET amount = 999 WHERE order_id = @order; ` +
		`UPDATE simulator_charges SET amount = 1000 WHERE order_id = @order`,
	"paid_not_booked": `UPDATE journal_entries SET posted_by = posting_key, posting_key = '` + strings.Repeat("0", 64) +
		`' WHERE source_document_id = @order; ` +
		`UPDATE journal_entries SET posting_key = posted_by WHERE source_document_id = @order`,
}

// The same by the list that a provider shows over HTTP: each kind is planted beside those before it, and nothing else
// is found.
func TestEachKindOfFindingIsFoundOverHTTPToo(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, by func(string)) {
		file := book(t)
		provider := simulating(t, nil, "--book", file)
		env := map[string]string{
			"KAKUTEI_DATABASE_URL": url, "KAKUTEI_GATEWAY": provider.base, "KAKUTEI_RECOVERY_INTERVAL": "0",
		}
		inBook := func(statement string) {
			t.Helper()
			db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
			require.NoError(t, err)
			defer func() { assert.NoError(t, db.Close()) }()
			_, err = db.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		r := serving(t, env)
		planted := map[string]func(id string){
			"charged_not_paid": func(id string) { by(`UPDATE orders SET status = 'CANCELLED' WHERE id = ` + id) },
			"paid_not_charged": func(id string) {
				inBook(`UPDATE simulator_charges SET status = 'failed', charge_id = NULL WHERE order_id = ` + id)
			},
			"charged_twice": func(id string) {
				inBook(`INSERT INTO simulator_charges
					(gateway_key, order_id, attempt, amount, currency, method, status, charge_id, booked_at)
					SELECT order_id || ':2', order_id, 2, amount, currency, method, status, 'ch_hand', booked_at
					FROM simulator_charges WHERE order_id = ` + id)
			},
			"money_differs": func(id string) { inBook(`UPDATE simulator_charges SET amount = 999 WHERE order_id = ` + id) },
			"paid_not_booked": func(id string) {
				by(`UPDATE journal_entries SET posting_key = '` + strings.Repeat("0", 64) + `' WHERE source_document_id = ` + id)
			},
			"charged_not_paid-without-a-record": func(string) {
				by(`DELETE FROM idempotency_records WHERE idempotency_key = 'pay-charged_not_paid-without-a-record'`)
			},
		}
		orders := map[string]string{}
		for kind := range planted {
			method := "pm_ok"
			if strings.HasSuffix(kind, "record") {
				method = "pm_lost_answer"
			}
			orders[kind] = r.paying(kind, method)
		}
		r.paying("in-order", "pm_ok")
		r.stop()
		require.Equal(t, 0, alone(t, env, "reconcile").code)
		var want []string
		for kind, plant := range planted {
			plant(`'` + orders[kind] + `'`)
			want = append(want, strings.Split(kind, "-")[0]+" "+orders[kind])
			got := alone(t, env, "reconcile", "--json")
			assert.Equal(t, 2, got.code, kind)
			var said struct{ Findings []oversight.Finding }
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &said), got.stdout)
			assert.ElementsMatch(t, want, told(said.Findings), kind)
		}
	})
}

func TestAChargeWhoseAnswerWasLostIsListedApartAndIsNoFinding(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		env := map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "0"}
		r := serving(t, env)
		lost := r.paying("lost", "pm_lost_answer")
		r.stop()
		got := alone(t, env, "reconcile")
		assert.Equal(t, 0, got.code)
		assert.Equal(t, []string{"unresolved"}, kinds(t, got.stdout, lost))
		assert.Contains(t, got.stderr, "0 findings, 1 unresolved")
	})
}

func TestTheComparisonAsksTheProviderOverHTTP(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, _ func(string)) {
		provider := simulating(t, map[string]string{"KAKUTEI_GATEWAY_TOKEN": "s3cret"}, "--book", book(t))
		env := map[string]string{
			"KAKUTEI_DATABASE_URL": url, "KAKUTEI_GATEWAY": provider.base, "KAKUTEI_GATEWAY_TOKEN": "s3cret",
			"KAKUTEI_RECOVERY_INTERVAL": "0", "KAKUTEI_COMPANY_ID": "tea-house", "KAKUTEI_TIME_ZONE": "America/New_York",
		}
		r := serving(t, env)
		paid, lost := r.paying("paid", "pm_ok"), r.paying("lost", "pm_lost_answer")
		r.paying("unavailable", "pm_unavailable")
		r.stop()
		assert.Equal(t, 0, alone(t, env, "reconcile").code)

		require.Equal(t, http.StatusCreated,
			mustCharge(t, provider.base, paid+":2", "pm_ok", "Authorization", "Bearer s3cret").status)
		got := alone(t, env, "reconcile", "--json", "--since", "1h")
		assert.Equal(t, 2, got.code, got.stderr)
		var said struct{ Findings, Unresolved []oversight.Finding }
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &said), got.stdout)
		require.Len(t, said.Findings, 1)
		assert.Equal(t, oversight.ChargedTwice, said.Findings[0].Kind)
		assert.Equal(t, paid, said.Findings[0].OrderID)
		require.Len(t, said.Unresolved, 1)
		assert.Equal(t, lost, said.Unresolved[0].OrderID)

		env["KAKUTEI_COMPANY_ID"] = "another"
		assert.Contains(t, alone(t, env, "reconcile").stdout, "paid_not_booked order "+paid)

		provider.stop()
		away := alone(t, env, "reconcile")
		assert.Equal(t, 1, away.code)
		assert.Regexp(t, `\Akakutei: gateway: no list of charges: .+\n\z`, away.stderr)
		assert.NotContains(t, away.stderr, "s3cret")
	})
}

func TestNoFindingsInJSONAreADocumentToo(t *testing.T) {
	got := alone(t, map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t)}, "reconcile", "--json")
	require.Equal(t, 0, got.code, got.stderr)
	assert.JSONEq(t, `{"findings":[],"unresolved":[]}`, got.stdout)
}

// A row that a hand has spoilt keeps no other from being compared, on whichever side it stands; and what is printed is a
// document, whatever it says.
func TestARowThatCannotBeReadIsNamedAndTheOthersAreCompared(t *testing.T) {
	onEachFileOrServer(t, func(t *testing.T, url string, by func(string)) {
		env := map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "0"}
		r := serving(t, env)
		orders := map[string]string{}
		for _, name := range []string{"order", "lines", "entry", "charge", "found"} {
			orders[name] = r.paying(name, "pm_ok")
		}
		orders["lost"] = r.paying("lost", "pm_lost_answer")
		r.stop()
		if strings.HasPrefix(url, "sqlite:") { // what keeps a hand from spoiling a row may not have been there yet
			for _, trigger := range []string{"orders_readable_update", "orders_readable_lines", "journal_entries_readable_update"} {
				by("DROP TRIGGER " + trigger)
			}
		}
		for name, statement := range map[string]string{
			"order":  `UPDATE orders SET currency = 'ZZZ' WHERE id = `,
			"lines":  `UPDATE orders SET lines = '[7]' WHERE id = `,
			"entry":  `UPDATE journal_entries SET currency = 'ZZZ' WHERE source_document_id = `,
			"charge": `UPDATE simulator_charges SET currency = 'ZZZ' WHERE order_id = `,
			"found":  `UPDATE simulator_charges SET amount = 999 WHERE order_id = `,
		} {
			by(statement + `'` + orders[name] + `'`)
		}
		got := alone(t, env, "reconcile", "--json")
		assert.Equal(t, 1, got.code, "not everything could be compared")
		var said struct {
			Findings, Unresolved, Unreadable []oversight.Finding
			Error                            string
		}
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &said), got.stdout)
		assert.Equal(t, []string{"money_differs " + orders["found"]}, told(said.Findings))
		assert.Equal(t, []string{"unresolved " + orders["lost"]}, told(said.Unresolved))
		assert.ElementsMatch(t, []string{ // the charge's line, and the payment that it cannot be compared with
			"unreadable " + orders["order"], "unreadable " + orders["lines"], "unreadable " + orders["entry"],
			"unreadable " + orders["charge"], "unreadable " + orders["charge"],
		}, told(said.Unreadable))
		assert.Equal(t, "not everything could be compared: 5 rows cannot be read", said.Error)
		assert.Contains(t, got.stderr, "1 findings, 1 unresolved\nkakutei: "+said.Error+"\n")

		lines := alone(t, env, "reconcile")
		assert.Equal(t, 1, lines.code)
		assert.Equal(t, 7, strings.Count(lines.stdout, "\n"), lines.stdout)
		assert.Contains(t, lines.stdout, "unreadable order "+orders["lines"]+": gormstore: lines of order "+orders["lines"])
	})
}

func told(found []oversight.Finding) (list []string) {
	for _, f := range found {
		list = append(list, string(f.Kind)+" "+f.OrderID)
	}
	return list
}

// The provider goes away when it has told of the first page: what was found until then is told, in a whole document.
func TestAComparisonThatIsCutShortPrintsAWholeDocument(t *testing.T) {
	env := map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t)}
	calls := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls++; {
		case r.URL.Query().Has("orderId"):
			fmt.Fprint(w, `{"charges":[`+strayLine+`]}`)
		case calls == 1:
			fmt.Fprint(w, `{"charges":[`+strayLine+`],"next":"more"}`)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(provider.Close)
	env["KAKUTEI_GATEWAY"] = provider.URL
	got := alone(t, env, "reconcile", "--json")
	assert.Equal(t, 1, got.code)
	var said struct {
		Findings []oversight.Finding
		Error    string
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &said), got.stdout)
	assert.Equal(t, []string{"charged_not_paid o1"}, told(said.Findings))
	assert.Contains(t, said.Error, "status 502")
	assert.Equal(t, "kakutei: "+said.Error+"\n", got.stderr)
}

const strayLine = `{"chargeId":"ch_1","orderId":"o1","attempt":1,"gatewayKey":"o1:1","amount":1000,"currency":"JPY",` +
	`"status":"approved","chargedAt":"2036-11-30T01:02:03Z"}`

func TestNothingIsComparedThatIsForgottenAtExit(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"KAKUTEI_DATABASE_URL":   {"KAKUTEI_DATABASE_URL": "memory:"},
		"KAKUTEI_SIMULATOR_BOOK": {"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_SIMULATOR_BOOK": "memory:"},
	} {
		got := alone(t, env, "reconcile")
		assert.Equal(t, 1, got.code, name)
		assert.Regexp(t, `\Akakutei: `+name+`: .+\n\z`, got.stderr)
		assert.Empty(t, got.stdout, name)
	}
	for _, since := range []string{"0", "-1h", "yesterday", "24"} {
		got := alone(t, map[string]string{"KAKUTEI_DATABASE_URL": sqliteFile(t)}, "reconcile", "--since="+since)
		assert.Equal(t, 1, got.code, since)
		assert.Regexp(t, `\Akakutei: --since: .+\n\z`, got.stderr, since)
	}
}

func TestTheServiceComparesFromTimeToTime(t *testing.T) {
	t.Run("and logs how much there was", func(t *testing.T) {
		onEachStore(t, func(t *testing.T, url string) {
			r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECONCILE_INTERVAL": "20ms"})
			r.paying("1", "pm_ok")
			r.stderr.await(t, `"level":"INFO","msg":"compared with the provider","charges":1,"payments":1,"unresolved":0,`+
				`"charged_not_paid":0,"paid_not_charged":0,"charged_twice":0,"money_differs":0,"paid_not_booked":0`)
			r.stop()
		})
	})
	t.Run("and logs what it finds", func(t *testing.T) {
		provider := simulating(t, nil, "--book", "memory:")
		r := serving(t, map[string]string{
			"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_GATEWAY": provider.base, "KAKUTEI_RECONCILE_INTERVAL": "20ms",
		})
		id := r.paying("1", "pm_ok")
		require.Equal(t, http.StatusCreated, mustCharge(t, provider.base, id+":2", "pm_ok").status)
		r.stderr.await(t, `"level":"ERROR","msg":"finding","kind":"charged_twice","order":"`+regexp.QuoteMeta(id))
		r.stderr.await(t, `"level":"ERROR","msg":"compared with the provider".*"charged_twice":1`)
		provider.stop()
		r.stderr.await(t, `"level":"WARN","msg":"comparing with the provider failed"`)
		assert.Equal(t, http.StatusOK, r.get("/readyz").status, "it is no matter of the service's health")
		r.stop()
	})
	t.Run("unless it is off", func(t *testing.T) {
		comparing{}.run(t.Context()) // it returns, and has nothing to compare
	})
	t.Run("and outlives a panic", func(t *testing.T) {
		log := newOutput()
		comparing{
			reconciliation: oversight.Reconciliation{Work: memory.New(time.Now)}, // no provider
			log:            slog.New(slog.NewJSONHandler(io.MultiWriter(log), nil)), told: unseen().metrics.Compared,
		}.round(context.Background())
		assert.Contains(t, log.String(), "panic")
	})
}
