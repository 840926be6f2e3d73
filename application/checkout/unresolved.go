package checkout

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// Resume confirms a payment that its holder has left in progress, without the client: from the stored request, by
// ConfirmPayment's own door.
func (t *Till) Resume(ctx context.Context, left idempotency.Record) (idempotent.Answer, error) {
	asked, err := storedConfirmPayment(left)
	if err != nil {
		return idempotent.Answer{}, err
	}
	return t.confirm(ctx, confirmation{Till: t, asked: asked}, true)
}

// Resolution is what a person has found out at the provider.
type Resolution struct {
	Scope    idempotency.Scope
	Charged  bool   // exactly the order's money was taken; else none was
	ChargeID string // the provider's, if charged
	Note     string // how it was found out
	By       string // the operator
}

// declinedByOperator is the code of a decline that is an operator's word.
const declinedByOperator = "resolved_not_charged"

// errListUnread says that the provider could not be asked whether an operator's word is true.
var errListUnread = errors.New("checkout: the provider's list cannot be read")

// Resolve takes what a person has found out as the provider's answer, audited in the commit that records it. That
// nothing was charged is checked against the provider's list first.
//
// Errors: idempotency.ErrNotFound when no such record is unresolved; idempotency.ErrLeaseAlive;
// payment.ErrChargeFound; port.ErrUnavailable when the list cannot be read; a fault.Invalid that names chargeId when
// another order is paid by that charge, or outcome when it cannot be true of the order as a hand has left it.
func (t *Till) Resolve(ctx context.Context, r Resolution) (OutcomeView, error) {
	left, err := t.unresolved(ctx, r.Scope)
	if err != nil {
		return OutcomeView{}, err
	}
	asked, err := storedConfirmPayment(left)
	if err != nil {
		return OutcomeView{}, err
	}
	answer, err := t.confirm(ctx, confirmation{Till: t, asked: asked, word: &r}, true)
	var untrue *contradiction
	switch {
	case errors.As(err, &untrue):
		return OutcomeView{}, fault.Invalid(fault.Violation{Field: "outcome", Detail: untrue.Error()})
	case errors.Is(err, order.ErrChargeTaken):
		return OutcomeView{}, fault.Invalid(fault.Violation{Field: "chargeId", Detail: "another order is paid by this charge"})
	case errors.Is(err, payment.ErrChargeFound):
		return OutcomeView{}, payment.ErrChargeFound
	case errors.Is(err, errListUnread):
		return OutcomeView{}, port.ErrUnavailable.Because(err)
	case errors.Is(err, idempotency.ErrInProgress):
		return OutcomeView{}, idempotency.ErrLeaseAlive.Because(err)
	case err != nil:
		return OutcomeView{}, err
	case answer.Replayed: // somebody else was faster
		return OutcomeView{}, idempotency.ErrNotFound
	}
	return t.Outcome(ctx, r.Scope)
}

// unresolved is a payment's record that an operator may decide.
func (t *Till) unresolved(ctx context.Context, s idempotency.Scope) (left idempotency.Record, err error) {
	err = t.Work.Read(ctx, func(tx port.Tx) error {
		left, err = tx.Records().Find(ctx, s)
		switch {
		case err != nil:
			return err
		case s.Operation != OpConfirmPayment || left.Status != idempotency.InProgress:
			return idempotency.ErrNotFound
		case !left.Unresolved(tx.Now()):
			return idempotency.ErrLeaseAlive.After(left.LeaseEnds.Sub(tx.Now()))
		default:
			return nil
		}
	})
	return left, err
}

// ask answers what the operator says, that nothing was charged, unless the provider's list says otherwise.
func (p *confirmation) ask(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	if err := a.AskedOf(p.Provider); err != nil {
		return nil, fmt.Errorf("%w: %w", errListUnread, err)
	}
	list, err := p.Gateway.Lookup(ctx, a.OrderID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errListUnread, err)
	}
	listed, err := a.FindIn(list)
	if charge, ok := listed.(payment.Charge); err == nil && ok && charge.Money == a.Money {
		return nil, payment.ErrChargeFound
	}
	return payment.Decline{Code: declinedByOperator, WriteOff: true}, nil
}

// audit writes an operator's word into the audit log, in the commit that it decides.
func (p *confirmation) audit(ctx context.Context, tx port.Tx) error {
	if p.word == nil {
		return nil
	}
	what := "not charged"
	if p.word.Charged {
		what = "charged as " + p.word.ChargeID
	}
	return tx.Audit().Append(ctx, []port.AuditEntry{{
		EventID: uuid.NewString(), At: tx.Now(), Scope: p.word.Scope, Kind: port.AuditResolved,
		Detail: fmt.Sprintf("%s, says %s: %s", what, p.word.By, p.word.Note),
	}})
}

// storedConfirmPayment reads the request back from its record.
func storedConfirmPayment(left idempotency.Record) (ConfirmPayment, error) {
	fields, err := left.Request.Fields()
	if err != nil {
		return ConfirmPayment{}, unreadable(err)
	}
	c := ConfirmPayment{Customer: left.Actor, Key: left.Key}
	var amount, code string
	for _, f := range fields {
		switch f.Name {
		case "order":
			c.OrderID = f.Value
		case "amount":
			amount = f.Value
		case "currency":
			code = f.Value
		case "method":
			c.Method = f.Value
		}
	}
	units, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		return ConfirmPayment{}, unreadable(err)
	}
	currency, err := money.ParseCurrency(code)
	if err != nil {
		return ConfirmPayment{}, unreadable(err)
	}
	c.Money = money.Of(units, currency)
	return c, nil
}

// unreadable says that a stored request is none: somebody has changed it in the store.
func unreadable(err error) error {
	return port.ErrUnavailable.Because(fmt.Errorf("%w: %w", idempotency.ErrUnreadableRequest, err))
}

// OrderOf is the order that a stored request is about; empty when it is about none.
func OrderOf(left idempotency.Record) string {
	fields, err := left.Request.Fields()
	if err != nil {
		return ""
	}
	for _, f := range fields {
		if f.Name == "order" {
			return f.Value
		}
	}
	return ""
}
