// Package payment is the language spoken with the payment provider: the attempt that is asked for and the answers that
// it can have. It holds values and the port, no state of its own.
package payment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"kakutei/domain/fault"
	"kakutei/domain/money"
)

// Attempt is one try to charge an order. Only a definite decline lets the next one start.
type Attempt struct {
	OrderID string
	Number  int // from 1
	Money   money.Money
	Method  string // the provider's token for how to pay, never card data; empty: the gateway's default
	BegunAt time.Time
	// WrittenOff is the order's last attempt that a person's word has ended, 0 if none was. The charge of such an attempt
	// may still have been on its way to the provider: whoever comes after it looks for it first.
	WrittenOff int
	// Provider names whom the attempt is asked of: nobody else can tell what became of it, and whoever else were asked
	// for its money would charge it anew. Empty where nobody wrote it down.
	Provider string
}

// GatewayKey names the charge to the provider. It follows from order and attempt, not from the request's key: two tabs
// with two keys still charge once.
func (a Attempt) GatewayKey() string { return a.OrderID + ":" + strconv.Itoa(a.Number) }

// clockStep is how far the store's clock may have been set back without an attempt's age being in doubt.
const clockStep = time.Hour

// ForgottenAt tells whether a provider that keeps its keys for so long may have forgotten this one. The same key would
// then be a new charge: such an attempt is looked up, never sent again. Nobody knows the age of an attempt that is to
// come yet by a clock that was set back.
func (a Attempt) ForgottenAt(now time.Time, retention time.Duration) bool {
	age := now.Sub(a.BegunAt)
	return age >= retention || age < -clockStep
}

// IsOf tells whether the provider of this name can be asked for the attempt, or about it.
func (a Attempt) IsOf(provider string) bool {
	return a.Provider == "" || provider == "" || a.Provider == provider
}

// AskedOf is IsOf as an error: ErrOtherProvider.
func (a Attempt) AskedOf(provider string) error {
	if a.IsOf(provider) {
		return nil
	}
	return fmt.Errorf("%w: %s was asked of %s, this is %s", ErrOtherProvider, a.GatewayKey(), a.Provider, provider)
}

// Answer is a definite answer of the provider: Charge or Decline. Whatever else comes back is unknown, an error.
type Answer interface{ definite() }

// Charge says that the money was taken.
type Charge struct {
	ID        string // the provider's
	Money     money.Money
	ChargedAt time.Time // by the provider's clock
}

// Decline says that no money was taken and none will be for this attempt.
type Decline struct {
	Code    string // why, in the provider's words: "card_declined"
	Message string // for people; may be empty
	// WriteOff says that it is a person's word, not the provider's: nobody has told the provider that the attempt is over.
	WriteOff bool
}

func (Charge) definite()  {}
func (Decline) definite() {}

var (
	// ErrDeclined is the provider's "no" as the shopper's final answer under this key.
	ErrDeclined = fault.New("payment_declined", fault.NewKey,
		"the payment was declined and no money was taken; the order can be paid with a new key")
	// ErrAmountConflict says that the provider took other money than was asked. A person has to refund it.
	ErrAmountConflict = errors.New("payment: the provider took other money than was asked")
	// ErrChargeFound says that a charge which is said not to have happened stands in the provider's list.
	ErrChargeFound = fault.New("charge_found", fault.AfterFix,
		"the provider's list shows the charge; resolve it as charged, or refund it first")
	// ErrOtherProvider says that a provider would be asked about an attempt that was asked of another one. It would know
	// nothing of it, which proves nothing, and charge it anew.
	ErrOtherProvider = errors.New("payment: the attempt is another provider's")
	// ErrUnreadable says that a line of the provider's list cannot be what it should.
	ErrUnreadable = errors.New("payment: a line of the provider's list cannot be read")
	// ErrNotListed says that the provider's list holds no line of this attempt, which proves nothing.
	ErrNotListed = errors.New("payment: the provider's list does not show this attempt")
)

// Refusal is the decline as an outcome.
func (d Decline) Refusal() *fault.Fault { return ErrDeclined.With("declineCode", d.Code) }

// Check tells whether the answer settles the attempt. Error: ErrAmountConflict.
func (a Attempt) Check(answer Answer) error {
	if charge, ok := answer.(Charge); ok && charge.Money != a.Money {
		return fmt.Errorf("%w: asked %s for %s, taken %s as charge %s",
			ErrAmountConflict, a.Money, a.GatewayKey(), charge.Money, charge.ID)
	}
	return nil
}

// Booking is one line of the provider's list of charges.
type Booking struct {
	OrderID    string
	Attempt    int
	GatewayKey string
	Answer     Answer
	// Unreadable is why nobody can tell what this line of a Statement says: nil, or ErrUnreadable. Then it has no answer,
	// and whatever else it has is a hint for people.
	Unreadable error
}

// FindIn is the answer that the provider's list gives to this attempt: the line under its gateway key. If that is no
// charge, the money may have been taken by an attempt that was written off; any other line is none of its business.
// Error: ErrNotListed.
func (a Attempt) FindIn(list []Booking) (Answer, error) {
	var own, late Answer
	for _, b := range list {
		charge, charged := b.Answer.(Charge)
		switch {
		case b.GatewayKey == a.GatewayKey():
			own = b.Answer
			if charged {
				return own, nil
			}
		case charged && a.Adopts(b.GatewayKey, charge.Money):
			late = charge
		}
	}
	switch {
	case late != nil:
		return late, nil
	case own != nil:
		return own, nil
	default:
		return nil, fmt.Errorf("%w: %s", ErrNotListed, a.GatewayKey())
	}
}

// Adopts tells whether this money, taken under this gateway key by an attempt that was written off, is this attempt's.
func (a Attempt) Adopts(gatewayKey string, taken money.Money) bool {
	return taken == a.Money && a.wroteOff(gatewayKey)
}

// wroteOff tells whether the key is of an attempt that was over when a person's word ended the last such one.
func (a Attempt) wroteOff(gatewayKey string) bool {
	for n := 1; n <= a.WrittenOff; n++ {
		if gatewayKey == (Attempt{OrderID: a.OrderID, Number: n}).GatewayKey() {
			return true
		}
	}
	return false
}

// Gateway is the port to the provider. Every error means unknown: the money may have been taken or not, now or in a
// moment. Implementations send once and never retry.
type Gateway interface {
	// Charge asks for the attempt's money under its gateway key.
	Charge(ctx context.Context, a Attempt) (Answer, error)
	// Lookup lists what the provider has booked for an order, without any effect.
	Lookup(ctx context.Context, orderID string) ([]Booking, error)
}

// Statement is the port to the provider's own account of what it has booked, for comparing it with ours. It has no
// effect.
type Statement interface {
	// Charges is a page of what was booked at or after a time, in the order of booking, limit lines at most. after is the
	// next of the page before, empty for the first; next is empty on the last. Whoever follows it to the end has met each
	// line that stood at that moment once. A line that cannot be read is in its place, Unreadable.
	Charges(ctx context.Context, since time.Time, after string, limit int) (page []Booking, next string, err error)
}
