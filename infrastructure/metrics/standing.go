package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kakutei/infrastructure/gormstore"
)

// Standing is what is asked when somebody scrapes: how things stand, not what has happened.
type Standing struct {
	// Backlog is how many records are unresolved, and how old the oldest one is. It has backlogPatience.
	Backlog func(ctx context.Context) (records int, oldest time.Duration, err error)
	// Connections are the store's; nil if it has none.
	Connections func() gormstore.Connections
	// Audit is how many entries of the audit log wait to be written, and how many were lost.
	Audit func() (waiting, lost int)
}

const (
	// backlogPatience is what the store has to say what is unresolved: a scrape must end, above all when things are bad.
	backlogPatience = 2 * time.Second
	// backlogFor is how long its answer is good enough: whoever scrapes in a loop costs the store nothing.
	backlogFor = time.Second
)

// Watch has a scrape show how things stand.
func (m *Metrics) Watch(s Standing) {
	gauge := func(name, help string, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read))
	}
	counter := func(name, help string, read func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, read))
	}
	gauge("audit_entries_waiting", "Audit entries that wait to be written.", func() float64 {
		waiting, _ := s.Audit()
		return float64(waiting)
	})
	counter("audit_entries_lost_total", "Audit entries that were lost because too many were waiting.", func() float64 {
		_, lost := s.Audit()
		return float64(lost)
	})
	m.registry.MustRegister(&backlog{ask: s.Backlog})
	if s.Connections == nil {
		return
	}
	gauge("store_connections_max", "Connections to the store at most, a writer's among them.", func() float64 {
		return float64(s.Connections().Max)
	})
	gauge("store_connections_in_use", "Connections to the store on which a transaction is open, or one for several.", func() float64 {
		return float64(s.Connections().InUse)
	})
	counter("store_acquires_total", "How often a connection was taken, and its turn: for one transaction or for several that go together.", func() float64 {
		return float64(s.Connections().Acquired)
	})
	counter("store_acquires_refused_total", "Transactions that got none in time, nor a share in one.", func() float64 {
		return float64(s.Connections().Refused)
	})
	counter("store_acquire_seconds_total", "How long transactions waited for a connection or a share in one, in all.", func() float64 {
		return s.Connections().Waited.Seconds()
	})
}

var (
	storeUp = prometheus.NewDesc(namespace+"_store_up",
		"1 if the store has told in time what is unresolved, else 0.", nil, nil)
	unresolvedRecords = prometheus.NewDesc(namespace+"_unresolved_records",
		"Records that nobody works on and whose outcome nobody knows, 500 at most.", nil, nil)
	oldestUnresolved = prometheus.NewDesc(namespace+"_unresolved_oldest_age_seconds",
		"How long ago the oldest unresolved record was made; 0 if there is none.", nil, nil)
)

// backlog asks what is unresolved. When the store does not answer, the two numbers are left out: nobody knows them.
type backlog struct {
	ask func(ctx context.Context) (int, time.Duration, error)

	mu      sync.Mutex
	asked   time.Time
	records int
	oldest  time.Duration
	err     error
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(into chan<- *prometheus.Desc) {
	into <- storeUp
	into <- unresolvedRecords
	into <- oldestUnresolved
}

// Collect implements prometheus.Collector.
func (b *backlog) Collect(into chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.asked) >= backlogFor {
		ctx, cancel := context.WithTimeout(context.Background(), backlogPatience)
		defer cancel()
		b.records, b.oldest, b.err = b.ask(ctx)
		b.asked = time.Now()
	}
	if b.err != nil {
		into <- prometheus.MustNewConstMetric(storeUp, prometheus.GaugeValue, 0)
		return
	}
	into <- prometheus.MustNewConstMetric(storeUp, prometheus.GaugeValue, 1)
	into <- prometheus.MustNewConstMetric(unresolvedRecords, prometheus.GaugeValue, float64(b.records))
	into <- prometheus.MustNewConstMetric(oldestUnresolved, prometheus.GaugeValue, b.oldest.Seconds())
}
