package main

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// operations is where the operators' documents are.
const operations = "../../docs/operations/"

// metric is a metric as the table documents it: its type, and its labels in the order of the alphabet.
type metric struct {
	kind, labels string
}

// tableOfMetrics reads docs/operations/metrics.md.
func tableOfMetrics(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(operations + "metrics.md")
	require.NoError(t, err)
	table := map[string]metric{}
	row := regexp.MustCompile("(?m)^\\| `(kakutei_[a-z_0-9]+)` \\| ([a-z]+) \\|(.*?)\\| \\S.* \\|$")
	for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
		labels := regexp.MustCompile("[a-z]+").FindAllString(cells[3], -1)
		slices.Sort(labels)
		table[cells[1]] = metric{cells[2], strings.Join(labels, ",")}
	}
	require.Greater(t, len(table), 20, "the table was found")
	return table
}

// scraped are the metrics of our own that a service tells, go_ and process_ left out.
func (r *running) scraped() map[string]metric {
	r.t.Helper()
	answer := r.get("/metrics")
	require.Equal(r.t, http.StatusOK, answer.status)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(answer.body))
	require.NoError(r.t, err)
	told := map[string]metric{}
	for name, family := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		told[name] = metric{strings.ToLower(family.GetType().String()), strings.Join(labels, ",")}
	}
	return told
}

// busy is a service that has met with something of each kind, so that it has something to tell of each.
func busy(t *testing.T, url string) *running {
	t.Helper()
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECONCILE_INTERVAL": "20ms"})
	order := r.placed("place-1")
	require.Equal(t, http.StatusPaymentRequired, r.post(order+"/confirm-payment", "pay-1", paidBy("pm_declined")).status)
	require.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-2", thousand).status)
	require.Equal(t, http.StatusOK, r.post(order+"/confirm-payment", "pay-2", thousand).status)
	require.Equal(t, http.StatusNotFound, r.get("/nowhere").status)
	r.stderr.await(t, `"msg":"compared with the provider"`)
	return r
}

func TestTheTableOfMetricsIsWhatIsScraped(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"SQLite":     sqliteFile,
		"PostgreSQL": func(t *testing.T) string { return pgtest.Empty(t) },
	} {
		t.Run(name, func(t *testing.T) {
			r := busy(t, url(t))
			require.Eventually(t, func() bool { // the round is counted before its line, its findings with it
				_, compared := r.scraped()["kakutei_reconciliation_findings"]
				return compared
			}, soon, time.Millisecond)
			assert.Equal(t, tableOfMetrics(t), r.scraped())
			r.stop()
		})
	}
	t.Run("memory, which has no connections", func(t *testing.T) {
		want := tableOfMetrics(t)
		maps.DeleteFunc(want, func(name string, _ metric) bool {
			return strings.HasPrefix(name, "kakutei_store_") && name != "kakutei_store_up"
		})
		r := busy(t, "memory:")
		require.Eventually(t, func() bool {
			_, compared := r.scraped()["kakutei_reconciliation_findings"]
			return compared
		}, soon, time.Millisecond)
		assert.Equal(t, want, r.scraped())
		r.stop()
	})
}

func TestMetricNamesFollowPrometheussConventions(t *testing.T) {
	for name, m := range tableOfMetrics(t) {
		assert.Equal(t, m.kind == "counter", strings.HasSuffix(name, "_total"), name)
		if m.kind == "histogram" {
			assert.True(t, strings.HasSuffix(name, "_seconds"), "%s: in base units", name)
		}
		assert.NotRegexp(t, `_(ms|millis|minutes|percent|ratio)`, name)
	}
}

func TestAScrapeNeedsNoTokenAndNamesNobody(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"})
	order := r.placed("place-1f0c")
	r.post(order+"/confirm-payment", "pay-1f0c", thousand)
	r.get("/api/idempotency-keys/pay-1f0c?operation=ConfirmPayment")
	r.get("/1f0c/" + order)
	req, err := http.NewRequestWithContext(t.Context(), "BREW-1F0C", r.base+"/api/orders", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	res.Body.Close()

	req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"/metrics", nil)
	require.NoError(t, err)
	res, err = http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Regexp(t, `^text/plain; version=0\.0\.4`, res.Header.Get("Content-Type"))
	assert.NotEmpty(t, res.Header.Get("X-Request-Id"))

	body := r.get("/metrics").body
	assert.Contains(t, body, `kakutei_http_requests_total{class="2xx",method="POST",route="/api/orders/:orderId/confirm-payment"} 1`)
	assert.Contains(t, body, `kakutei_http_requests_total{class="4xx",method="other",`)
	assert.Contains(t, body, `kakutei_http_requests_total{class="4xx",method="GET",route="none"} 1`)
	for _, name := range []string{"1f0c", "1F0C", "alice", strings.TrimPrefix(order, "/api/orders/")} {
		assert.NotContains(t, body, name)
	}
}

func TestWhatTheBackgroundDoesIsCounted(t *testing.T) {
	r := serving(t, map[string]string{
		"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_RECOVERY_INTERVAL": "20ms", "KAKUTEI_SWEEP_INTERVAL": "20ms",
		"KAKUTEI_RETENTION": "1ms",
	})
	order := r.unanswered("1", "pm_lost_answer")
	r.becomes(order, "PAID")
	r.shows(`kakutei_recovery_tries_total{result="recovered"} 1`)
	r.shows(`kakutei_outcomes_total{operation="ConfirmPayment",outcome="recovered"} 1`)
	r.shows(`kakutei_outcomes_total{operation="ConfirmPayment",outcome="unknown"} 1`)
	r.shows(`kakutei_swept_rows_total{kind="records"} 2`)
	r.shows(`kakutei_http_problems_total{code="outcome_unknown"} 1`)
	r.shows(`kakutei_store_up 1`)
	r.shows(`kakutei_unresolved_records 0`)
	r.stop()
}

// shows waits until a scrape has the line.
func (r *running) shows(line string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return slices.Contains(strings.Split(r.get("/metrics").body, "\n"), line) },
		soon, time.Millisecond, line)
}
