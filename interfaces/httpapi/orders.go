package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
)

const (
	paramOrder = "orderId"

	pathOrders  = "/api/orders"
	pathOrder   = pathOrders + "/:" + paramOrder
	pathConfirm = pathOrder + "/confirm-payment"
	pathCancel  = pathOrder + "/cancel"
)

// command is a POST under a key that has passed every check that comes before its members.
type command struct {
	customer string
	key      idempotency.Key
	orderID  string // as the path has it; empty where the path has none
	body     []byte
}

// operation reads the command's members and has the use case answer.
type operation func(ctx context.Context, in command) (idempotent.Answer, error)

// post makes the checks 2 to 7 of docs/contract.md, General, in their order, and sends the operation's answer. success is
// the status of one that is no refusal.
func (s *Server) post(success int, run operation) echo.HandlerFunc {
	return func(c echo.Context) error {
		caller, err := s.customer(c)
		if err != nil {
			return err
		}
		if _, err := queryOf(c.Request()); err != nil {
			return err
		}
		key, err := requiredKey(c)
		if err != nil {
			return err
		}
		body, err := readBody(c)
		if err != nil {
			return err
		}
		answer, err := run(c.Request().Context(), command{
			customer: caller.Actor, key: key, orderID: pathName(c, paramOrder), body: body,
		})
		if err != nil {
			return err
		}
		return sendAnswer(c, success, answer)
	}
}

// requiredKey is check 5: the key as it was read at the beginning.
func requiredKey(c echo.Context) (idempotency.Key, error) {
	v := visitOf(c)
	if errors.Is(v.keyErr, errKeyMissing) {
		c.Response().Header().Set(headerLink, `<`+pathPolicy+`>; rel="describedby"`)
	}
	return v.key, v.keyErr
}

// sendAnswer sends the outcome as it is on record.
func sendAnswer(c echo.Context, success int, answer idempotent.Answer) error {
	status, mediaType := success, typeJSON
	if answer.Refusal != "" {
		var err error
		if status, err = statusOf(answer.Refusal, answer.Document); err != nil {
			return port.ErrUnavailable.Because(err) // no version of this service has stored that
		}
		mediaType = typeProblem
	}
	header := c.Response().Header()
	if answer.Replayed {
		header.Set(headerReplayed, "true")
	}
	if answer.Created != "" {
		header.Set(echo.HeaderLocation, pathOrders+"/"+answer.Created)
	}
	return send(c, status, mediaType, answer.Document)
}

func (s *Server) placeOrder(ctx context.Context, in command) (idempotent.Answer, error) {
	cart, err := cartIn(in.body)
	if err != nil {
		return idempotent.Answer{}, err
	}
	return s.config.Till.PlaceOrder(ctx, checkout.PlaceOrder{Customer: in.customer, Key: in.key, Cart: cart})
}

// cartIn leaves the cart's own rules, the number of lines and their total, to the cart.
func cartIn(body []byte) (order.Cart, error) {
	var unit money.Currency
	var lines []order.Line
	err := decode(body,
		required("currency", currency(&unit)),
		required("lines", list(order.MaxLines, func() reader {
			lines = append(lines, order.Line{})
			line := &lines[len(lines)-1]
			return object(
				required("sku", text(&line.SKU)),
				required("name", text(&line.Name)),
				required("quantity", integer(&line.Quantity, 1, order.MaxQuantity)),
				required("unitPrice", integer(&line.UnitPrice, 0, order.MaxUnitPrice)),
			)
		})),
	)
	if err != nil {
		return order.Cart{}, err
	}
	return order.NewCart(unit, lines)
}

func (s *Server) confirmPayment(ctx context.Context, in command) (idempotent.Answer, error) {
	asked := checkout.ConfirmPayment{Customer: in.customer, Key: in.key, OrderID: in.orderID}
	var amount int64
	var unit money.Currency
	err := decode(in.body,
		required("amount", integer(&amount, 1, money.MaxUnits)),
		required("currency", currency(&unit)),
		optional("paymentMethod", text(&asked.Method)),
	)
	if err != nil {
		return idempotent.Answer{}, err
	}
	asked.Money = money.Of(amount, unit)
	return s.config.Confirm(ctx, asked)
}

func (s *Server) cancelOrder(ctx context.Context, in command) (idempotent.Answer, error) {
	asked := checkout.CancelOrder{Customer: in.customer, Key: in.key, OrderID: in.orderID}
	if err := decode(in.body, optional("reason", text(&asked.Reason))); err != nil {
		return idempotent.Answer{}, err
	}
	return s.config.Till.CancelOrder(ctx, asked)
}

// getOrder answers GET /api/orders/{orderId}.
func (s *Server) getOrder(c echo.Context) error {
	caller, err := s.customer(c)
	if err != nil {
		return err
	}
	if _, err := queryOf(c.Request()); err != nil {
		return err
	}
	view, err := s.config.Till.Order(c.Request().Context(), pathName(c, paramOrder), caller.Actor)
	if err != nil {
		return err
	}
	return sendView(c, http.StatusOK, view)
}
