package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gateway/booktest"
)

func TestABookThatTellsKeepsTheContract(t *testing.T) {
	booktest.Run(t, func(*testing.T) gateway.Book {
		return gateway.Telling{Book: gateway.NewMemoryBook(), Tell: func(string) {}}
	})
}

func TestABookTellsEachLineOnceItStandsAndNoRepeat(t *testing.T) {
	var told []string
	book := gateway.Telling{Book: gateway.NewMemoryBook(), Tell: func(orderID string) { told = append(told, orderID) }}
	line := gateway.Line{
		GatewayKey: "o-1:1", OrderID: "o-1", Attempt: 1, Amount: 1000, Currency: "JPY",
		Status: gateway.Failed, BookedAt: time.Unix(0, 0).UTC(),
	}
	for range 2 {
		_, _, err := book.Enter(t.Context(), line)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"o-1"}, told)
	line.Status, line.ChargeID = gateway.Approved, "ch_1"
	for range 2 {
		_, _, err := book.Settle(t.Context(), line)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"o-1", "o-1"}, told)
}
