package gormstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"kakutei/domain/journal"
	"kakutei/domain/money"
)

// entries implements journal.Repository.
type entries struct{ *session }

type entryRow struct {
	ID                 string
	PostingKey         string
	Fingerprint        string
	CompanyID          string
	SourceDocumentType string
	SourceDocumentID   string
	Version            int64
	ServiceDate        string
	Total              int64
	Currency           string
	PostedBy           string
	PostedAt           instant
	Lines              string
}

// TableName is GORM's way to ask.
func (entryRow) TableName() string { return "journal_entries" }

const entryColumns = `id, posting_key, fingerprint, company_id, source_document_type, source_document_id, version,
	service_date, total, currency, posted_by, posted_at, lines`

// columns are where entryColumns are scanned into.
func (r *entryRow) columns() []any {
	return []any{
		&r.ID, &r.PostingKey, &r.Fingerprint, &r.CompanyID, &r.SourceDocumentType, &r.SourceDocumentID, &r.Version,
		&r.ServiceDate, &r.Total, &r.Currency, &r.PostedBy, &r.PostedAt, &r.Lines,
	}
}

// newEntryTypes are PostgreSQL's of the columns.
var newEntryTypes = typesOf(map[string]string{
	"id": "uuid", "version": "bigint", "total": "bigint", "posted_at": "timestamptz", "lines": "jsonb",
}, columnsIn(entryColumns))

// values are the arguments for all columns, in their order.
func (r *entryRow) values() []any {
	return []any{
		r.ID, r.PostingKey, r.Fingerprint, r.CompanyID, r.SourceDocumentType, r.SourceDocumentID, r.Version,
		r.ServiceDate, r.Total, r.Currency, r.PostedBy, r.PostedAt.value(), r.Lines,
	}
}

// errIDTaken says that another document's entry has the id, or that this one's is being booked this very moment.
var errIDTaken = fmt.Errorf("%w: gormstore: the entry's id is taken", errAgain)

// Post implements journal.Repository. The second statement sees what the first has met, also if that was committed only
// while the first one waited for it. What it sees it locks: so the COMMIT waits for a standby also when nothing was
// inserted. What was booked now, and so at this transaction's time, needs neither.
func (r entries) Post(_ context.Context, e journal.Entry, stands func(journal.Entry)) error {
	booked, err := entryRowOf(e)
	if err != nil {
		return r.fail(err)
	}
	insert := r.sql.often("new entry", booked.values(), func(db *gorm.DB) *gorm.DB {
		return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "posting_key"}}, DoNothing: true}).Create(&booked)
	})
	w := write{statement: insert.typed(newEntryTypes...), taken: taken{column: "id", constraint: "journal_entries_pkey", by: errIDTaken}}
	if r.presumed != nothing { // that there is none yet, too: if one is there, everything starts anew without presuming
		w.miss = errPresumed
		stands(e)
		return r.later(w)
	}
	if err := r.later(w); err != nil {
		return err
	}
	mine := []any{booked.PostingKey, booked.ID, booked.PostedAt.value()}
	look := r.sql.often("entry that was there", mine, func(db *gorm.DB) *gorm.DB {
		return db.Model(&entryRow{}).Select(entryColumns).Clauses(clause.Locking{Strength: "KEY SHARE"}).
			Where("posting_key = ? AND NOT (id = ? AND posted_at = ?)", mine...).Find(&[]entryRow{})
	})
	found := e
	return r.later(write{statement: look.typed("text", "uuid", "timestamptz"), met: func(int) { stands(found) }, each: func(answer row) (err error) {
		found, err = standing(answer)
		return err
	}})
}

// Find implements journal.Repository.
func (r entries) Find(ctx context.Context, id journal.ID) (found journal.Entry, err error) {
	err = r.ask(ctx, r.find("id = ?", string(id)), func(answer row) (err error) {
		found, err = scanEntry(answer)
		return err
	})
	if err == nil && found.ID == "" {
		err = journal.ErrNotFound
	}
	return found, err
}

// FindByKeys implements journal.Repository.
func (r entries) FindByKeys(ctx context.Context, keys []journal.PostingKey) (found []journal.Entry, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var bad journal.Unreadable
	err = r.ask(ctx, r.find("posting_key IN ?", keys), func(answer row) error {
		e, err := scanEntry(answer)
		switch {
		case errors.Is(err, errUnreadable):
			bad = append(bad, journal.UnreadableEntry{PostingKey: e.PostingKey, Why: err})
		case err != nil:
			return err
		default:
			found = append(found, e)
		}
		return nil
	})
	if err == nil && len(bad) > 0 {
		err = bad
	}
	return found, err
}

func (r entries) find(condition string, value any) statement {
	return r.sql.build(func(db *gorm.DB) *gorm.DB {
		return db.Model(&entryRow{}).Select(entryColumns).Where(condition, value).Find(&[]entryRow{})
	})
}

type entryLine struct {
	Account string       `json:"account"`
	Side    journal.Side `json:"side"`
	Amount  int64        `json:"amount"`
}

func entryRowOf(e journal.Entry) (entryRow, error) {
	lines := make([]entryLine, len(e.Lines))
	for i, l := range e.Lines {
		lines[i] = entryLine(l)
	}
	text, err := json.Marshal(lines)
	if err != nil {
		return entryRow{}, fmt.Errorf("gormstore: %w", err)
	}
	d := e.Source
	return entryRow{
		ID: string(e.ID), PostingKey: string(e.PostingKey), Fingerprint: string(e.Fingerprint), CompanyID: d.Company,
		SourceDocumentType: string(d.Type), SourceDocumentID: d.ID, Version: d.Version,
		ServiceDate: d.ServiceDate.String(), Total: d.Total, Currency: e.Currency.Code(), PostedBy: e.PostedBy,
		PostedAt: instant{e.PostedAt}, Lines: string(text),
	}, nil
}

// standing is an entry for who asks what is booked under a key. One whose content cannot be read, since a hand has
// written it, is booked all the same: no payment waits for ever behind it. Without a fingerprint it has nobody's content.
func standing(answer row) (journal.Entry, error) {
	e, err := scanEntry(answer)
	if errors.Is(err, errUnreadable) {
		e.Fingerprint, err = "", nil
	}
	return e, err
}

// scanEntry reads an entry. Beside errUnreadable stands what else is known of it.
func scanEntry(answer row) (journal.Entry, error) {
	var r entryRow
	if err := answer.Scan(r.columns()...); err != nil {
		return journal.Entry{}, err
	}
	e := journal.Entry{
		ID: journal.ID(r.ID), PostingKey: journal.PostingKey(r.PostingKey), Fingerprint: journal.Fingerprint(r.Fingerprint),
		Content: journal.Content{Source: journal.SourceDocument{
			Company: r.CompanyID, Type: journal.DocumentType(r.SourceDocumentType), ID: r.SourceDocumentID,
			Version: r.Version, Total: r.Total,
		}},
		PostedBy: r.PostedBy, PostedAt: r.PostedAt.Time,
	}
	var lines []entryLine
	if err := json.Unmarshal([]byte(r.Lines), &lines); err != nil {
		return e, unreadable("lines of entry", r.ID, err)
	}
	for _, l := range lines {
		e.Lines = append(e.Lines, journal.Line(l))
	}
	var err error
	if e.Source.ServiceDate, err = journal.ParseDate(r.ServiceDate); err != nil {
		return e, unreadable("entry", r.ID, err)
	}
	if e.Currency, err = money.ParseCurrency(r.Currency); err != nil {
		return e, unreadable("entry", r.ID, err)
	}
	return e, nil
}
