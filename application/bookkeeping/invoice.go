package bookkeeping

import (
	"time"

	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// Invoice is the document under which a PAID order is entered into the company's books. The payment's day is the one in
// the zone.
func Invoice(company string, zone *time.Location, paid order.State) journal.SourceDocument {
	return journal.SourceDocument{
		Company: company, Type: journal.SalesInvoice, ID: string(paid.ID),
		ServiceDate: journal.DateIn(zone, paid.PaidAt), Total: paid.Total.Units(),
	}
}
