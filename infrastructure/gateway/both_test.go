package gateway_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

// serve speaks the gateway protocol for a simulator, as far as the adapter needs it.
func serve(t *testing.T, s *gateway.Simulator, book gateway.Book) (url string) {
	t.Helper()
	routes := http.NewServeMux()
	routes.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			OrderID, Currency, PaymentMethod string
			Attempt                          int
			Amount                           int64
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		currency, err := money.ParseCurrency(asked.Currency)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		reply, err := s.Ask(r.Context(), r.Header.Get("Idempotency-Key"), payment.Attempt{
			OrderID: asked.OrderID, Number: asked.Attempt, Money: money.Of(asked.Amount, currency),
			Method: asked.PaymentMethod,
		})
		switch {
		case errors.Is(err, gateway.ErrOtherRequest):
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		case errors.Is(err, gateway.ErrLostAnswer):
			panic(http.ErrAbortHandler)
		case err != nil:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		switch answer := reply.Answer.(type) {
		case payment.Charge:
			status := http.StatusCreated
			if reply.Repeat {
				status = http.StatusOK
			}
			say(w, status, map[string]any{
				"chargeId": answer.ID, "status": "approved", "amount": answer.Money.Units(),
				"currency": answer.Money.Currency().Code(), "chargedAt": answer.ChargedAt,
			})
		case payment.Decline:
			say(w, http.StatusPaymentRequired, map[string]any{
				"status": "declined", "declineCode": answer.Code, "message": answer.Message,
			})
		}
	})
	routes.HandleFunc("GET /charges", func(w http.ResponseWriter, r *http.Request) {
		lines, err := book.OfOrder(r.Context(), r.URL.Query().Get("orderId"))
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		charges := []map[string]any{}
		for _, l := range lines {
			line := map[string]any{
				"orderId": l.OrderID, "attempt": l.Attempt, "gatewayKey": l.GatewayKey, "amount": l.Amount,
				"currency": l.Currency, "status": l.Status,
			}
			if l.Status == gateway.Approved {
				line["chargeId"], line["chargedAt"] = l.ChargeID, l.BookedAt
			} else {
				line["declineCode"] = l.DeclineCode
			}
			charges = append(charges, line)
		}
		say(w, http.StatusOK, map[string]any{"charges": charges})
	})
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	return server.URL
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the test sees what arrives
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
				"over HTTP":  adapterFor(t, serve(t, simulator, book), patience),
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
	h := adapterFor(t, serve(t, gateway.NewSimulator(book, clock), book), patience)
	a := paying("pm_ok")
	answer, err := h.Charge(t.Context(), a)
	require.NoError(t, err)
	other := a
	other.Money = money.Of(2000, money.JPY)
	assertUnknown(t, h, other)
	assertListed(t, h, a, answer)
}
