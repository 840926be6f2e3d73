package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"kakutei/application/checkout"
	"kakutei/domain/idempotency"
)

const (
	paramKey       = "key"
	paramOperation = "operation"

	pathOutcome = "/api/idempotency-keys/:" + paramKey
)

// getOutcome answers GET /api/idempotency-keys/{key}?operation=…: "did my request go through?"
func (s *Server) getOutcome(c echo.Context) error {
	caller, err := s.customer(c)
	if err != nil {
		return err
	}
	query, err := queryOf(c.Request(), paramOperation)
	if err != nil {
		return err
	}
	operation := idempotency.Operation(query.Get(paramOperation))
	switch operation {
	case checkout.OpPlaceOrder, checkout.OpConfirmPayment, checkout.OpCancelOrder:
	default:
		return invalidQuery("the parameter operation must be %s, %s or %s",
			checkout.OpPlaceOrder, checkout.OpConfirmPayment, checkout.OpCancelOrder)
	}
	key, err := idempotency.NewKey(pathName(c, paramKey))
	if err != nil {
		return idempotency.ErrNotFound // no record has a key that cannot be
	}
	visitOf(c).key = key
	view, err := s.config.Till.Outcome(c.Request().Context(), idempotency.Scope{
		Operation: operation, Actor: caller.Actor, Key: key,
	})
	if err != nil {
		return err
	}
	if view.Status == idempotency.InProgress {
		s.advise(c, view.RetryIn)
	}
	return sendView(c, http.StatusOK, view)
}
