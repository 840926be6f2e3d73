package oversight

import (
	"fmt"
	"slices"
	"strings"

	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// FindingKind is what the comparison with the provider has found about an order. The kinds are published.
type FindingKind string

const (
	// ChargedNotPaid is money that was taken for an order that is not PAID, and that no running attempt will settle.
	ChargedNotPaid FindingKind = "charged_not_paid"
	// PaidNotCharged is a PAID order whose charge the provider does not know.
	PaidNotCharged FindingKind = "paid_not_charged"
	// ChargedTwice is an order for which money was taken more than once.
	ChargedTwice FindingKind = "charged_twice"
	// MoneyDiffers is an order for which other money was taken or booked than it is over.
	MoneyDiffers FindingKind = "money_differs"
	// PaidNotBooked is a PAID order without its journal entry.
	PaidNotBooked FindingKind = "paid_not_booked"
	// Unresolved is no finding: money was taken by an order's running attempt, which its request or the recovery settles.
	Unresolved FindingKind = "unresolved"
	// Unreadable is no finding: a line of the list, an order or an entry that cannot be what it should, so that nobody
	// can tell whether there is one.
	Unreadable FindingKind = "unreadable"
)

// FindingKinds are all kinds of findings.
var FindingKinds = []FindingKind{ChargedNotPaid, PaidNotCharged, ChargedTwice, MoneyDiffers, PaidNotBooked}

// Finding is one thing that was found about one order, as published.
type Finding struct {
	Kind     FindingKind `json:"kind"`
	OrderID  string      `json:"orderId"`            // as the provider has it; empty where that cannot be read
	ChargeID string      `json:"chargeId,omitempty"` // the provider's; absent where no charge is concerned
	Detail   string      `json:"detail"`             // for people
}

// account is what both sides have of one order.
type account struct {
	id      string      // the order's, as the provider has it
	order   order.State // its Status is noOrder when there is none
	entry   *journal.Entry
	charges []taken // all of the order's, as the provider lists them

	abandoned  bool  // PAYMENT_PENDING, and there is no record that anybody could finish it by
	elsewhere  bool  // its attempt was asked of another provider than the one that is compared
	unreadable error // why one of the sides cannot be read; nil
}

const noOrder order.Status = ""

// taken is money that was taken, under a gateway key.
type taken struct {
	gatewayKey string
	payment.Charge
}

// takenIn are the list's charges.
func takenIn(list []payment.Booking) (charges []taken) {
	for _, b := range list {
		if c, ok := b.Answer.(payment.Charge); ok {
			charges = append(charges, taken{b.GatewayKey, c})
		}
	}
	return charges
}

// fits tells that nothing is to be found about the order as far as this charge goes. It follows from charge, order and
// entry, whatever other charges there may be: each of them is asked about, too.
func (a account) fits(c taken) bool {
	switch a.order.Status {
	case order.Paid:
		return c.ID == a.order.ChargeID && c.Money == a.order.Total && a.booked()
	case order.PaymentPending:
		return a.running(c) && c.Money == a.order.Attempt.Money && !a.abandoned
	case order.Placed, order.Cancelled:
	}
	return false
}

// running tells that the charge is that of the order's running attempt, so that it is known what becomes of it.
func (a account) running(c taken) bool {
	return a.order.Status == order.PaymentPending && c.gatewayKey == a.order.Attempt.GatewayKey() && !a.elsewhere
}

// lists tells that the charge is among all that the provider lists for the order.
func (a account) lists(t taken) bool {
	return slices.ContainsFunc(a.charges, func(c taken) bool { return c.gatewayKey == t.gatewayKey && c.ID == t.ID })
}

// adopts tells that the order's running attempt will find the only charge there is, although an attempt that was written
// off has taken it.
func (a account) adopts(t taken) bool {
	return a.order.Status == order.PaymentPending && !a.abandoned && !a.elsewhere && len(a.charges) == 1 &&
		a.lists(t) && a.order.Attempt.Adopts(t.gatewayKey, t.Money)
}

func (a account) isUnreadable() bool { return a.unreadable != nil }

func (a account) booked() bool { return a.entry != nil && a.bookedMoney() == a.order.Total }

func (a account) bookedMoney() money.Money { return money.Of(a.entry.Source.Total, a.entry.Currency) }

// findings are all that is wrong with the order, at most one of a kind.
func (a account) findings() (found []Finding) {
	add := func(kind FindingKind, chargeID, format string, args ...any) {
		found = append(found, Finding{kind, a.id, chargeID, fmt.Sprintf(format, args...)})
	}
	switch a.order.Status {
	case order.Paid:
		a.paid(add)
	case order.PaymentPending:
		a.pending(add)
	case order.Placed, order.Cancelled, noOrder:
		if len(a.charges) > 0 {
			add(ChargedNotPaid, a.charges[0].ID, "taken: %s; the order %s", listed(a.charges), a.standing())
		}
	}
	if others := a.others(); len(others) > 0 {
		add(ChargedTwice, others[0].ID, "taken: %s; the order %s", listed(a.charges), a.standing())
	}
	return found
}

func (a account) paid(add func(kind FindingKind, chargeID, format string, args ...any)) {
	s := a.order
	own, isListed := a.own()
	switch {
	case !isListed && a.elsewhere: // that provider would have to be asked
	case !isListed:
		add(PaidNotCharged, s.ChargeID, "the order is PAID by a charge that the provider does not list")
	case own.Money != s.Total:
		add(MoneyDiffers, own.ID, "taken: %s; the order is over %s", own.Money, s.Total)
	case a.entry != nil && !a.booked():
		add(MoneyDiffers, own.ID, "booked: %s as entry %s; the order is over %s", a.bookedMoney(), a.entry.ID, s.Total)
	}
	if a.entry == nil {
		add(PaidNotBooked, s.ChargeID, "the order is PAID, and no entry stands under its posting key")
	}
}

func (a account) pending(add func(kind FindingKind, chargeID, format string, args ...any)) {
	var astray []taken
	why := "taken by an attempt that does not run"
	for _, c := range a.charges {
		switch {
		case !a.running(c):
			astray = append(astray, c)
		case c.Money != a.order.Attempt.Money:
			add(MoneyDiffers, c.ID, "taken: %s; asked: %s", c.Money, a.order.Attempt.Money)
		case a.abandoned:
			astray = append(astray, c)
			why = "taken, and the record of the payment is gone: nothing finishes it but the same request under the same key"
		}
	}
	if len(astray) > 0 {
		add(ChargedNotPaid, astray[0].ID, "%s: %s", why, listed(astray))
	}
}

// own is the charge that the order is PAID by.
func (a account) own() (taken, bool) {
	for _, c := range a.charges {
		if c.ID == a.order.ChargeID {
			return c, true
		}
	}
	return taken{}, false
}

// others are the charges beyond the one that the order may have: its own, else the first.
func (a account) others() (others []taken) {
	if len(a.charges) == 0 {
		return nil
	}
	rightful, isListed := a.own()
	switch {
	case isListed:
	case a.order.Status == order.Paid && a.elsewhere: // by a charge of the other provider's
		return a.charges
	default:
		rightful = a.charges[0]
	}
	for _, c := range a.charges {
		if c.ID != rightful.ID {
			others = append(others, c)
		}
	}
	return others
}

func (a account) standing() string {
	if a.order.Status == noOrder {
		return "does not exist"
	}
	return "is " + string(a.order.Status)
}

func listed(charges []taken) string {
	var list []string
	for _, c := range charges {
		list = append(list, fmt.Sprintf("%s as %s under %s", c.Money, c.ID, c.gatewayKey))
	}
	return strings.Join(list, ", ")
}
