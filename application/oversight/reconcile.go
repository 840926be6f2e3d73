package oversight

import (
	"context"
	"errors"
	"time"

	"kakutei/application/checkout"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// Provider is what the comparison asks of the payment provider. It has no effect there.
type Provider interface {
	payment.Statement
	Lookup(ctx context.Context, orderID string) ([]payment.Booking, error)
}

// Reconciliation compares what the provider has booked with orders and entries. It changes nothing, holds a page of
// each side at a time, and is right while payments go on: whatever looks wrong is looked at again, one order at a time,
// before it is told.
type Reconciliation struct {
	Work     port.UnitOfWork
	Provider Provider
	Name     string                                        // the provider's: what was asked of another one is not compared
	Invoice  func(paid order.State) journal.SourceDocument // how a PAID order is booked
	Page     int                                           // lines and orders at a time; 0: DefaultPage
}

// DefaultPage is how many lines, and how many orders, are compared at a time.
const DefaultPage = 500

const (
	// A PAID order is compared when the provider's list has come that far beyond its payment: then its charge has most
	// likely been met. If not, it is looked up, so nothing but time depends on this.
	listGoesAhead = time.Minute
	// How many PAID orders are remembered as compared until their own turn comes. One that is not remembered is looked up.
	maxRemembered = 10_000
	// How many orders are remembered as told to be unreadable. One that is not remembered is told again.
	maxTold = 10_000
	// How often one order is looked at again because it has changed meanwhile.
	looks = 5
)

// Tally is how much was compared and what came of it.
type Tally struct {
	Since      time.Time
	Charges    int // approved lines of the provider's list
	PaidOrders int // by the time of their payment
	Unresolved int
	Unreadable int // lines, orders and entries that could not be compared
	Findings   map[FindingKind]int
	// Elsewhere counts, by the provider's name, PAID orders that were not compared: another provider was asked for them.
	Elsewhere map[string]int
}

// Whole tells whether everything could be compared.
func (t Tally) Whole() bool { return t.Unreadable == 0 && len(t.Elsewhere) == 0 }

// Total is the number of findings.
func (t Tally) Total() (n int) {
	for _, count := range t.Findings {
		n += count
	}
	return n
}

// Run compares the charges and the payments of the time before now, and tells each finding, and each unresolved charge,
// as soon as it is certain of it. What cannot be read is told and left out, the rest is compared. It sees what stood when
// it began; of what happens meanwhile it may see some.
//
// Errors: the provider's, the store's, and tell's.
func (r Reconciliation) Run(ctx context.Context, window time.Duration, tell func(Finding) error) (Tally, error) {
	var now time.Time
	if err := r.Work.Read(ctx, func(tx port.Tx) error { now = tx.Now(); return nil }); err != nil {
		return Tally{}, err
	}
	if r.Page == 0 {
		r.Page = DefaultPage
	}
	since := now.Add(-window)
	c := &comparison{
		Reconciliation: r, began: now, tell: tell, mark: order.Mark{PaidAt: since}, compared: map[order.ID]bool{},
		told:  map[string]bool{},
		tally: Tally{Since: since, Findings: map[FindingKind]int{}, Elsewhere: map[string]int{}},
	}
	err := c.run(ctx)
	return c.tally, err
}

// comparison is one run on its way through both sides: the provider's list in the order of booking and, behind it, the
// PAID orders in the order of their payments.
type comparison struct {
	Reconciliation
	began    time.Time
	mark     order.Mark        // PAID orders are compared up to here
	compared map[order.ID]bool // PAID orders behind the mark whose charge was met and fits
	told     map[string]bool   // orders that are told to be unreadable
	tell     func(Finding) error
	tally    Tally
}

// errEndless says that the provider's list leads back to where it was.
var errEndless = errors.New("oversight: the provider's list leads back to where it was")

func (c *comparison) run(ctx context.Context) error {
	met := "" // of all cursors one, a later one after twice as many pages: so any circle is noticed
	for after, pages := "", 1; ; pages++ {
		page, next, err := c.Provider.Charges(ctx, c.tally.Since, after, c.Page)
		if err != nil {
			return err
		}
		if next != "" && next == met {
			return errEndless
		}
		if pages&(pages-1) == 0 {
			met = next
		}
		charges := takenIn(page)
		if err := c.charges(ctx, page); err != nil {
			return err
		}
		if next == "" {
			return c.paidOrders(ctx, c.began)
		}
		if len(charges) > 0 {
			if err := c.paidOrders(ctx, charges[len(charges)-1].ChargedAt.Add(-listGoesAhead)); err != nil {
				return err
			}
		}
		after = next
	}
}

// charges compares a page of the provider's list with the orders. The list was read first: an order is marked before it
// is charged, so for each charge there is a running attempt by then, or its outcome.
func (c *comparison) charges(ctx context.Context, page []payment.Booking) error {
	var ids []string
	for _, b := range page {
		ids = append(ids, b.OrderID)
	}
	accounts, err := c.accounts(ctx, ids)
	if err != nil {
		return err
	}
	for _, b := range page {
		if b.Unreadable != nil {
			if err := c.tellUnreadable(b.OrderID, b.Unreadable); err != nil {
				return err
			}
			continue
		}
		charged := takenIn([]payment.Booking{b})
		if len(charged) == 0 || c.isEarlier(charged[0]) {
			continue
		}
		c.tally.Charges++
		if err := c.charge(ctx, accounts[b.OrderID], charged[0]); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) charge(ctx context.Context, a account, t taken) error {
	if !a.fits(t) {
		var err error
		var settled bool
		if a, settled, err = c.again(ctx, a); err != nil {
			return err
		}
		if !settled {
			return c.unresolved(a, t, "the order keeps changing")
		}
	}
	switch {
	case a.unreadable != nil:
		return c.unreadable(a.id, a.unreadable)
	case a.adopts(t):
		return c.unresolved(a, t, "the order is PAYMENT_PENDING: its request or the recovery finds the charge of an attempt "+
			"that was written off")
	case !a.fits(t) && !a.lists(t): // the provider's two lists differ: what one of them shows is taken
		a.charges = append(a.charges, t)
		return c.report(a.findings())
	case !a.fits(t):
		if first, found := c.firstMisfit(a); found && first.gatewayKey == t.gatewayKey {
			return c.report(a.findings())
		}
		return nil // told with another charge of the order
	case a.order.Status == order.PaymentPending:
		return c.unresolved(a, t, "the order is PAYMENT_PENDING: its request, the recovery or an operator settles it")
	}
	s := a.order
	if len(c.compared) < maxRemembered && c.mark.Before(s.Mark()) && !s.PaidAt.After(c.began) {
		c.compared[s.ID] = true
	}
	return nil
}

// paidOrders compares the orders that were paid up to a time.
func (c *comparison) paidOrders(ctx context.Context, until time.Time) error {
	for c.mark.PaidAt.Before(until) {
		page, bad, err := c.paidAfter(ctx)
		if err != nil {
			return err
		}
		last := c.mark
		for _, o := range bad {
			if err := c.unreadable(string(o.ID), o.Why); err != nil {
				return err
			}
			last = o.Mark
		}
		for _, o := range page {
			s := o.State()
			if s.PaidAt.After(until) {
				return nil
			}
			if err := c.paidOrder(ctx, s); err != nil {
				return err
			}
			c.mark = s.Mark()
		}
		if len(page)+len(bad) < c.Page {
			return nil
		}
		if c.mark.Before(last) {
			c.mark = last
		}
	}
	return nil
}

// paidAfter is a page of PAID orders, those that can be read and those that cannot.
func (c *comparison) paidAfter(ctx context.Context) (page []*order.Order, bad order.Unreadable, err error) {
	err = c.Work.Read(ctx, func(tx port.Tx) (err error) {
		page, err = tx.Orders().PaidAfter(ctx, c.mark, c.Page)
		return err
	})
	if errors.As(err, &bad) {
		err = nil
	}
	return page, bad, err
}

// paidOrder compares an order whose charge the list has not shown: it may be older than what was asked for.
func (c *comparison) paidOrder(ctx context.Context, s order.State) error {
	met := c.compared[s.ID]
	if !met && !s.Attempt.IsOf(c.Name) {
		c.tally.Elsewhere[s.Attempt.Provider]++
		return nil
	}
	c.tally.PaidOrders++
	if met {
		delete(c.compared, s.ID)
		return nil
	}
	a, settled, err := c.again(ctx, account{id: string(s.ID), order: s})
	switch {
	case err != nil:
		return err
	case a.unreadable != nil:
		return c.unreadable(a.id, a.unreadable)
	}
	if _, found := c.firstMisfit(a); found || !settled {
		return nil // told when the list comes to that charge, or told already
	}
	return c.report(a.findings())
}

// firstMisfit is the charge with which the order's findings are told: so they are told once. It is one that the list
// since that time shows.
func (c *comparison) firstMisfit(a account) (taken, bool) {
	for _, t := range a.charges {
		if !c.isEarlier(t) && !a.fits(t) {
			return t, true
		}
	}
	return taken{}, false
}

func (c *comparison) isEarlier(t taken) bool { return t.ChargedAt.Before(c.tally.Since) }

// again looks at one order from both sides: the provider's list of it, between two looks at the order that find the
// same. settled is false when it never came to that.
func (c *comparison) again(ctx context.Context, before account) (a account, settled bool, err error) {
	for range looks {
		list, err := c.Provider.Lookup(ctx, before.id)
		if errors.Is(err, payment.ErrUnreadable) {
			before.unreadable, err = err, nil
			return before, true, err
		}
		if err != nil {
			return account{}, false, err
		}
		accounts, err := c.accounts(ctx, []string{before.id})
		if err != nil {
			return account{}, false, err
		}
		a = accounts[before.id]
		a.charges = takenIn(list)
		if a.sameAs(before) || a.isUnreadable() {
			return a, true, nil
		}
		before = a
	}
	return a, false, nil
}

// sameAs tells that nothing has happened to the order between two looks. A record that is gone at the first look and an
// order that is what it was at the second one: so it was not the order's outcome that ended the record.
func (a account) sameAs(before account) bool {
	return a.order.Version == before.order.Version && a.order.Status == before.order.Status &&
		a.abandoned == before.abandoned
}

// accounts are the store's side of the orders: each with its entry if it is PAID.
func (c *comparison) accounts(ctx context.Context, ids []string) (accounts map[string]account, err error) {
	var wanted []order.ID
	for _, id := range ids {
		if known, err := order.ParseID(id); err == nil { // what cannot be an id is no order's
			wanted = append(wanted, known)
		}
	}
	err = c.Work.Read(ctx, func(tx port.Tx) error {
		accounts = map[string]account{}
		for _, id := range ids {
			accounts[id] = account{id: id}
		}
		orders, err := tx.Orders().FindAll(ctx, wanted)
		var bad order.Unreadable
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		for _, o := range bad {
			accounts[string(o.ID)] = account{id: string(o.ID), unreadable: o.Why}
		}
		for _, o := range orders {
			s := o.State()
			a := account{id: string(s.ID), order: s, elsewhere: !s.Attempt.IsOf(c.Name)}
			if a.abandoned, err = abandoned(ctx, tx, s); err != nil {
				return err
			}
			accounts[a.id] = a
		}
		return c.entries(ctx, tx, accounts)
	})
	return accounts, err
}

// abandoned tells that no record is in progress by which the order's running attempt could come to its end.
func abandoned(ctx context.Context, tx port.Tx, s order.State) (bool, error) {
	if s.Status != order.PaymentPending {
		return false, nil
	}
	r, err := tx.Records().Find(ctx, idempotency.Scope{
		Operation: checkout.OpConfirmPayment, Actor: s.Customer, Key: idempotency.Key(s.PayingKey),
	})
	if errors.Is(err, idempotency.ErrNotFound) {
		return true, nil
	}
	return r.Status != idempotency.InProgress, err
}

// entries adds to each PAID order the entry that stands under its posting key.
func (c *comparison) entries(ctx context.Context, tx port.Tx, accounts map[string]account) error {
	var keys []journal.PostingKey
	bookedUnder := map[journal.PostingKey]account{}
	for _, a := range accounts {
		if a.order.Status == order.Paid {
			key := c.Invoice(a.order).PostingKey()
			keys, bookedUnder[key] = append(keys, key), a
		}
	}
	entries, err := tx.Journal().FindByKeys(ctx, keys)
	var bad journal.Unreadable
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	for _, e := range entries {
		a := bookedUnder[e.PostingKey]
		a.entry = &e
		accounts[a.id] = a
	}
	for _, e := range bad {
		a := bookedUnder[e.PostingKey]
		a.unreadable = e.Why
		accounts[a.id] = a
	}
	return nil
}

// unreadable tells, once, that an order cannot be compared.
func (c *comparison) unreadable(orderID string, why error) error {
	if c.told[orderID] {
		return nil
	}
	if len(c.told) < maxTold {
		c.told[orderID] = true
	}
	return c.tellUnreadable(orderID, why)
}

func (c *comparison) tellUnreadable(orderID string, why error) error {
	c.tally.Unreadable++
	if f, isFault := fault.From(why); isFault && f.Unwrap() != nil { // what a client would be told is not news here
		why = f.Unwrap()
	}
	return c.tell(Finding{Kind: Unreadable, OrderID: orderID, Detail: why.Error()})
}

func (c *comparison) unresolved(a account, t taken, why string) error {
	c.tally.Unresolved++
	return c.tell(Finding{Unresolved, a.id, t.ID, why})
}

func (c *comparison) report(found []Finding) error {
	for _, f := range found {
		c.tally.Findings[f.Kind]++
		if err := c.tell(f); err != nil {
			return err
		}
	}
	return nil
}
