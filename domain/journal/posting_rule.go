package journal

import (
	"maps"
	"slices"
)

// Side is the side of an entry that a line is on.
type Side string

// The two sides.
const (
	Debit  Side = "debit"
	Credit Side = "credit"
)

// Line is an amount on one side of one account.
type Line struct {
	Account string
	Side    Side
	Amount  int64 // minor units, positive
}

// rule says which accounts a document of one type is booked on when it brings no lines of its own.
type rule struct{ debit, credit string }

var rules = map[DocumentType]rule{
	SalesInvoice:   {debit: "accounts_receivable", credit: "sales"},
	PurchaseBill:   {debit: "purchases", credit: "accounts_payable"},
	ExpenseClaim:   {debit: "expenses", credit: "accrued_expenses"}, //nolint:gosec // an account, no credential
	Adjustment:     {debit: "adjustments", credit: "suspense"},
	OpeningBalance: {debit: "opening_assets", credit: "opening_equity"},
}

func documentTypes() []string {
	var names []string
	for t := range maps.Keys(rules) {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}

// lines are the rule's two lines. A negative total turns their sides round, not their order.
func (r rule) lines(total int64) []Line {
	if total < 0 {
		return []Line{{r.debit, Credit, -total}, {r.credit, Debit, -total}}
	}
	return []Line{{r.debit, Debit, total}, {r.credit, Credit, total}}
}
