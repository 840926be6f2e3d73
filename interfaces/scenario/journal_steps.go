package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"kakutei/interfaces/client"
)

// journalSteps are what bookkeepers do.
func journalSteps() []step {
	posting := func(times func(blanks) (int, error), change func(*client.Posting)) func(context.Context, *world, blanks) error {
		return func(ctx context.Context, w *world, b blanks) error { return w.post(ctx, b, times, change) }
	}
	asItIs := func(*client.Posting) {}
	return []step{
		sentence("the invoice {text} of {amount}", `the invoice "inv-1" of 110,000 yen`,
			"{amount}の請求書{text}がある", `110,000円の請求書"inv-1"がある`, func(_ context.Context, w *world, b blanks) error {
				return w.givenDocument(client.SalesInvoice, b)
			}),
		sentence("the credit note {text} of {amount}", `the credit note "cn-1" of 5,000 yen`,
			"{amount}の赤伝票{text}がある", `5,000円の赤伝票"cn-1"がある`, func(_ context.Context, w *world, b blanks) error {
				err := w.givenDocument(client.SalesInvoice, b)
				if err == nil {
					w.paper.posting.Total = -w.paper.posting.Total
				}
				return err
			}),
		sentence("{who} posts it", "Alice posts it", "{who}が転記する", "アリスが転記する", posting(once, asItIs)),
		sentence("{who} posts it, but the answer is lost", "Alice posts it, but the answer is lost",
			"{who}が転記するが、応答が失われる", "アリスが転記するが、応答が失われる", func(ctx context.Context, w *world, b blanks) error {
				w.loses = true
				return w.post(ctx, b, once, asItIs)
			}),
		sentence("{who} posts it {n} times at once", "Alice posts it 20 times at once",
			"{who}が同時に{n}回転記する", "アリスが同時に20回転記する", posting(blanks.n, asItIs)),
		sentence("{who} posts it strictly", "Alice posts it strictly", "{who}が厳格に転記する", "アリスが厳格に転記する",
			posting(once, func(p *client.Posting) { p.Strict = true })),
		sentence("{who} posts it with other lines", "Alice posts it with other lines",
			"{who}が別の明細で転記する", "アリスが別の明細で転記する", posting(once, func(p *client.Posting) {
				p.Lines = lines(p.Total, p.Total, "sales")
			})),
		sentence("{who} posts it with lines that do not balance", "Alice posts it with lines that do not balance",
			"{who}が貸借の一致しない明細で転記する", "アリスが貸借の一致しない明細で転記する", posting(once, func(p *client.Posting) {
				p.Lines = lines(p.Total, p.Total+1, "sales")
			})),
		sentence("{who} posts it without a service date", "Alice posts it without a service date",
			"{who}が計上日なしで転記する", "アリスが計上日なしで転記する", posting(once, func(p *client.Posting) { p.ServiceDate = "" })),
		sentence("{who} posts its next version", "Alice posts its next version",
			"{who}が次の版を転記する", "アリスが次の版を転記する", func(ctx context.Context, w *world, b blanks) error {
				if w.paper == nil {
					return errNoDocument
				}
				w.paper.posting.Version++
				w.all = nil
				return w.post(ctx, b, once, asItIs)
			}),
		sentence("{who} posts it for another company", "Alice posts it for another company",
			"{who}が別の会社に転記する", "アリスが別の会社に転記する", func(ctx context.Context, w *world, b blanks) error {
				return w.post(ctx, b, once, func(p *client.Posting) { p.CompanyID += "-other" })
			}),
		sentence("{who} asks for the entry", "Alice asks for the entry", "{who}が仕訳を照会する", "アリスが仕訳を照会する",
			func(ctx context.Context, w *world, b blanks) error {
				p, err := w.person(b.who())
				if err != nil {
					return err
				}
				return w.askForEntry(ctx, p)
			}),
		plain("a bookkeeper of another company asks for the entry", "別の会社の経理担当者が仕訳を照会する",
			func(ctx context.Context, w *world) error {
				other, err := w.against.Callers.Caller("mallory", "company-2")
				if err != nil {
					return err
				}
				return w.askForEntry(ctx, &person{name: "mallory", Caller: other})
			}),
		plain("every answer names the same entry", "どの応答も同じ仕訳を示す", func(_ context.Context, w *world) error {
			named := map[string]bool{}
			for _, e := range w.all {
				if id := entryIn(e); id != "" {
					named[id] = true
				}
			}
			return w.demand(len(named) == 1, "the answers name %d entries", len(named))
		}),
		plain("its key follows from the document", "キーは証憑から定まる", func(_ context.Context, w *world) error {
			if w.paper == nil {
				return errNoDocument
			}
			want, err := w.paper.posting.Key()
			if err != nil {
				return err
			}
			got, _ := member(w.last.answer, "idempotencyKey")
			return w.demand(got == want, "its key is %s, not %s", got, want)
		}),
		plain("the entry is balanced", "仕訳の貸借が一致する", func(_ context.Context, w *world) error {
			var entry client.Entry
			if err := json.Unmarshal(w.last.answer, &entry); err != nil {
				return err
			}
			sum := map[string]int64{}
			for _, line := range entry.Lines {
				sum[line.Side] += line.Amount
			}
			return w.demand(sum[client.Debit] == sum[client.Credit] && sum[client.Debit] == max(entry.Total, -entry.Total),
				"the entry's debits are %d, its credits %d", sum[client.Debit], sum[client.Credit])
		}),
	}
}

var (
	errNoDocument = errors.New("there is no document yet")
	errNoEntry    = errors.New("no answer has named an entry yet")
)

func (w *world) givenDocument(kind string, b blanks) error {
	money, err := b.amount()
	if err != nil {
		return err
	}
	w.paper = &document{posting: client.Posting{
		SourceDocumentType: kind, SourceDocumentID: b.text() + "-" + w.run, ServiceDate: "2025-01-29",
		Total: money.units, Currency: money.currency,
	}}
	return nil
}

func lines(debit, credit int64, account string) []client.EntryLine {
	return []client.EntryLine{
		{Account: "cash", Side: client.Debit, Amount: debit}, {Account: account, Side: client.Credit, Amount: credit},
	}
}

// post posts the document for the company that somebody may post for.
func (w *world) post(
	ctx context.Context, b blanks, times func(blanks) (int, error), change func(*client.Posting),
) error {
	p, err := w.person(b.who())
	n, wrong := times(b)
	switch err := errors.Join(err, wrong); {
	case err != nil:
		return err
	case w.paper == nil:
		return errNoDocument
	case p.Company == "":
		return notApplicable{p.name + " may post for no company"}
	}
	w.paper.posting.CompanyID = p.Company
	posting := w.paper.posting
	change(&posting)
	return w.perform(ctx, &deed{who: p, send: func(ctx context.Context, c *client.Client) error {
		_, err := c.PostJournalEntry(ctx, posting)
		return err
	}}, n)
}

// entryIn is the entry that an answer names.
func entryIn(e exchange) string {
	id, there := member(e.answer, "journalEntryId")
	if !there {
		id, _ = member(e.answer, "error", "details", "originalJournalEntryId")
	}
	return id
}

func (w *world) askForEntry(ctx context.Context, p *person) error {
	for _, e := range w.all {
		if id := entryIn(e); id != "" {
			return w.request(ctx, p, raw{method: http.MethodGet, path: "/api/journal-entries/" + id})
		}
	}
	return errNoEntry
}
