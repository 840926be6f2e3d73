package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"kakutei/interfaces/client"
)

// stateSteps are what stands at the end, whoever was answered what.
func stateSteps() []step {
	return []step{
		plain("the order is placed", "注文は未払いである", orderIs(client.StatusPlaced)),
		plain("the order is being paid", "注文は支払い中である", orderIs(client.StatusPaymentPending)),
		plain("the order is paid", "注文は支払い済みである", orderIs(client.StatusPaid)),
		plain("the order is cancelled", "注文は取り消し済みである", orderIs(client.StatusCancelled)),
		sentence("the outcome is {text}", `the outcome is "SUCCEEDED"`, "要求の結果は{text}である", `要求の結果は"SUCCEEDED"である`,
			func(ctx context.Context, w *world, b blanks) error {
				if w.deed == nil {
					return errNothingSent
				}
				if err := w.lookUp(ctx, w.deed.who); err != nil {
					return err
				}
				status, _ := member(w.last.answer, "status")
				return w.demand(status == b.text(), "the outcome is %q, not %q", status, b.text())
			}),
		plain("nothing is on record", "記録は何も残っていない", func(ctx context.Context, w *world) error {
			if w.deed == nil {
				return errNothingSent
			}
			if err := w.lookUp(ctx, w.deed.who); err != nil {
				return err
			}
			return w.demand(w.last.status == http.StatusNotFound, "something is on record")
		}),
		sentence("{who} is charged once", "Alice is charged once", "{who}への課金は1回である", "アリスへの課金は1回である",
			charged(1)),
		sentence("{who} is not charged", "Alice is not charged", "{who}には課金されない", "アリスには課金されない", charged(0)),
		plain("the payment is booked once", "支払いは1回だけ記帳されている", booked),
	}
}

func orderIs(status string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if w.order == nil {
			return errNoOrder
		}
		c, over, err := w.clientOf(w.order.owner)
		if err != nil {
			return err
		}
		order, err := c.Order(ctx, w.order.id)
		if err != nil {
			w.last, _ = over.last()
			return err
		}
		return w.demand(order.Status == status, "the order is %s, not %s", order.Status, status)
	}
}

// charged counts what the provider has taken for the order.
func charged(times int) func(context.Context, *world, blanks) error {
	return func(ctx context.Context, w *world, b blanks) error {
		if _, err := w.person(b.who()); err != nil {
			return err
		}
		switch {
		case w.order == nil:
			return errNoOrder
		case w.against.Charges == nil:
			return notApplicable{"only the provider knows its charges (--gateway URL)"}
		}
		n, err := w.against.Charges(ctx, w.order.id)
		if err != nil {
			return fmt.Errorf("the provider's list: %w", err)
		}
		return w.demand(n == times, "the provider has taken the money %d times", n)
	}
}

// booked posts the document that the payment should have been booked as: if it was, that is a repeat.
func booked(ctx context.Context, w *world) error {
	if w.order == nil {
		return errNoOrder
	}
	bookkeeper, err := w.against.Callers.Caller("bookkeeper", w.against.Company)
	if err != nil {
		return err
	}
	if bookkeeper.Company != w.against.Company {
		return notApplicable{"nobody here may post for " + w.against.Company}
	}
	c, _, err := w.clientOf(w.order.owner)
	if err != nil {
		return err
	}
	order, err := c.Order(ctx, w.order.id)
	if err != nil {
		return err
	}
	if order.PaidAt.IsZero() {
		return errors.New("the order is not paid")
	}
	c, over, err := w.clientOf(&person{Caller: bookkeeper})
	if err != nil {
		return err
	}
	posted, err := c.PostJournalEntry(ctx, client.Posting{
		CompanyID: w.against.Company, SourceDocumentType: client.SalesInvoice, SourceDocumentID: order.OrderID,
		ServiceDate: order.PaidAt.In(w.against.Zone).Format("2006-01-02"), Total: order.Amount, Currency: order.Currency,
	})
	w.last, _ = over.last()
	if err != nil {
		return err
	}
	return w.demand(posted.Existed, "the payment was not booked")
}
