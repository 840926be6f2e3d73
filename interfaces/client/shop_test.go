package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/client"
	"kakutei/interfaces/httpapi"
)

// shop is the real service on a store in memory, its edge and its use cases, with a provider of the test's own.
type shop struct {
	handler  http.Handler
	provider *storetest.Provider
}

// quiet is an observer of the service who does not care.
type quiet struct{}

func (quiet) Observe(context.Context, port.Event) {}

func openShop() shop {
	work, provider, times := memory.New(time.Now), storetest.NewProvider(), storetest.Times
	return shop{provider: provider, handler: httpapi.New(httpapi.Config{
		Till: &checkout.Till{
			Executor: idempotent.New(work, httpapi.Documents{}, quiet{}, times),
			Work:     work, Gateway: provider, Observer: quiet{},
			KeyRetention: storetest.KeyRetention, Lease: times.Lease,
			Books: checkout.Books{Company: storetest.Company, Zone: storetest.Zone},
		},
		Ledger: &bookkeeping.Ledger{Work: work, Observer: quiet{}, Deadline: times.Deadline()},
		Desk:   &oversight.Desk{Work: work},
		Ready:  func(context.Context) error { return nil },
		Auth:   httpapi.DemoTokens{}, Deadline: times.Deadline(), Lease: times.Lease, Retention: times.Retention,
		Logger: slog.New(slog.DiscardHandler),
	})}
}

// tea is an order of 1000 yen.
var tea = client.NewOrder{
	Currency: "JPY", Lines: []client.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}},
}

func place(t *testing.T, c *client.Client) client.Order {
	t.Helper()
	placed, err := c.PlaceOrder(t.Context(), client.NewIntent(), tea)
	require.NoError(t, err)
	return placed
}

// wire is the connection to the service. What it loses has arrived: only the answer is gone.
type wire struct {
	next http.RoundTripper

	mu   sync.Mutex
	lose int // how many of the next answers are lost
}

var errLost = errors.New("the answer was lost")

func (w *wire) losing(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = n
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.lose == 0 {
		return answer, err
	}
	w.lose--
	_ = answer.Body.Close()
	return nil, errLost
}

// onWire is a client of a shop, and the wire between them.
func onWire(t *testing.T, s shop, options ...client.Option) (*client.Client, *wire) {
	t.Helper()
	p := newPipes()
	serve(t, &http.Server{Handler: s.handler}, p)
	transport := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	w := &wire{next: transport}
	options = append([]client.Option{
		client.WithToken("demo-alice"), client.WithHTTPClient(&http.Client{Transport: w}),
	}, options...)
	return newClient(t, "http://localhost", options...), w
}
