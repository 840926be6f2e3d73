package bookkeeping

import (
	"time"

	"kakutei/domain/journal"
)

// EntryView is an entry as published (CONTRACT.md, Journal entries). Amounts count minor units.
type EntryView struct {
	JournalEntryID     journal.ID           `json:"journalEntryId"`
	IdempotencyKey     journal.PostingKey   `json:"idempotencyKey"`
	CompanyID          string               `json:"companyId"`
	SourceDocumentType journal.DocumentType `json:"sourceDocumentType"`
	SourceDocumentID   string               `json:"sourceDocumentId"`
	Version            int64                `json:"version"`
	ServiceDate        string               `json:"serviceDate"`
	Total              int64                `json:"total"`
	Currency           string               `json:"currency"`
	Lines              []LineView           `json:"lines"`
	PostedAt           time.Time            `json:"postedAt"`
	PostedBy           string               `json:"postedBy"`
}

// LineView is an entry's line as published.
type LineView struct {
	Account string       `json:"account"`
	Side    journal.Side `json:"side"`
	Amount  int64        `json:"amount"`
}

func viewOf(e journal.Entry) EntryView {
	d := e.Source
	v := EntryView{
		JournalEntryID: e.ID, IdempotencyKey: e.PostingKey, CompanyID: d.Company, SourceDocumentType: d.Type,
		SourceDocumentID: d.ID, Version: d.Version, ServiceDate: d.ServiceDate.String(), Total: d.Total,
		Currency: e.Currency.Code(), Lines: make([]LineView, len(e.Lines)), PostedAt: e.PostedAt, PostedBy: e.PostedBy,
	}
	for i, l := range e.Lines {
		v.Lines[i] = LineView(l)
	}
	return v
}

// Receipt is the answer to a posting that was booked now.
type Receipt struct {
	JournalEntryID journal.ID         `json:"journalEntryId"`
	IdempotencyKey journal.PostingKey `json:"idempotencyKey"`
	Status         string             `json:"status"`
}

// Repetition is the answer to a posting that had been booked before.
type Repetition struct {
	Message           string             `json:"message"`
	JournalEntryID    journal.ID         `json:"journalEntryId"`
	IdempotencyKey    journal.PostingKey `json:"idempotencyKey"`
	OriginalTimestamp time.Time          `json:"originalTimestamp"`
	IsRetry           bool               `json:"isRetry"`
}

// View is what the poster reads.
func (p Posted) View() any {
	if p.Repeated {
		return Repetition{
			Message: "Operation already processed", JournalEntryID: p.Entry.ID, IdempotencyKey: p.Entry.PostingKey,
			OriginalTimestamp: p.Entry.PostedAt, IsRetry: true,
		}
	}
	return Receipt{JournalEntryID: p.Entry.ID, IdempotencyKey: p.Entry.PostingKey, Status: "created"}
}
