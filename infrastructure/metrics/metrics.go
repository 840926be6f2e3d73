// Package metrics counts and measures for operators what the service does. It hangs on the ports as an observer and by
// wrapping them: no inner layer knows of it. Whatever a label can say is fixed beforehand, so that no caller can make
// new series; docs/operations/metrics.md has them all.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "kakutei"

// Metrics are one instance's.
type Metrics struct {
	registry *prometheus.Registry

	outcomes  *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	conflicts prometheus.Counter
	steps     *prometheus.HistogramVec
	calls     *prometheus.HistogramVec

	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	problems  *prometheus.CounterVec

	recoveryRounds *prometheus.CounterVec
	recoveryTries  *prometheus.CounterVec
	sweeps         *prometheus.CounterVec
	swept          *prometheus.CounterVec

	comparisons *prometheus.CounterVec
	findings    *prometheus.GaugeVec
	uncompared  *prometheus.GaugeVec
	compared    prometheus.Gauge
}

// quick are the buckets of what takes a moment as a rule, in seconds: a commit, a request, a provider that is slow.
var quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25}

// New makes the metrics of a build of the program.
func New(version, commit string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		outcomes: counters("outcomes_total",
			"What requests under a key came to, by operation.", "operation", "outcome"),
		refusals: counters("refusals_total",
			"Refusals that went on record, by the problem's code.", "operation", "code"),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "posting_key_conflicts_total",
			Help: "Postings, of clients and of payments, that met an entry with other content under their posting key.",
		}),
		steps: histograms("step_duration_seconds",
			"How long the transactions of an operation took, waiting and repeats included.", "operation", "step", "result"),
		calls: histograms("gateway_call_duration_seconds",
			"How long the payment provider took to answer, or not to.", "call", "result"),
		requests: counters("http_requests_total",
			"HTTP requests that were answered, by status class.", "method", "route", "class"),
		durations: histograms("http_request_duration_seconds",
			"How long HTTP requests took.", "route"),
		problems: counters("http_problems_total",
			"Problem documents that were no recorded refusal, by code.", "code"),
		recoveryRounds: counters("recovery_rounds_total",
			"Rounds of the recovery.", "result"),
		recoveryTries: counters("recovery_tries_total",
			"Records in progress that the recovery has tried.", "result"),
		sweeps: counters("sweeps_total",
			"Rounds of the sweeper.", "result"),
		swept: counters("swept_rows_total",
			"Rows that the sweeper has deleted.", "kind"),
		comparisons: counters("reconciliation_runs_total",
			"Comparisons with the provider by this instance.", "result"),
		findings: gauges("reconciliation_findings",
			"Findings of the last comparison with the provider.", "kind"),
		uncompared: gauges("reconciliation_uncompared",
			"What the last comparison with the provider could not compare.", "kind"),
		compared: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "reconciliation_last_run_timestamp_seconds",
			Help: "When the last comparison with the provider came to its end; 0 before the first one.",
		}),
	}
	build := gauges("build_info", "Which program this is; always 1.", "version", "commit")
	build.WithLabelValues(version, commit).Set(1)
	m.registry.MustRegister(build, m.outcomes, m.refusals, m.conflicts, m.steps, m.calls, m.requests, m.durations,
		m.problems, m.recoveryRounds, m.recoveryTries, m.sweeps, m.swept, m.comparisons, m.findings, m.uncompared, m.compared,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.begin()
	return m
}

// begin has every series that can be expected begin at 0: what appears with its first event has no rate.
func (m *Metrics) begin() {
	for operation := range operations {
		for _, outcome := range outcomes {
			m.outcomes.WithLabelValues(string(operation), outcome)
		}
	}
	for vector, words := range map[*prometheus.CounterVec][]string{
		m.recoveryRounds: {done, failed}, m.recoveryTries: {recovered, unresolved}, m.sweeps: {done, failed},
		m.swept: {"records", "audit_entries"}, m.comparisons: {whole, partial, failed},
	} {
		for _, word := range words {
			vector.WithLabelValues(word)
		}
	}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: quick}, labels)
}

// Handler answers a scrape, in the text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
