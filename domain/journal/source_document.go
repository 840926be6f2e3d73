package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kakutei/domain/fault"
	"kakutei/domain/money"
)

// DocumentType is what kind of document an entry is booked for.
type DocumentType string

// The document types, each with a posting rule.
const (
	SalesInvoice   DocumentType = "sales_invoice"
	PurchaseBill   DocumentType = "purchase_bill"
	ExpenseClaim   DocumentType = "expense_claim"
	Adjustment     DocumentType = "adjustment"
	OpeningBalance DocumentType = "opening_balance"
)

// Limits of a document's components.
const (
	MaxIDLength = 128 // characters, of ids and accounts
	MaxVersion  = math.MaxInt32
)

// SourceDocument names what is booked: six components, and nothing that a retry could change. The version is the
// caller's: chosen once, kept with the attempt.
type SourceDocument struct {
	Company     string
	Type        DocumentType
	ID          string
	Version     int64
	ServiceDate Date
	Total       int64 // minor units; negative for a credit note
}

// Check names each component that is not within its limits, as a fault.Invalid.
func (d SourceDocument) Check() error {
	var wrong []fault.Violation
	refuse := func(field, detail string) {
		wrong = append(wrong, fault.Violation{Field: field, Detail: detail})
	}
	if err := CheckCompany(d.Company); err != nil {
		refuse("companyId", err.Error())
	}
	if _, known := rules[d.Type]; !known {
		refuse("sourceDocumentType", "must be one of "+strings.Join(documentTypes(), ", "))
	}
	if err := CheckID(d.ID); err != nil {
		refuse("sourceDocumentId", err.Error())
	}
	if d.Version < 0 || d.Version > MaxVersion {
		refuse("version", fmt.Sprintf("must be 0 to %d", MaxVersion))
	}
	if d.ServiceDate == (Date{}) {
		refuse("serviceDate", "must be a real day written YYYY-MM-DD")
	}
	if d.Total == 0 || d.Total > money.MaxUnits || d.Total < -money.MaxUnits {
		refuse("total", fmt.Sprintf("must be -%d to %d and not 0", money.MaxUnits, money.MaxUnits))
	}
	if len(wrong) > 0 {
		return fault.Invalid(wrong...)
	}
	return nil
}

// CheckCompany tells whether a text can be a company: 1 to 128 visible ASCII characters without "@" and "|".
func CheckCompany(text string) error {
	if len(text) < 1 || len(text) > MaxIDLength {
		return fmt.Errorf("must be 1 to %d characters", MaxIDLength)
	}
	for _, c := range []byte(text) {
		if c < 0x21 || c > 0x7e || c == '@' || c == '|' {
			return errors.New(`must be visible ASCII characters without "@" and "|"`)
		}
	}
	return nil
}

// CheckID tells whether a text can be a document's id or an account: 1 to 128 characters, without "|" and control
// characters, and without white space at either end. "|" would let two documents share a posting key.
func CheckID(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return errors.New("must be valid Unicode")
	case n < 1 || n > MaxIDLength:
		return fmt.Errorf("must be 1 to %d characters", MaxIDLength)
	case strings.Contains(text, "|") || strings.ContainsFunc(text, unicode.IsControl):
		return errors.New(`must not contain "|" or control characters`)
	case strings.TrimSpace(text) != text:
		return errors.New("must not begin or end with white space")
	default:
		return nil
	}
}

// PostingKey is the deterministic key of a document's entry: SHA-256 in lower-case hex. Whoever knows the document can
// compute it; it is no secret.
type PostingKey string

// PostingText is the text that is hashed:
// companyId|sourceDocumentType|sourceDocumentId|version|serviceDate|total.
func (d SourceDocument) PostingText() string {
	return strings.Join([]string{
		d.Company, string(d.Type), d.ID, strconv.FormatInt(d.Version, 10), d.ServiceDate.String(),
		strconv.FormatInt(d.Total, 10),
	}, "|")
}

// PostingKey is the hash of PostingText. It is unambiguous for documents that Check has passed.
func (d SourceDocument) PostingKey() PostingKey {
	sum := sha256.Sum256([]byte(d.PostingText()))
	return PostingKey(hex.EncodeToString(sum[:]))
}
