package gateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

// brokenBook fails from the named call on.
type brokenBook struct {
	gateway.Book
	enter, settle, list error
}

func (b brokenBook) Enter(ctx context.Context, l gateway.Line) (gateway.Line, bool, error) {
	if b.enter != nil {
		return gateway.Line{}, false, b.enter
	}
	return b.Book.Enter(ctx, l)
}

func (b brokenBook) Settle(ctx context.Context, l gateway.Line) (gateway.Line, bool, error) {
	if b.settle != nil {
		return gateway.Line{}, false, b.settle
	}
	return b.Book.Settle(ctx, l)
}

func (b brokenBook) OfOrder(ctx context.Context, orderID string) ([]gateway.Line, error) {
	if b.list != nil {
		return nil, b.list
	}
	return b.Book.OfOrder(ctx, orderID)
}

func (b brokenBook) Since(
	ctx context.Context, since time.Time, after string, limit int,
) ([]gateway.Line, string, error) {
	if b.list != nil {
		return nil, "", b.list
	}
	return b.Book.Since(ctx, since, after, limit)
}

func TestABookThatFailsIsAnUnknownOutcome(t *testing.T) {
	gone := errors.New("the book is gone")
	t.Run("when entering", func(t *testing.T) {
		s := gateway.NewSimulator(brokenBook{Book: gateway.NewMemoryBook(), enter: gone}, clock)
		answer, err := s.Charge(t.Context(), paying("pm_ok"))
		require.ErrorIs(t, err, gone)
		assert.Nil(t, answer)
	})
	t.Run("when settling", func(t *testing.T) {
		s := gateway.NewSimulator(brokenBook{Book: gateway.NewMemoryBook(), settle: gone}, clock)
		a := paying("pm_unavailable")
		_, err := s.Charge(t.Context(), a)
		require.ErrorIs(t, err, gateway.ErrUnavailable)
		answer, err := s.Charge(t.Context(), a)
		require.ErrorIs(t, err, gone)
		assert.Nil(t, answer)
	})
	t.Run("when listing", func(t *testing.T) {
		s := gateway.NewSimulator(brokenBook{Book: gateway.NewMemoryBook(), list: gone}, clock)
		_, err := s.Lookup(t.Context(), paying("").OrderID)
		require.ErrorIs(t, err, gone)
		_, _, err = s.Charges(t.Context(), noon, "", 1)
		require.ErrorIs(t, err, gone)
	})
	t.Run("when a line cannot be understood", func(t *testing.T) {
		for _, spoil := range []func(*gateway.Line){
			func(l *gateway.Line) { l.Currency = "XXX" }, func(l *gateway.Line) { l.Status = "perhaps" },
		} {
			book, a := gateway.NewMemoryBook(), paying("pm_ok")
			line := gateway.Line{
				GatewayKey: a.GatewayKey(), OrderID: a.OrderID, Attempt: 1, Amount: 1000, Currency: "JPY",
				Method: "pm_ok", Status: gateway.Approved, ChargeID: "ch_1", BookedAt: noon,
			}
			spoil(&line)
			_, _, err := book.Enter(t.Context(), line)
			require.NoError(t, err)
			s := gateway.NewSimulator(book, clock)
			answer, err := s.Charge(t.Context(), a)
			require.Error(t, err)
			assert.Nil(t, answer)
			_, err = s.Lookup(t.Context(), a.OrderID)
			require.ErrorIs(t, err, payment.ErrUnreadable)
			page, _, err := s.Charges(t.Context(), noon, "", 1)
			require.NoError(t, err, "it keeps no other line from being listed")
			require.Len(t, page, 1)
			require.ErrorIs(t, page[0].Unreadable, payment.ErrUnreadable)
			assert.Nil(t, page[0].Answer)
			assert.Equal(t, a.GatewayKey(), page[0].GatewayKey)
		}
	})
}
