package checkout

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// ConfirmPayment asks for an order's payment.
type ConfirmPayment struct {
	Customer string
	Key      idempotency.Key
	OrderID  string // as the path has it
	Money    money.Money
	Method   string // the provider's token; empty: the gateway's default
}

// ConfirmPayment charges the order at most once, whatever the number of clicks, keys, crashes and lost answers. It takes
// two commits with the charge between them, or one if there is nothing to charge.
func (t *Till) ConfirmPayment(ctx context.Context, c ConfirmPayment) (idempotent.Answer, error) {
	prepare := func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
		id, err := order.ParseID(c.OrderID)
		if err != nil {
			return idempotent.Next{}, err
		}
		o, err := tx.Orders().LockIfOpen(ctx, id, c.Customer, string(c.Key))
		if err != nil {
			return idempotent.Next{}, err
		}
		asked := order.PaymentRequest{Key: string(c.Key), Money: c.Money, Method: c.Method}
		attempt, due, err := o.BeginPayment(asked, tx.Now())
		if err != nil {
			return idempotent.Next{}, err
		}
		if !due {
			return idempotent.Result(receiptOf(o)).Noting(port.Duplicate), nil
		}
		ask := t.Gateway.Charge
		if attempt.ForgottenAt(tx.Now(), t.KeyRetention) {
			ask = t.lookup
		}
		return idempotent.Then(t.charge(c, attempt, ask)), tx.Orders().Save(ctx, o)
	}
	return t.execute(ctx, OpConfirmPayment, c.Customer, c.Key, c.request(), prepare)
}

// charge has the provider's answer, under the same gateway key however often it is repeated.
func (t *Till) charge(
	c ConfirmPayment, a payment.Attempt, ask func(context.Context, payment.Attempt) (payment.Answer, error),
) idempotent.Call {
	return func(ctx context.Context) (idempotent.Finish, error) {
		answer, err := ask(ctx, a)
		if err == nil {
			err = a.Check(answer)
		}
		if errors.Is(err, payment.ErrAmountConflict) {
			scope := idempotency.Scope{Operation: OpConfirmPayment, Actor: c.Customer, Key: c.Key}
			t.Observer.Observe(ctx, port.Event{What: port.AmountConflict, Scope: scope, Detail: err.Error()})
		}
		if err != nil {
			return nil, err
		}
		return t.record(c, a.Number, answer), nil
	}
}

// lookup is for an attempt that must not be sent again: only the provider's list can settle it.
func (t *Till) lookup(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	list, err := t.Gateway.Lookup(ctx, a.OrderID)
	if err != nil {
		return nil, err
	}
	return a.FindIn(list)
}

// record writes the provider's answer into the order, in one commit with the outcome.
func (t *Till) record(c ConfirmPayment, attempt int, answer payment.Answer) idempotent.Finish {
	return func(ctx context.Context, tx port.Tx) (any, error) {
		o, err := tx.Orders().Lock(ctx, order.ID(c.OrderID), c.Customer)
		if err != nil {
			return nil, err
		}
		switch answer := answer.(type) {
		case payment.Charge:
			if err := o.ConfirmPayment(attempt, answer, tx.Now()); err != nil {
				return nil, err
			}
			return receiptOf(o), tx.Orders().Save(ctx, o)
		case payment.Decline:
			if err := o.DeclinePayment(attempt); err != nil {
				return nil, err
			}
			return answer.Refusal(), tx.Orders().Save(ctx, o)
		default:
			return nil, fmt.Errorf("checkout: %T is no answer of a provider", answer)
		}
	}
}

func (c ConfirmPayment) request() idempotency.Request {
	request := idempotency.Request("").
		With("order", c.OrderID).
		With("amount", strconv.FormatInt(c.Money.Units(), 10)).
		With("currency", c.Money.Currency().Code())
	if c.Method != "" {
		request = request.With("method", c.Method)
	}
	return request
}
