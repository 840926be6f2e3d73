package journal_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/journal"
	"kakutei/domain/money"
)

var documentTypes = []journal.DocumentType{
	journal.SalesInvoice, journal.PurchaseBill, journal.ExpenseClaim, journal.Adjustment, journal.OpeningBalance,
}

func TestTwoDocumentsShareAPostingKeyExactlyWhenTheyAreEqual(t *testing.T) {
	equal, different := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a := nearby(t, "a")
		b := a
		if rapid.Bool().Draw(t, "another") {
			b = nearby(t, "b")
		}
		require.NoError(t, a.Check())
		require.NoError(t, b.Check())
		require.Equal(t, a == b, a.PostingText() == b.PostingText(), "%s\n%s", a.PostingText(), b.PostingText())
		require.Equal(t, a == b, a.PostingKey() == b.PostingKey(), "%s\n%s", a.PostingText(), b.PostingText())
		if a == b {
			equal++
		} else {
			different++
		}
	})
	assert.Positive(t, equal)
	assert.Positive(t, different)
}

// nearby draws from few components that are easily taken for each other when they are joined.
func nearby(t *rapid.T, name string) journal.SourceDocument {
	return journal.SourceDocument{
		Company: rapid.SampledFrom([]string{"1", "11"}).Draw(t, name+" company"),
		Type:    rapid.SampledFrom(documentTypes[:2]).Draw(t, name+" type"),
		ID:      rapid.SampledFrom([]string{"1", "11", "é", "e\u0301"}).Draw(t, name+" id"),
		Version: rapid.SampledFrom([]int64{1, 11}).Draw(t, name+" version"),
		ServiceDate: rapid.SampledFrom([]journal.Date{
			date("2025-01-11"), date("2025-11-01"),
		}).Draw(t, name+" date"),
		Total: rapid.SampledFrom([]int64{1, -1}).Draw(t, name+" total"),
	}
}

func TestADocumentCanBeReadBackFromItsPostingText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDocument(t)
		require.NoError(t, d.Check())
		requireReadBack(t, d)
	})
}

// anyDocument is any document that Check passes.
func anyDocument(t *rapid.T) journal.SourceDocument {
	visible := rapid.SampledFrom([]rune(`!"#$%&'()*+,-./09:;<=>?AZ[\]^_az{}~` + "`"))
	text := rapid.OneOf(visible, rapid.SampledFrom([]rune("請求書é\u0301\U0001f375\u200b")))
	total := rapid.Int64Range(1, money.MaxUnits).Draw(t, "total")
	if rapid.Bool().Draw(t, "credit note") {
		total = -total
	}
	return journal.SourceDocument{
		Company: rapid.StringOfN(visible, 1, journal.MaxIDLength, -1).Draw(t, "company"),
		Type:    rapid.SampledFrom(documentTypes).Draw(t, "type"),
		ID:      rapid.StringOfN(text, 1, journal.MaxIDLength, -1).Draw(t, "id"),
		Version: rapid.Int64Range(0, journal.MaxVersion).Draw(t, "version"),
		// The days around which calendars go wrong are the date's own test.
		ServiceDate: rapid.SampledFrom([]journal.Date{
			date("0001-01-01"), date("2024-02-29"), date("2025-01-29"), date("9999-12-31"),
		}).Draw(t, "date"),
		Total: total,
	}
}

// requireReadBack shows that no other document has this one's text: whatever can be read back is unambiguous.
func requireReadBack(t require.TestingT, d journal.SourceDocument) {
	parts := strings.Split(d.PostingText(), "|")
	require.Len(t, parts, 6)
	version, err := strconv.ParseInt(parts[3], 10, 64)
	require.NoError(t, err)
	day, err := journal.ParseDate(parts[4])
	require.NoError(t, err)
	total, err := strconv.ParseInt(parts[5], 10, 64)
	require.NoError(t, err)
	readBack := journal.SourceDocument{
		Company: parts[0], Type: journal.DocumentType(parts[1]), ID: parts[2], Version: version, ServiceDate: day,
		Total: total,
	}
	require.Equal(t, d, readBack)
}

func TestEachComponentThatIsOutsideItsLimitsIsNamed(t *testing.T) {
	nothing := journal.SourceDocument{Version: -1}
	assert.Equal(t, []string{
		"companyId", "sourceDocumentType", "sourceDocumentId", "version", "serviceDate", "total",
	}, fieldsOf(t, nothing.Check()))
}

func TestAnIDThatIsNotUnicodeIsRefused(t *testing.T) {
	for _, id := range []string{"\xff", "inv\xc3", "\xed\xa0\x80" /* a surrogate */} {
		assert.Error(t, journal.CheckID(id), "%q", id)
	}
}

func TestAnEntryIDIsACanonicalUUIDOrNamesNoEntry(t *testing.T) {
	id := journal.NewID()
	parsed, err := journal.ParseID(string(id))
	require.NoError(t, err)
	assert.Equal(t, id, parsed)
	for _, text := range []string{
		"", "1", strings.ToUpper(string(id)), "{" + string(id) + "}", "urn:uuid:" + string(id),
		strings.ReplaceAll(string(id), "-", ""), string(id) + " ", string(id)[:35],
	} {
		_, err := journal.ParseID(text)
		assert.ErrorIs(t, err, journal.ErrNotFound, "%q", text)
	}
}

func FuzzNoDocumentSharesItsPostingTextWithAnother(f *testing.F) {
	f.Add("company-uuid", "sales_invoice", "inv-2025-001", int64(1), "2025-01-29", int64(110000))
	f.Add("a", "adjustment", "b|adjustment|c", int64(0), "2025-01-29", int64(-1))
	f.Add("a|adjustment|b", "adjustment", "c", int64(0), "2025-02-29", int64(-1))
	f.Add("C", "opening_balance", "請求書\xff", int64(journal.MaxVersion), "0000-00-00", money.MaxUnits)
	f.Fuzz(func(t *testing.T, company, kind, id string, version int64, day string, total int64) {
		serviceDate, _ := journal.ParseDate(day) // none, if it is not one
		d := journal.SourceDocument{
			Company: company, Type: journal.DocumentType(kind), ID: id, Version: version, ServiceDate: serviceDate,
			Total: total,
		}
		c, err := journal.NewContent(d, money.JPY, nil)
		if err != nil {
			require.NotEmpty(t, fieldsOf(t, err))
			return
		}
		requireReadBack(t, d)
		require.Equal(t, d, c.Source)
		requireBalanced(t, c)
	})
}

func BenchmarkPostingKey(b *testing.B) {
	d := journal.SourceDocument{
		Company: "company-uuid", Type: journal.SalesInvoice, ID: "inv-2025-001", Version: 1,
		ServiceDate: date("2025-01-29"), Total: 110_000,
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(d.PostingKey()) != 64 {
			b.Fatal("no key")
		}
	}
}
