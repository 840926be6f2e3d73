// Package journal is the books: balanced entries, each booked once under a key that follows from its source document.
// The entry is its own record: it needs no other and never expires.
package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"kakutei/domain/fault"
	"kakutei/domain/money"
)

var (
	// ErrMismatch says that the document is booked already, with other content.
	ErrMismatch = fault.New("idempotency_key_reused", fault.NewKey,
		"this document is booked with other content; a corrected document needs a new version")
	// ErrDuplicate says that the document is booked already, to a caller who wants to be told so.
	ErrDuplicate = fault.New("duplicate_operation", fault.Never, "this document is booked already")
	// ErrNotFound says that there is no such entry for this caller.
	ErrNotFound = fault.New("not_found", fault.AfterFix, "there is no such journal entry")
)

// ID names an entry: a UUID in its canonical lower-case text.
type ID string

// NewID is a fresh id, ordered by time (UUID version 7, RFC 9562).
func NewID() ID { return ID(uuid.Must(uuid.NewV7()).String()) }

// ParseID reads an id from outside. A text that cannot be an id names no entry: ErrNotFound.
func ParseID(text string) (ID, error) {
	parsed, err := uuid.Parse(text)
	if err != nil || parsed.String() != text {
		return "", ErrNotFound
	}
	return ID(text), nil
}

// Content is what is booked for a document: balanced lines in one currency.
type Content struct {
	Source   SourceDocument
	Currency money.Currency
	Lines    []Line
}

// NewContent checks the document and its lines; without lines the posting rule of the document's type supplies them. The
// error is a fault.Invalid that names what is wrong.
func NewContent(source SourceDocument, currency money.Currency, lines []Line) (Content, error) {
	if err := source.Check(); err != nil {
		return Content{}, err
	}
	if currency == (money.Currency{}) {
		return Content{}, fault.Invalid(fault.Violation{Field: "currency", Detail: money.ErrUnknownCurrency.Error()})
	}
	if len(lines) == 0 {
		lines = rules[source.Type].lines(source.Total)
	}
	if err := check(lines, source.Total); err != nil {
		return Content{}, err
	}
	return Content{Source: source, Currency: currency, Lines: slices.Clone(lines)}, nil
}

// check demands lines that are well formed and debits and credits that are each the document's total.
func check(lines []Line, total int64) error {
	var wrong []fault.Violation
	refuse := func(i int, name, detail string) {
		wrong = append(wrong, fault.Violation{Field: fmt.Sprintf("lines/%d/%s", i, name), Detail: detail})
	}
	for i, l := range lines {
		if err := CheckID(l.Account); err != nil {
			refuse(i, "account", err.Error())
		}
		if l.Side != Debit && l.Side != Credit {
			refuse(i, "side", "must be debit or credit")
		}
		if l.Amount < 1 || l.Amount > money.MaxUnits {
			refuse(i, "amount", fmt.Sprintf("must be 1 to %d", money.MaxUnits))
		}
	}
	if len(wrong) > 0 {
		return fault.Invalid(wrong...)
	}
	want := max(total, -total)
	for _, side := range []Side{Debit, Credit} {
		sum, err := sumOf(lines, side)
		if err != nil || sum != want {
			return fault.Invalid(fault.Violation{
				Field: "lines", Detail: fmt.Sprintf("the %ss must add up to %d", side, want),
			})
		}
	}
	return nil
}

func sumOf(lines []Line, side Side) (int64, error) {
	sum := money.Of(0, money.Currency{})
	for _, l := range lines {
		if l.Side != side {
			continue
		}
		var err error
		if sum, err = sum.Add(money.Of(l.Amount, money.Currency{})); err != nil {
			return 0, err
		}
	}
	return sum.Units(), nil
}

// Fingerprint is the digest of content: a version, a colon and SHA-256 in lower-case hex.
type Fingerprint string

// Fingerprint tells a repeat from a mismatch: it covers the currency and the lines as booked, in their order, each part
// behind its length. The document's components are in the posting key.
func (c Content) Fingerprint() Fingerprint {
	var text []byte
	part := func(s string) {
		text = strconv.AppendInt(text, int64(len(s)), 10)
		text = append(append(text, ':'), s...)
	}
	part(c.Currency.Code())
	for _, l := range c.Lines {
		part(l.Account)
		part(string(l.Side))
		part(strconv.FormatInt(l.Amount, 10))
	}
	sum := sha256.Sum256(text)
	return Fingerprint("v1:" + hex.EncodeToString(sum[:]))
}

// Entry is booked content. It is a value and never changes.
type Entry struct {
	ID          ID
	PostingKey  PostingKey
	Fingerprint Fingerprint
	Content
	PostedBy string
	PostedAt time.Time
}

// Book is the entry that content becomes.
func Book(id ID, c Content, by string, at time.Time) Entry {
	return Entry{
		ID: id, PostingKey: c.Source.PostingKey(), Fingerprint: c.Fingerprint(), Content: c, PostedBy: by, PostedAt: at,
	}
}

// SameContent tells whether the entry is of this content. Its posting key says already that it is of this document.
func (e Entry) SameContent(c Content) bool { return e.Fingerprint == c.Fingerprint() }
