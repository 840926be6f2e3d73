package gateway_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

// serve is a simulator over the book as others reach it, until the test ends.
func serve(t *testing.T, book gateway.Book) (url string) {
	t.Helper()
	server := httptest.NewServer(gateway.NewHandler(gateway.HandlerConfig{
		Book: book, Clock: clock, Token: token, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheSimulatorIsTheSameBehindHTTP(t *testing.T) {
	const unknown, charged = "unknown", "charged"
	for method, want := range map[string][]string{
		"":                      {charged, charged},
		"pm_ok":                 {charged, charged},
		"pm_slow_1":             {charged, charged},
		"pm_declined":           {"card_declined", "card_declined"},
		"pm_insufficient_funds": {"insufficient_funds", "insufficient_funds"},
		"pm_gold":               {"unknown_payment_method", "unknown_payment_method"},
		"pm_lost_answer":        {unknown, charged, charged},
		"pm_unavailable":        {unknown, charged, charged},
		"pm_down":               {unknown, unknown, unknown},
	} {
		t.Run("method "+method, func(t *testing.T) {
			book := gateway.NewMemoryBook()
			simulator := gateway.NewSimulator(book, clock)
			for name, g := range map[string]payment.Gateway{
				"in process": simulator,
				"over HTTP":  adapterFor(t, serve(t, book), patience),
			} {
				a := paying(method)
				var got []string
				var last payment.Answer
				for range want {
					answer, err := g.Charge(t.Context(), a)
					switch answer := answer.(type) {
					case payment.Charge:
						require.NoError(t, a.Check(answer), name)
						got = append(got, charged)
					case payment.Decline:
						assert.NotEmpty(t, answer.Message, name)
						got = append(got, answer.Code)
					default:
						require.Error(t, err, name)
						got = append(got, unknown)
					}
					last = answer
				}
				assert.Equal(t, want, got, name)
				if decline, ok := last.(payment.Decline); ok && name == "over HTTP" {
					last = payment.Decline{Code: decline.Code} // the protocol's list has no message
				}
				if last == nil {
					assertListed(t, g, a)
				} else {
					assertListed(t, g, a, last)
				}
			}
		})
	}
}

func TestAKeyBelongsToItsFirstRequestBehindHTTPToo(t *testing.T) {
	book := gateway.NewMemoryBook()
	h := adapterFor(t, serve(t, book), patience)
	a := paying("pm_ok")
	answer, err := h.Charge(t.Context(), a)
	require.NoError(t, err)
	other := a
	other.Money = money.Of(2000, money.JPY)
	assertUnknown(t, h, other)
	assertListed(t, h, a, answer)
}
