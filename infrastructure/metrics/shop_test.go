package metrics_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/metrics"
	"kakutei/infrastructure/storetest"
)

// shop is a measured shop on a store in memory.
type shop struct {
	storetest.Shop
	t       *testing.T
	metrics *metrics.Metrics
	clock   *storetest.Clock
	work    port.UnitOfWork
	ledger  *bookkeeping.Ledger
}

func open(t *testing.T) shop {
	t.Helper()
	clock := storetest.NewClock()
	return instance(t, clock, memory.New(clock.Now), storetest.NewProvider())
}

// beside is another instance on the same store, with metrics of its own.
func (s shop) beside() shop { return instance(s.t, s.clock, s.work, s.Provider) }

func instance(t *testing.T, clock *storetest.Clock, work port.UnitOfWork, provider *storetest.Provider) shop {
	t.Helper()
	s := shop{t: t, metrics: metrics.New("v1", "abc"), clock: clock, work: work}
	s.Shop = storetest.OpenShop(work, provider)
	measured := s.metrics.Work(s.Store)
	observers := port.Observers{s.Seen, s.metrics}
	s.Work, s.Observer = measured, observers
	s.Gateway = s.metrics.Provider(struct {
		payment.Gateway
		payment.Statement
	}{Gateway: provider})
	s.Executor = idempotent.New(measured, storetest.Documents{}, observers, storetest.Times)
	s.ledger = &bookkeeping.Ledger{Work: measured, Observer: observers, Deadline: storetest.Times.Deadline()}
	return s
}

func (s shop) place() order.ID {
	s.t.Helper()
	id, err := s.Place(s.t.Context())
	require.NoError(s.t, err)
	return id
}

func (s shop) confirm(id order.ID, key string) error {
	_, err := s.ConfirmPayment(s.t.Context(), storetest.Payment(id, key))
	return err
}

// held begins a confirmation and returns while the provider is asked; the result comes when the call is let go.
func (s shop) held(id order.ID, key string) (*storetest.Held, <-chan error) {
	s.t.Helper()
	held, call := storetest.Holding(storetest.Approving)
	s.Provider.Next(call)
	ended := make(chan error, 1)
	go func() { ended <- s.confirm(id, key) }()
	<-held.Reached
	return held, ended
}

// record is what stands of a payment.
func (s shop) record(id order.ID, key string) (stands idempotency.Record) {
	s.t.Helper()
	stands, err := storetest.RecordIn(s.t.Context(), s.work, storetest.ScopeOf(storetest.Payment(id, key)))
	require.NoError(s.t, err)
	return stands
}

// scraped are all series with their values.
func scraped(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	series := map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err, line)
		series[line[:at]] = value
	}
	return series
}

// counted are a metric's series that are not 0, by their labels as they are written.
func counted(t *testing.T, m *metrics.Metrics, name string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for series, value := range scraped(t, m) {
		if rest, isIt := strings.CutPrefix(series, name+"{"); isIt && value != 0 {
			found[strings.TrimSuffix(rest, "}")] = value
		}
	}
	return found
}

// outcomes are what was counted of the requests of one operation.
func (s shop) outcomes(o idempotency.Operation) map[string]float64 {
	s.t.Helper()
	found := map[string]float64{}
	for labels, value := range counted(s.t, s.metrics, "kakutei_outcomes_total") {
		if labels, isIts := strings.CutPrefix(labels, `operation="`+string(o)+`",outcome="`); isIts {
			found[strings.TrimSuffix(labels, `"`)] = value
		}
	}
	return maps.Clone(found)
}

func fewer(id order.ID, key string) checkout.ConfirmPayment {
	c := storetest.Payment(id, key)
	c.Money = money.Of(1, money.JPY)
	return c
}
