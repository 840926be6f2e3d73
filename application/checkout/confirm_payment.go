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

// ConfirmPayment charges the order at most once, whatever the number of clicks, keys, crashes and lost answers, and books
// the charge in the commit that makes the order PAID. It takes two commits with the charge between them, or one if there
// is nothing to charge.
func (t *Till) ConfirmPayment(ctx context.Context, c ConfirmPayment) (idempotent.Answer, error) {
	return t.confirm(ctx, confirmation{Till: t, asked: c}, false)
}

func (t *Till) confirm(ctx context.Context, p confirmation, unattended bool) (idempotent.Answer, error) {
	in := idempotent.Intent{
		Scope: p.asked.scope(), Request: p.asked.request(), Again: p.again, Ahead: p.announce, Unattended: unattended,
	}
	answer, err := t.Executor.Execute(ctx, in, p.begin)
	if err == nil && !answer.Replayed {
		t.tell(ctx, p.booking)
	}
	return answer, err
}

// confirmation is one ConfirmPayment on its way through the steps.
type confirmation struct {
	*Till
	asked   ConfirmPayment
	word    *Resolution // an operator's, taken for the provider's answer; nil: the provider is asked
	booking booking     // set anew by each run of record
}

func (p *confirmation) announce(tx port.Tx) {
	if id, err := order.ParseID(p.asked.OrderID); err == nil {
		tx.Orders().Announce(id, p.asked.Customer, string(p.asked.Key))
	}
}

func (p *confirmation) begin(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
	return p.prepare(ctx, tx, false)
}

// again is for who comes after a run that may have charged the order.
func (p *confirmation) again(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
	return p.prepare(ctx, tx, true)
}

func (p *confirmation) prepare(ctx context.Context, tx port.Tx, resumed bool) (idempotent.Next, error) {
	id, err := order.ParseID(p.asked.OrderID)
	if err != nil {
		return idempotent.Next{}, err
	}
	o, err := tx.Orders().LockIfOpen(ctx, id, p.asked.Customer, string(p.asked.Key))
	if p.word != nil && (err == nil || errors.Is(err, order.ErrNotFound)) {
		if next, decided, err := p.changedByHand(o); decided {
			return next, err
		}
	}
	if err != nil {
		return idempotent.Next{}, err
	}
	r := order.PaymentRequest{
		Key: string(p.asked.Key), Money: p.asked.Money, Method: p.asked.Method, Provider: p.Provider,
		Resumed: resumed && p.word == nil, // a word takes the order as a hand has made it
	}
	attempt, due, err := o.BeginPayment(r, tx.Now())
	if err != nil {
		return idempotent.Next{}, err
	}
	if !due {
		return idempotent.Result(receiptOf(o)).Noting(port.Duplicate), p.audit(ctx, tx)
	}
	if p.word != nil && p.word.Charged { // nobody is asked
		view, err := p.take(ctx, tx, o, attempt.Number, payment.Charge{ID: p.word.ChargeID, Money: attempt.Money})
		return idempotent.Result(view), err
	}
	ask := p.Gateway.Charge
	switch {
	case p.word != nil:
		ask = p.ask
	case !attempt.IsOf(p.Provider):
		ask = p.elsewhere
	case o.TotalChanged():
		ask = p.unpayable
	case attempt.ForgottenAt(tx.Now(), p.KeyRetention):
		ask = p.lookup
	case attempt.WrittenOff > 0:
		ask = p.chargeUnlessListed
	}
	return idempotent.Then(p.charge(attempt, ask)), tx.Orders().Save(ctx, o)
}

// charge has the provider's answer, under the same gateway key however often it is repeated.
func (p *confirmation) charge(
	a payment.Attempt, ask func(context.Context, payment.Attempt) (payment.Answer, error),
) idempotent.Call {
	return func(ctx context.Context) (idempotent.Finish, error) {
		answer, err := ask(ctx, a)
		if err == nil {
			err = a.Check(answer)
		}
		if errors.Is(err, payment.ErrAmountConflict) {
			p.Observer.Observe(ctx, port.Event{
				What: port.AmountConflict, Scope: p.asked.scope(), Detail: err.Error(), Once: a.GatewayKey(),
			})
			err = fmt.Errorf("%w: %w", idempotent.ErrDispute, err)
		}
		if err != nil {
			return nil, err
		}
		return p.record(a.Number, answer), nil
	}
}

// elsewhere is for an attempt that was asked of another provider: this one could only charge it anew.
func (t *Till) elsewhere(_ context.Context, a payment.Attempt) (payment.Answer, error) {
	return nil, a.AskedOf(t.Provider)
}

// unpayable is for an attempt whose charge could not pay the order any more: a decline on the provider's list still ends
// it.
func (t *Till) unpayable(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	answer, err := t.lookup(ctx, a)
	if err != nil {
		err = fmt.Errorf("%w, so it is not charged any more: %w", order.ErrTotalChanged, err)
	}
	return answer, err
}

// lookup is for an attempt that must not be sent again: only the provider's list can settle it.
func (t *Till) lookup(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	list, err := t.Gateway.Lookup(ctx, a.OrderID)
	if err != nil {
		return nil, err
	}
	return a.FindIn(list)
}

// chargeUnlessListed is for an attempt after one that an operator's word has ended: a holder that slept, or a provider
// that is slow, may have taken the money since.
func (t *Till) chargeUnlessListed(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	answer, err := t.lookup(ctx, a)
	if errors.Is(err, payment.ErrNotListed) {
		return t.Gateway.Charge(ctx, a)
	}
	return answer, err
}

// record writes the provider's answer into the order, and a charge into the books, in one commit with the outcome.
func (p *confirmation) record(attempt int, answer payment.Answer) idempotent.Finish {
	return func(ctx context.Context, tx port.Tx) (any, error) {
		o, err := tx.Orders().Lock(ctx, order.ID(p.asked.OrderID), p.asked.Customer)
		if err != nil {
			return nil, err
		}
		switch answer := answer.(type) {
		case payment.Charge:
			return p.take(ctx, tx, o, attempt, answer)
		case payment.Decline:
			if err := o.DeclinePayment(attempt, answer); err != nil {
				return nil, err
			}
			if err := tx.Orders().Save(ctx, o); err != nil {
				return nil, err
			}
			return answer.Refusal(), p.audit(ctx, tx)
		default:
			return nil, fmt.Errorf("checkout: %T is no answer of a provider", answer)
		}
	}
}

// take makes the order PAID by the charge, and books it.
func (p *confirmation) take(
	ctx context.Context, tx port.Tx, o *order.Order, attempt int, charge payment.Charge,
) (any, error) {
	p.booking = booking{}
	if err := o.ConfirmPayment(attempt, charge, tx.Now()); err != nil {
		return nil, err
	}
	if err := p.Books.post(ctx, tx, o, &p.booking); err != nil {
		return nil, err
	}
	if err := tx.Orders().Save(ctx, o); err != nil {
		return nil, err
	}
	return receiptOf(o), p.audit(ctx, tx)
}

func (c ConfirmPayment) scope() idempotency.Scope {
	return idempotency.Scope{Operation: OpConfirmPayment, Actor: c.Customer, Key: c.Key}
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
