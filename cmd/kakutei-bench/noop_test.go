package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/oversight"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/client"
	"kakutei/interfaces/httpapi"
)

// behind is a client of a handler.
func behind(t *testing.T, h http.Handler) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithToken(token))
	require.NoError(t, err)
	return c
}

func shopInMemory() http.Handler {
	shop := storetest.OpenShop(memory.New(time.Now), storetest.NewProvider())
	return httpapi.New(httpapi.Config{
		Till: shop.Till, Ledger: &bookkeeping.Ledger{Work: shop.Store}, Desk: &oversight.Desk{Work: shop.Store},
		Ready: func(context.Context) error { return nil }, Auth: httpapi.DemoTokens{},
		Deadline: storetest.Times.Deadline(), Lease: storetest.Times.Lease, Retention: storetest.Times.Retention,
		Logger: slog.New(slog.DiscardHandler),
	})
}

// The no-op does for a request all that the edge does, and its answer looks like the service's.
func TestTheNoopIsTheServicesEdge(t *testing.T) {
	edge := noop(slog.New(slog.DiscardHandler)).Handler
	without, with := behind(t, edge), behind(t, shopInMemory())
	placed, err := with.PlaceOrder(t.Context(), client.NewIntent(), cart)
	require.NoError(t, err)
	real, err := with.ConfirmPayment(t.Context(), client.NewIntent(), placed.OrderID, money)
	require.NoError(t, err)
	constant, err := without.ConfirmPayment(t.Context(), client.NewIntent(), constantOrder, money)
	require.NoError(t, err)
	names := func(a client.Answer) []string { return slices.Sorted(maps.Keys(a.Header)) }
	assert.Equal(t, names(real.Answer), names(constant.Answer))
	assert.InDelta(t, len(real.Answer.Body), len(constant.Answer.Body), 6, "a time's last digits may be zero, and left out")
	counted := httptest.NewRecorder()
	edge.ServeHTTP(counted, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	assert.Regexp(t, `http_requests_total{class="2xx",method="POST",route="/api/orders/:orderId/confirm-payment"} 1\n`, counted.Body)

	for name, refused := range map[string]struct {
		as    *client.Client
		money client.Payment
		want  client.Code
	}{
		"authentication": {without.As("nobody"), money, client.CodeUnauthenticated},
		"the body":       {without, client.Payment{Currency: "JPY"}, client.CodeInvalidRequest},
	} {
		_, err := refused.as.ConfirmPayment(t.Context(), client.NewIntent(), constantOrder, refused.money)
		var no *client.Error
		require.ErrorAs(t, err, &no, name)
		assert.Equal(t, refused.want, no.Code, name)
	}
}

func TestAStockIsPlacedPaidAndReplayed(t *testing.T) {
	shop := behind(t, shopInMemory())
	var s stock
	for range 3 {
		require.NoError(t, s.place(t.Context(), shop))
	}
	r, err := load(2, time.Minute, func() error { return s.confirm(t.Context(), shop) })
	require.NoError(t, err)
	assert.Equal(t, 3, r.count)
	assert.Len(t, r.times, 3)
	assert.Positive(t, r.rate)
	require.NoError(t, s.replay(t.Context(), shop))
	s.paid[0].receipt = []byte("another")
	for err = nil; err == nil && s.next.Load() < 10; {
		err = s.replay(t.Context(), shop)
	}
	require.ErrorContains(t, err, "another answer")
}

func TestALoadEndsWithItsFirstError(t *testing.T) {
	broken := errors.New("broken")
	var done atomic.Int64
	_, err := load(4, time.Minute, func() error {
		if done.Add(1) > 10 {
			return broken
		}
		return nil
	})
	require.ErrorIs(t, err, broken)
}
