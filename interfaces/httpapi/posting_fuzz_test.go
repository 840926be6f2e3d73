package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/fault"
	"kakutei/domain/journal"
)

// sent is a posting as encoding/json reads it.
type sent struct {
	CompanyID, SourceDocumentType, SourceDocumentID, ServiceDate string
	Version                                                      *json.Number
	Total                                                        json.Number
	Currency                                                     *string
	Lines                                                        []struct {
		Account string
		Side    journal.Side
		Amount  json.Number
	}
}

// Whatever is accepted is a whole and balanced entry under the key of the document as it was sent; whatever is refused
// says why, and says whether the key is among the reasons.
func FuzzReadPosting(f *testing.F) {
	for _, seed := range []string{
		`{"companyId":"company-uuid","sourceDocumentType":"sales_invoice","sourceDocumentId":"inv-2025-001","version":1,` +
			`"serviceDate":"2025-01-29","total":110000,"currency":"JPY","lines":[` +
			`{"account":"accounts_receivable","side":"debit","amount":110000},` +
			`{"account":"sales","side":"credit","amount":100000},` +
			`{"account":"consumption_tax","side":"credit","amount":10000}]}`,
		`{"companyId":"c","sourceDocumentType":"adjustment","sourceDocumentId":"b|adjustment|c",` +
			`"serviceDate":"2024-02-29","total":-1}`,
		`{"companyId":"c","sourceDocumentType":"opening_balance","sourceDocumentId":"請求書 1","version":null,` +
			`"serviceDate":"9999-12-31","total":9007199254740991,"lines":[]}`,
		`{"companyId":"c","sourceDocumentType":"expense_claim","sourceDocumentId":"\u00e9","version":2147483647,` +
			`"serviceDate":"2025-02-29","total":5e+06}`,
		`{}`, `{"":1}`, `{"total":-0}`, `{"lines":[{"amount":1}],"version":"1"}`, `[`, `{"companyId":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		content, err := ReadPosting(body)
		if err != nil {
			assertTellsWhy(t, body, err)
			return
		}
		var s sent
		require.NoError(t, json.Unmarshal(body, &s))
		version := "0"
		if s.Version != nil {
			version = s.Version.String()
		}
		text := strings.Join([]string{
			s.CompanyID, s.SourceDocumentType, s.SourceDocumentID, version, s.ServiceDate, s.Total.String(),
		}, "|")
		require.Equal(t, text, content.Source.PostingText())
		require.Equal(t, 5, strings.Count(text, "|"), "it can be taken apart in one way only")
		sum := sha256.Sum256([]byte(text))
		require.EqualValues(t, hex.EncodeToString(sum[:]), content.Source.PostingKey())
		_, err = time.Parse(time.DateOnly, s.ServiceDate)
		require.NoError(t, err)
		assertBalanced(t, content)
		if len(s.Lines) == 0 {
			require.Len(t, content.Lines, 2)
			return
		}
		require.Len(t, content.Lines, len(s.Lines))
		for i, l := range content.Lines {
			require.Equal(t, s.Lines[i].Account, l.Account)
			require.Equal(t, s.Lines[i].Side, l.Side)
			require.Equal(t, s.Lines[i].Amount.String(), strconv.FormatInt(l.Amount, 10))
		}
	})
}

func assertBalanced(t *testing.T, c journal.Content) {
	t.Helper()
	sums := map[journal.Side]*big.Int{journal.Debit: new(big.Int), journal.Credit: new(big.Int)}
	for _, l := range c.Lines {
		require.Positive(t, l.Amount)
		sums[l.Side].Add(sums[l.Side], big.NewInt(l.Amount))
	}
	total := new(big.Int).Abs(big.NewInt(c.Source.Total))
	require.Zero(t, total.Cmp(sums[journal.Debit]))
	require.Zero(t, total.Cmp(sums[journal.Credit]))
}

func assertTellsWhy(t *testing.T, body []byte, err error) {
	t.Helper()
	wrong := violationsOf(t, err)
	require.LessOrEqual(t, len(wrong), maxViolations)
	f, _ := fault.From(err)
	ofKey := slices.ContainsFunc(wrong, func(v fault.Violation) bool { return slices.Contains(components, v.Field) })
	saysSo := slices.ContainsFunc(f.Members(), func(m fault.Member) bool { return m.Name == memberError })
	assert.Equal(t, ofKey, saysSo, "%s", body)
}
