package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Posting is a document to be booked. Its first six members make its posting key. They are the caller's choice, made
// once: a retry has the same version, and a new version is a new entry.
type Posting struct {
	CompanyID          string `json:"companyId"`
	SourceDocumentType string `json:"sourceDocumentType"`
	SourceDocumentID   string `json:"sourceDocumentId"`
	Version            int64  `json:"version,omitempty"`
	ServiceDate        string `json:"serviceDate"` // YYYY-MM-DD
	Total              int64  `json:"total"`       // minor units; negative for a credit note

	Currency string      `json:"currency,omitempty"` // empty: JPY
	Lines    []EntryLine `json:"lines,omitempty"`    // none: the document type's posting rule

	// Strict has a repeat answered 409 instead of 200 (RFC 7240, handling=strict). What PostJournalEntry returns is the
	// same.
	Strict bool `json:"-"`
}

// The sides of an entry's line.
const (
	Debit  = "debit"
	Credit = "credit"
)

// EntryLine is one line of an entry.
type EntryLine struct {
	Account string `json:"account"`
	Side    string `json:"side"`   // Debit or Credit
	Amount  int64  `json:"amount"` // minor units, 1 at least
}

// Posted is the entry that stands for a document.
type Posted struct {
	JournalEntryID string
	PostingKey     string
	// Existed tells that the entry was there already. An earlier try of the same call, whose answer was lost, may have
	// booked it.
	Existed bool
	// At is when an entry that existed was booked; zero for a new one.
	At time.Time

	Answer Answer
}

// Mismatch says that the document is booked with other lines or in another currency, and stays so. A correction is a new
// version.
type Mismatch struct {
	Refusal        *Error // CodeKeyReused
	JournalEntryID string // the entry that stands
	PostingKey     string
	At             time.Time
}

// Error names the entry that stands.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("%v; entry %s stands", m.Refusal, m.JournalEntryID)
}

// Unwrap is the refusal.
func (m *Mismatch) Unwrap() error { return m.Refusal }

// PostJournalEntry books a document, or finds it booked: both are a success, so it may be called as often as one likes.
// It needs no intent, because the key follows from the document. Errors: as of PlaceOrder, and *Mismatch; after an
// *UnknownOutcome post the same document again.
func (c *Client) PostJournalEntry(ctx context.Context, posting Posting) (Posted, error) {
	var answered postedDocument
	of := call{
		operation: OpPostJournalEntry, method: http.MethodPost, path: "/api/journal-entries/post",
		header: http.Header{}, read: answered.readFrom,
	}
	if key, err := posting.Key(); err == nil {
		of.key = Intent(key) // of what has no key the service tells what is wrong with it
	}
	if posting.Strict {
		of.header.Set("Prefer", "handling=strict")
	}
	var err error
	if of.body, err = written(posting, posting.texts()...); err != nil {
		return Posted{}, notSent(of, err)
	}
	answer, err := c.do(ctx, of)
	var problem *Error
	switch {
	case err == nil:
		return Posted{
			JournalEntryID: answered.JournalEntryID, PostingKey: answered.IdempotencyKey, Existed: answered.IsRetry,
			At: answered.OriginalTimestamp, Answer: answer,
		}, nil
	case errors.As(err, &problem):
		return standing(problem)
	default:
		return Posted{}, err
	}
}

// postedDocument is the answer to a posting: 201 for a new entry, 200 for one that existed.
type postedDocument struct {
	JournalEntryID    string    `json:"journalEntryId"`
	IdempotencyKey    string    `json:"idempotencyKey"`
	IsRetry           bool      `json:"isRetry"`
	OriginalTimestamp time.Time `json:"originalTimestamp"`
}

func (p *postedDocument) readFrom(a Answer) error {
	return decoded(a.Body, p, func() bool {
		return p.JournalEntryID != "" && p.IdempotencyKey != "" && p.IsRetry == !p.OriginalTimestamp.IsZero()
	})
}

// standing reads the entry that stands out of a problem: that of a strict repeat is a success, that of a mismatch is not.
func standing(problem *Error) (Posted, error) {
	var document struct {
		Error struct {
			Code    string `json:"code"`
			Details struct {
				ID  string    `json:"originalJournalEntryId"`
				At  time.Time `json:"originalTimestamp"`
				Key string    `json:"idempotencyKey"`
			} `json:"details"`
		} `json:"error"`
	}
	stands := json.Unmarshal(problem.Answer.Body, &document) == nil && document.Error.Details.ID != ""
	details := document.Error.Details
	switch {
	case stands && document.Error.Code == "DUPLICATE_OPERATION":
		return Posted{
			JournalEntryID: details.ID, PostingKey: details.Key, Existed: true, At: details.At, Answer: problem.Answer,
		}, nil
	case stands && document.Error.Code == "DUPLICATE_OPERATION_MISMATCH":
		return Posted{}, &Mismatch{
			Refusal: problem, JournalEntryID: details.ID, PostingKey: details.Key, At: details.At,
		}
	default:
		return Posted{}, problem
	}
}

func (p Posting) texts() []string {
	texts := []string{p.CompanyID, p.SourceDocumentType, p.SourceDocumentID, p.ServiceDate, p.Currency}
	for _, line := range p.Lines {
		texts = append(texts, line.Account, line.Side)
	}
	return texts
}

// Entry is a journal entry as the service tells it.
type Entry struct {
	JournalEntryID     string      `json:"journalEntryId"`
	PostingKey         string      `json:"idempotencyKey"`
	CompanyID          string      `json:"companyId"`
	SourceDocumentType string      `json:"sourceDocumentType"`
	SourceDocumentID   string      `json:"sourceDocumentId"`
	Version            int64       `json:"version"`
	ServiceDate        string      `json:"serviceDate"`
	Total              int64       `json:"total"` // minor units
	Currency           string      `json:"currency"`
	Lines              []EntryLine `json:"lines"`
	PostedAt           time.Time   `json:"postedAt"`
	PostedBy           string      `json:"postedBy"`

	Answer Answer `json:"-"`
}

// JournalEntry reads an entry. Errors: as of Order.
func (c *Client) JournalEntry(ctx context.Context, id string) (Entry, error) {
	var entry Entry
	answer, err := c.do(ctx, call{
		operation: ReadJournalEntry, method: http.MethodGet, path: "/api/journal-entries/" + url.PathEscape(id),
		read: func(a Answer) error {
			return decoded(a.Body, &entry, func() bool { return entry.JournalEntryID != "" && entry.PostingKey != "" })
		},
	})
	if err != nil {
		return Entry{}, err
	}
	entry.Answer = answer
	return entry, nil
}
