package checkout

import (
	"context"
	"errors"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// contradiction says why an operator's word cannot be true of the order as it stands.
type contradiction struct{ why string }

func (c *contradiction) Error() string { return c.why }

// What an operator is told about an order that somebody has changed in the store while its payment ran. What money was
// taken is never made a refusal: it would be denied to the customer.
var (
	errGone = &contradiction{"the order is not in the store any more: what a hand has deleted only a hand can end"}
	errPaid = &contradiction{"the order is PAID, by a hand and not by this: a hand has to settle it"}
	errHeld = &contradiction{"the order is being paid by another request, or over other money: " +
		"a hand has changed it and has to settle it"}
	errTotalChanged = &contradiction{"the order's total was changed by hand while its payment ran: make it what was " +
		"asked for again and say charged, or refund the charge and, when the list does " +
		"not show it any more, say not_charged"}
	errCancelled = &contradiction{"the order was CANCELLED by hand while its payment ran: refund the charge and say " +
		"not_charged, or make the order PAYMENT_PENDING again, say charged and cancel it by hand"}
	errOtherTotal = &contradiction{"the order is PLACED, by a hand, and over other money: a hand has to settle it"}
)

// changedByHand takes an operator's word about an order that is not what its payment has left: a hand has changed it in
// the store, or deleted it. decided is false when the order is as it was left, or when the word fits it all the same.
//
// That nothing was charged ends the payment as the order has it: CANCELLED is refused, PLACED is declined. That money
// was taken is only true of an order that can be PAID by it.
func (p *confirmation) changedByHand(o *order.Order) (next idempotent.Next, decided bool, err error) {
	if o == nil {
		return idempotent.Next{}, true, errGone
	}
	s := o.State()
	switch {
	case s.Pays(string(p.asked.Key), p.asked.Money) && o.TotalChanged() && p.word.Charged:
		return idempotent.Next{}, true, errTotalChanged
	case s.Pays(string(p.asked.Key), p.asked.Money):
		return idempotent.Next{}, false, nil
	case s.Status == order.PaymentPending:
		return idempotent.Next{}, true, errHeld
	case s.Status == order.Paid && (!p.word.Charged || s.ChargeID != p.word.ChargeID || s.Total != p.asked.Money):
		return idempotent.Next{}, true, errPaid
	case s.Status == order.Paid:
		return idempotent.Next{}, false, nil
	case !p.word.Charged:
		return idempotent.Then(p.giveUp(s)), true, nil
	case s.Status == order.Cancelled:
		return idempotent.Next{}, true, errCancelled
	case s.Total != p.asked.Money:
		return idempotent.Next{}, true, errOtherTotal
	default:
		return idempotent.Next{}, false, nil
	}
}

// giveUp ends a payment of which nothing was charged, unless the provider's list says otherwise, and leaves the order
// as a hand has made it. One that can still be paid remembers that the attempt was written off.
func (p *confirmation) giveUp(left order.State) idempotent.Call {
	attempt := left.Attempt
	attempt.WrittenOff = attempt.Number // a charge of an earlier one is a charge, too
	attempt.OrderID = string(left.ID)   // also if a hand has taken the attempt away
	return func(ctx context.Context) (idempotent.Finish, error) {
		answer, err := p.ask(ctx, attempt)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, tx port.Tx) (any, error) {
			o, err := tx.Orders().Lock(ctx, left.ID, left.Customer)
			if err != nil {
				return nil, err
			}
			s := o.State()
			if s.Status != left.Status || s.Version != left.Version {
				return nil, order.ErrOtherAttempt
			}
			if o.WriteOff() { // its charge may still be on its way to the provider
				if err := tx.Orders().Save(ctx, o); err != nil {
					return nil, err
				}
			}
			asked := order.PaymentRequest{Key: string(p.asked.Key), Money: p.asked.Money}
			_, _, err = order.Rehydrate(s).BeginPayment(asked, tx.Now())
			if refusal, refused := fault.Refusal(err); refused {
				return refusal, p.audit(ctx, tx)
			}
			no, declined := answer.(payment.Decline)
			if err != nil || !declined {
				return nil, errors.Join(err, errNoDecline)
			}
			return no.Refusal(), p.audit(ctx, tx)
		}, nil
	}
}

var errNoDecline = errors.New("checkout: an operator's not charged is a decline")
