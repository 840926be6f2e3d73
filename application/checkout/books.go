package checkout

import (
	"context"
	"fmt"
	"time"

	"kakutei/application/bookkeeping"
	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// Books are the shop's books.
type Books struct {
	Company string
	Zone    *time.Location // where the shop's day ends
}

// booking is what became of a payment's entry: what was to be booked, and what stands.
type booking struct {
	asked, stands journal.Entry
}

// post enters the paid order into the books. A document that is booked already stays as it is: money that was taken is
// not unconfirmed over its booking.
func (b Books) post(ctx context.Context, tx port.Tx, paid *order.Order, booked *booking) error {
	s := paid.State()
	content, err := journal.NewContent(bookkeeping.Invoice(b.Company, b.Zone, s), s.Total.Currency(), nil)
	if err != nil {
		return err
	}
	booked.asked = journal.Book(journal.NewID(), content, s.Customer, s.PaidAt)
	return tx.Journal().Post(ctx, booked.asked, func(stands journal.Entry) { booked.stands = stands })
}

// tell has it audited if the document had been booked before. What a commit without an answer has met is not known.
func (t *Till) tell(ctx context.Context, b booking) {
	if b.stands.ID == "" || b.stands.ID == b.asked.ID {
		return
	}
	what := port.Duplicate
	if !b.stands.SameContent(b.asked.Content) {
		what = port.Mismatch
	}
	t.Observer.Observe(ctx, port.Event{
		What: what, Scope: bookkeeping.ScopeOf(b.stands),
		Detail: fmt.Sprintf("the order's payment met entry %s, posted by %s", b.stands.ID, b.stands.PostedBy),
	})
}
