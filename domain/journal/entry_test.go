package journal_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/journal"
	"kakutei/domain/money"
)

func debit(account string, amount int64) journal.Line {
	return journal.Line{Account: account, Side: journal.Debit, Amount: amount}
}

func credit(account string, amount int64) journal.Line {
	return journal.Line{Account: account, Side: journal.Credit, Amount: amount}
}

// document is a sales invoice over a total.
func document(total int64) journal.SourceDocument {
	return journal.SourceDocument{
		Company: "company-uuid", Type: journal.SalesInvoice, ID: "inv-2025-001", Version: 1,
		ServiceDate: date("2025-01-29"), Total: total,
	}
}

func content(t *testing.T, total int64, lines ...journal.Line) journal.Content {
	t.Helper()
	c, err := journal.NewContent(document(total), money.JPY, lines)
	require.NoError(t, err)
	return c
}

func TestADocumentWithoutLinesIsBookedByItsTypesRule(t *testing.T) {
	for _, c := range []struct {
		kind          journal.DocumentType
		debit, credit string
	}{
		{journal.SalesInvoice, "accounts_receivable", "sales"},
		{journal.PurchaseBill, "purchases", "accounts_payable"},
		{journal.ExpenseClaim, "expenses", "accrued_expenses"},
		{journal.Adjustment, "adjustments", "suspense"},
		{journal.OpeningBalance, "opening_assets", "opening_equity"},
	} {
		for _, none := range [][]journal.Line{nil, {}} {
			d := document(110_000)
			d.Type = c.kind
			booked, err := journal.NewContent(d, money.JPY, none)
			require.NoError(t, err)
			assert.Equal(t, []journal.Line{debit(c.debit, 110_000), credit(c.credit, 110_000)}, booked.Lines, c.kind)

			d.Total = -110_000 // a credit note turns the sides round, not their order
			booked, err = journal.NewContent(d, money.JPY, none)
			require.NoError(t, err)
			assert.Equal(t, []journal.Line{credit(c.debit, 110_000), debit(c.credit, 110_000)}, booked.Lines, c.kind)
		}
	}
}

func TestLinesOfItsOwnAreBookedAsTheyAre(t *testing.T) {
	lines := []journal.Line{
		credit("sales", 100_000), debit("accounts_receivable", 60_000),
		credit("consumption_tax", 10_000), debit("cash", 50_000),
	}
	assert.Equal(t, lines, content(t, 110_000, lines...).Lines)
	assert.Equal(t, lines, content(t, -110_000, lines...).Lines, "who sends lines has turned them round himself")
	assert.Equal(t, money.JPY, content(t, 110_000, lines...).Currency)
}

func TestTheLinesOfAContentAreItsOwn(t *testing.T) {
	lines := []journal.Line{debit("a", 1000), credit("b", 1000)}
	c := content(t, 1000, lines...)
	lines[0].Account = "mine"
	assert.Equal(t, "a", c.Lines[0].Account)
}

func TestBrokenLinesAreRefusedForWhatIsWrongWithThem(t *testing.T) {
	whole := debit("a", 1000) // what a broken line stands beside
	for name, c := range map[string]struct {
		fields string
		lines  []journal.Line
	}{
		"debits above the total":    {"lines", []journal.Line{debit("a", 1001), credit("b", 1000)}},
		"credits below the total":   {"lines", []journal.Line{whole, credit("b", 999)}},
		"balanced, not the total":   {"lines", []journal.Line{debit("a", 999), credit("b", 999)}},
		"twice the total":           {"lines", []journal.Line{whole, whole, credit("b", 2000)}},
		"debits alone":              {"lines", []journal.Line{whole}},
		"credits alone":             {"lines", []journal.Line{credit("a", 1000)}},
		"an amount of 0":            {"lines/1/amount", []journal.Line{whole, credit("b", 0), credit("c", 1000)}},
		"a negative amount":         {"lines/1/amount", []journal.Line{whole, credit("b", -1), credit("c", 1001)}},
		"an amount too large":       {"lines/1/amount", []journal.Line{whole, credit("b", money.MaxUnits+1)}},
		"no account":                {"lines/1/account", []journal.Line{whole, credit("", 1000)}},
		"an account too long":       {"lines/1/account", []journal.Line{whole, credit(strings.Repeat("b", 129), 1000)}},
		"a separator in an account": {"lines/1/account", []journal.Line{whole, credit("b|c", 1000)}},
		"a control character":       {"lines/1/account", []journal.Line{whole, credit("b\n", 1000)}},
		"a space at the end":        {"lines/1/account", []journal.Line{whole, credit("b ", 1000)}},
		"no side":                   {"lines/1/side", []journal.Line{whole, {Account: "b", Amount: 1000}}},
		"a side in capitals":        {"lines/1/side", []journal.Line{whole, {Account: "b", Side: "CREDIT", Amount: 1000}}},
		"nothing":                   {"lines/1/account lines/1/side lines/1/amount", []journal.Line{whole, {}}},
		"two broken lines":          {"lines/0/amount lines/1/account", []journal.Line{debit("a", 0), credit("", 1000)}},
	} {
		_, err := journal.NewContent(document(1000), money.JPY, c.lines)
		assert.Equal(t, c.fields, strings.Join(fieldsOf(t, err), " "), name)
	}
}

