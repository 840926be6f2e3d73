package client

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The document types.
const (
	SalesInvoice   = "sales_invoice"
	PurchaseBill   = "purchase_bill"
	ExpenseClaim   = "expense_claim"
	Adjustment     = "adjustment"
	OpeningBalance = "opening_balance"
)

var documentTypes = []string{SalesInvoice, PurchaseBill, ExpenseClaim, Adjustment, OpeningBalance}

const (
	maxDocumentID = 128 // characters
	maxVersion    = 1<<31 - 1
	maxUnits      = 1<<53 - 1
)

// Key is the posting key: SHA-256, in lower-case hex, of
// companyId|sourceDocumentType|sourceDocumentId|version|serviceDate|total. The service makes the same one. The error
// names the first member, by its JSON name, of which no key can be made. docs/posting-keys.json has inputs with their
// keys.
func (p Posting) Key() (string, error) {
	for _, component := range []struct {
		name  string
		valid bool
	}{
		{"companyId", isCompany(p.CompanyID)},
		{"sourceDocumentType", slices.Contains(documentTypes, p.SourceDocumentType)},
		{"sourceDocumentId", isDocumentID(p.SourceDocumentID)},
		{"version", p.Version >= 0 && p.Version <= maxVersion},
		{"serviceDate", isDay(p.ServiceDate)},
		{"total", p.Total != 0 && p.Total >= -maxUnits && p.Total <= maxUnits},
	} {
		if !component.valid {
			return "", fmt.Errorf("client: no posting key can be made of this %s", component.name)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		p.CompanyID, p.SourceDocumentType, p.SourceDocumentID, strconv.FormatInt(p.Version, 10), p.ServiceDate,
		strconv.FormatInt(p.Total, 10),
	}, "|")))
	return hex.EncodeToString(sum[:]), nil
}

func isCompany(text string) bool {
	return text != "" && len(text) <= maxDocumentID && !strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x21 || r > 0x7e || r == '@' || r == '|'
	})
}

// isDocumentID holds "|" off, which would let two documents have one key.
func isDocumentID(text string) bool {
	n := utf8.RuneCountInString(text)
	return utf8.ValidString(text) && n >= 1 && n <= maxDocumentID && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return r == '|' || unicode.IsControl(r) })
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}
