package checkout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

var tea = order.Line{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}

// place is alice's wish for these lines.
func place(t *testing.T, key string, currency money.Currency, lines ...order.Line) checkout.PlaceOrder {
	t.Helper()
	cart, err := order.NewCart(currency, lines)
	require.NoError(t, err)
	return checkout.PlaceOrder{Customer: "alice", Key: idempotency.Key(key), Cart: cart}
}

func TestAnOrderIsPlacedInOneCommit(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		answer, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
		require.NoError(t, err)
		assert.Equal(t, 1, s.Store.Commits())
		v := orderView(t, answer)
		assert.Equal(t, checkout.OrderView{
			OrderID: v.OrderID, CustomerID: "alice", Status: order.Placed, Amount: 1000, Currency: "JPY",
			Lines:    []checkout.LineView{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}},
			PlacedAt: s.clock.Now(),
		}, v)
		assert.Equal(t, string(v.OrderID), answer.Created)
		assert.Equal(t, s.clock.Now(), s.state(t, v.OrderID).PlacedAt)
	})
}

func TestPlacingAnOrderIsWaitedForTwice(t *testing.T) {
	clock := storetest.NewClock()
	deferring := memory.NewDeferring(memory.New(clock.Now))
	s := shopOver(deferring, clock)
	_, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
	require.NoError(t, err)
	assert.Equal(t, 2, deferring.RoundTrips(), "record; order, outcome and commit")
}

func TestTheSameKeyPlacesTheSameOrder(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		first, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
		require.NoError(t, err)
		s.clock.Pass(time.Hour)
		again, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, first.Outcome, again.Outcome)

		another, err := s.PlaceOrder(t.Context(), place(t, "another", money.JPY, tea))
		require.NoError(t, err)
		assert.NotEqual(t, first.Created, another.Created)
	})
}

func TestEveryFieldOfACartIsPartOfTheRequest(t *testing.T) {
	euro, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	coffee := order.Line{SKU: "coffee", Name: "コーヒー", Quantity: 1, UnitPrice: 400}
	changed := func(change func(l *order.Line)) order.Line {
		l := tea
		change(&l)
		return l
	}
	inBothShops(t, func(t *testing.T, s shop) {
		_, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea, coffee))
		require.NoError(t, err)
		for name, other := range map[string]checkout.PlaceOrder{
			"currency":   place(t, "k", euro, tea, coffee),
			"order":      place(t, "k", money.JPY, coffee, tea),
			"fewer":      place(t, "k", money.JPY, tea),
			"sku":        place(t, "k", money.JPY, changed(func(l *order.Line) { l.SKU = "TEA" }), coffee),
			"name":       place(t, "k", money.JPY, changed(func(l *order.Line) { l.Name = "番茶" }), coffee),
			"quantity":   place(t, "k", money.JPY, changed(func(l *order.Line) { l.Quantity = 3 }), coffee),
			"unit price": place(t, "k", money.JPY, changed(func(l *order.Line) { l.UnitPrice = 501 }), coffee),
		} {
			_, err := s.PlaceOrder(t.Context(), other)
			require.ErrorIs(t, err, idempotency.ErrKeyReused, name)
		}
	})
}

func TestOneKeyOfTwoCustomersIsTwoOrders(t *testing.T) {
	inBothShops(t, func(t *testing.T, s shop) {
		alices, err := s.PlaceOrder(t.Context(), place(t, "k", money.JPY, tea))
		require.NoError(t, err)
		c := place(t, "k", money.JPY, tea)
		c.Customer = "bob"
		bobs, err := s.PlaceOrder(t.Context(), c)
		require.NoError(t, err)
		assert.False(t, bobs.Replayed)
		assert.NotEqual(t, alices.Created, bobs.Created)
	})
}