func TestASumThatDoesNotFitIsNotTakenForABalance(t *testing.T) {
	const lines = 2049 // of 2^53-1 each: beyond 64 bits, where a wrapped sum would go on
	overflowing := slices.Repeat([]journal.Line{debit("a", money.MaxUnits)}, lines)
	_, err := journal.NewContent(document(money.MaxUnits), money.JPY, append(overflowing, credit("b", money.MaxUnits)))
	assert.Equal(t, []string{"lines"}, fieldsOf(t, err))
}

func TestABadDocumentIsRefusedBeforeItsLines(t *testing.T) {
	d := document(0)
	_, err := journal.NewContent(d, money.JPY, []journal.Line{{}})
	assert.Equal(t, []string{"total"}, fieldsOf(t, err))
}

func TestWhateverIsAcceptedIsBalanced(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Custom(func(t *rapid.T) journal.Line {
			return journal.Line{
				Account: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "account"),
				Side:    rapid.SampledFrom([]journal.Side{journal.Debit, journal.Credit}).Draw(t, "side"),
				Amount:  rapid.Int64Range(-1, 3).Draw(t, "amount"),
			}
		})
		total := rapid.SampledFrom([]int64{1, 2, 3, -2}).Draw(t, "total")
		c, err := journal.NewContent(document(total), money.JPY, rapid.SliceOfN(line, 0, 4).Draw(t, "lines"))
		if err == nil {
			accepted++
			requireBalanced(t, c)
		}
	})
	assert.Positive(t, accepted)
}

func requireBalanced(t require.TestingT, c journal.Content) {
	sums := map[journal.Side]int64{}
	for _, l := range c.Lines {
		require.Positive(t, l.Amount)
		sums[l.Side] += l.Amount
	}
	total := max(c.Source.Total, -c.Source.Total)
	require.Equal(t, map[journal.Side]int64{journal.Debit: total, journal.Credit: total}, sums)
}

func TestTheFingerprintIsOfCurrencyAndLinesInTheirOrder(t *testing.T) {
	c := content(t, 1000, debit("a", 400), debit("b", 600), credit("c", 1000))
	eur, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	otherCurrency := c
	otherCurrency.Currency = eur
	seen := map[journal.Fingerprint]string{c.Fingerprint(): "the content"}
	for name, other := range map[string]journal.Content{
		"another currency": otherCurrency,
		"another order":    content(t, 1000, debit("b", 600), debit("a", 400), credit("c", 1000)),
		"other accounts":   content(t, 1000, debit("a", 400), debit("B", 600), credit("c", 1000)),
		"other amounts":    content(t, 1000, debit("a", 600), debit("b", 400), credit("c", 1000)),
		"a line split":     content(t, 1000, debit("a", 400), debit("b", 300), debit("b", 300), credit("c", 1000)),
		"the sides turned": content(t, 1000, credit("a", 400), credit("b", 600), debit("c", 1000)),
		"texts that shift": content(t, 1000, debit("a5:debit3:4001:b", 400), debit("b", 600), credit("c", 1000)),
		"by rule":          content(t, 1000),
	} {
		assert.NotContains(t, seen, other.Fingerprint(), name)
		seen[other.Fingerprint()] = name
	}
}

// They are in the posting key: an entry is only compared with a content of its own document.
func TestTheFingerprintIsNotOfTheDocument(t *testing.T) {
	c := content(t, 1000)
	other, err := journal.NewContent(journal.SourceDocument{
		Company: "other", Type: journal.SalesInvoice, ID: "other", Version: 7, ServiceDate: date("2026-02-03"), Total: 1000,
	}, money.JPY, c.Lines)
	require.NoError(t, err)
	assert.Equal(t, c.Fingerprint(), other.Fingerprint())
}

// The values are sha256sum's, of the text in the comment.
func TestAFingerprintIsTheSameInEveryRelease(t *testing.T) {
	// 3:JPY19:accounts_receivable5:debit6:1100005:sales6:credit6:110000
	assert.EqualValues(t, "v1:866ce5d197b58ff278fd180bf840de7cd8ca3f9f0dbd884be4113793a6d4630e",
		content(t, 110_000).Fingerprint())
	// 3:JPY9:売掛金5:debit4:10006:売上6:credit4:1000, each length in bytes
	assert.EqualValues(t, "v1:039ada0f0e0db70ff9b7bb0d3dbede354fe09a001ea0f49781ec474cec19cf81",
		content(t, 1000, debit("売掛金", 1000), credit("売上", 1000)).Fingerprint())
}

func TestAnEntryTellsTheContentItIsOfFromAnother(t *testing.T) {
	c := content(t, 1000)
	at := time.Date(2026, 11, 30, 1, 2, 3, 456_000, time.UTC)
	id := journal.NewID()
	e := journal.Book(id, c, "alice", at)
	assert.Equal(t, journal.Entry{
		ID: id, PostingKey: c.Source.PostingKey(), Fingerprint: c.Fingerprint(), Content: c, PostedBy: "alice", PostedAt: at,
	}, e)
	assert.True(t, e.SameContent(content(t, 1000, debit("accounts_receivable", 1000), credit("sales", 1000))),
		"what the rule supplies and what is sent are one content")
	assert.False(t, e.SameContent(content(t, 1000, debit("accounts_receivable", 1000), credit("Sales", 1000))))
}
