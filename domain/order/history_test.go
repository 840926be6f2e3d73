package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/order"
)

func TestNoHistoryBreaksTheRulesOfAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := orderThatIs(t, placed)
		declines := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				s := o.State()
				started := s.Status == order.PaymentPending || s.Status == order.Paid
				if started {
					require.Equal(t, declines+1, s.Attempt.Number, "an attempt's number rises after a decline only")
				} else {
					require.Equal(t, declines, s.Attempt.Number)
				}
				require.Equal(t, s.Status == order.PaymentPending, s.PayingKey != "")
				require.Equal(t, s.Status == order.Paid, s.PaymentID != "" && s.ChargeID != "" && !s.PaidAt.IsZero())
				require.Equal(t, s.Status == order.Cancelled, !s.CancelledAt.IsZero())
			},
			"something happens": func(t *rapid.T) {
				v := rapid.SampledFrom(verbs).Draw(t, "verb")
				before := o.State()
				told, err := v.do(o)
				after := o.State()
				if err != nil || !told {
					require.Equal(t, before, after, "%s changed an order that it refused", v.name)
				}
				if before.Status == order.Paid || before.Status == order.Cancelled {
					require.Equal(t, before, after, "%s changed a final order", v.name)
				}
				if before.Status == order.PaymentPending && after.Status == order.Placed {
					declines++
				}
			},
		})
	})
}
