package scenario

import (
	"context"
	"errors"
	"time"
)

// Against is the service that scenarios are run against. Only URL and Callers are needed.
type Against struct {
	// URL is the service's base URL. It is asked for at each request: a service that is started again may have moved.
	URL     func() string
	Callers Callers
	// Inside is the way to what only he reaches who runs the service himself. Nil on a black box: steps that need it are
	// not applicable then.
	Inside Inside
	// Charges counts how often the provider has taken an order's money. Nil if nobody here can ask the provider.
	Charges func(ctx context.Context, orderID string) (int, error)
	// Company and Zone are whose books a confirmed payment enters, and where its day ends.
	Company string
	Zone    *time.Location
}

// Inside is what a scenario does to a service that the runner has started itself. The composition root implements it:
// this package knows no store and no provider.
type Inside interface {
	// Hold has the provider keep its next answers back, after it has booked what was asked, until Release.
	Hold()
	// Release has it answer what it has kept back, and from now on.
	Release()
	// ListAway has the provider's list not be readable, or be again.
	ListAway(away bool)
	// StoreAway has the store not be reachable, or be again.
	StoreAway(away bool)
	// LimitRate has the service be started again, and serve each actor so many requests a second; 0: any number.
	LimitRate(perSecond int) error
	// Bug has the next transaction panic.
	Bug()
	// Pass has time go by for all that is on record of an actor.
	Pass(ctx context.Context, actor string, d time.Duration) error
	// Lease is how long a request is its holder's.
	Lease() time.Duration
	// CrashAt has the service crash when it comes to that moment of a payment.
	CrashAt(m Moment)
	// Crash ends the service at once: nobody is answered, and nothing that it had begun reaches the store any more.
	Crash()
	// Restart starts the service again on the same store, if it has crashed.
	Restart() error
	// Recover has the recovery make a round.
	Recover(ctx context.Context) error
	// Reset takes every fault away, and starts a crashed service again.
	Reset() error
}

// Moment is one in the life of a payment.
type Moment string

// The moments, in the order in which a payment comes by.
const (
	BeforeCharge Moment = "before the charge" // on record, the provider is not asked yet
	AfterCharge  Moment = "after the charge"  // the money is taken, nothing of it is written
	BeforeCommit Moment = "before the commit" // the outcome is written, not committed
	AfterCommit  Moment = "after the commit"  // the outcome is committed, nobody is answered
)

// Callers says who somebody in a scenario is to the service.
type Callers interface {
	// Caller is the customer or bookkeeper of that name ("alice"; "operator" is the service's), who may post for the
	// company. Error: ErrNotApplicable when there is none.
	Caller(name, company string) (Caller, error)
}

// Caller is somebody with a token.
type Caller struct {
	Actor   string // as the service knows him
	Company string // for which he may post; empty if for none
	Token   string
}

// ErrNotApplicable says that a step cannot be done here: a black box does not let its inside be seen or touched.
var ErrNotApplicable = errors.New("not applicable here")

// notApplicable says so and why.
type notApplicable struct{ why string }

// Error is the reason.
func (n notApplicable) Error() string { return "not applicable here: " + n.why }

// Is has it be ErrNotApplicable.
func (n notApplicable) Is(target error) bool { return target == ErrNotApplicable }
