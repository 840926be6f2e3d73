// Package oversight is what operators see of the service: the audit log.
package oversight

import (
	"context"
	"errors"
	"strconv"
	"time"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// Desk is where operators ask.
type Desk struct {
	Work port.UnitOfWork
}

// MaxPage is how many entries one page of the audit log has at most.
const MaxPage = 500

// ErrCursor says that a page was asked for after an entry that never was.
var ErrCursor = errors.New("no entry ever had this id")

// AuditPage is a page of the audit log, oldest first, as published (the contract, Operators).
type AuditPage struct {
	Entries []AuditView `json:"entries"`
	Next    *string     `json:"next"` // the cursor of the next page; null on the last one
}

// AuditView is an audit entry as published.
type AuditView struct {
	ID             string                `json:"id"` // opaque: a cursor
	At             time.Time             `json:"at"`
	Operation      idempotency.Operation `json:"operation"`
	Actor          string                `json:"actor"`
	IdempotencyKey idempotency.Key       `json:"idempotencyKey"`
	Kind           port.AuditKind        `json:"kind"`
	Detail         string                `json:"detail"`
}

// AuditQuery asks for a page: the entries after a cursor, of one kind or of all.
type AuditQuery struct {
	After string         // empty: from the beginning
	Kind  port.AuditKind // empty: all
	Limit int            // 1 to MaxPage
}

// Audit is a page of the audit log. Error: ErrCursor.
func (d *Desk) Audit(ctx context.Context, q AuditQuery) (page AuditPage, err error) {
	after, err := cursor(q.After)
	if err != nil {
		return AuditPage{}, err
	}
	err = d.Work.Read(ctx, func(tx port.Tx) error {
		last, err := tx.Audit().Last(ctx)
		if err != nil {
			return err
		}
		if after > last {
			return ErrCursor
		}
		entries, err := tx.Audit().After(ctx, after, q.Kind, q.Limit+1)
		if err != nil {
			return err
		}
		page = pageOf(entries, q.Limit)
		return nil
	})
	return page, err
}

func cursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || strconv.FormatInt(number, 10) != text {
		return 0, ErrCursor
	}
	return number, nil
}

// pageOf takes one entry more than the page has: it tells whether there is a next one.
func pageOf(entries []port.AuditEntry, limit int) AuditPage {
	page := AuditPage{Entries: make([]AuditView, 0, len(entries))}
	for _, e := range entries[:min(limit, len(entries))] {
		page.Entries = append(page.Entries, AuditView{
			ID: strconv.FormatInt(e.Number, 10), At: e.At, Operation: e.Scope.Operation, Actor: e.Scope.Actor,
			IdempotencyKey: e.Scope.Key, Kind: e.Kind, Detail: e.Detail,
		})
	}
	if len(entries) > limit {
		page.Next = &page.Entries[limit-1].ID
	}
	return page
}

// SweepAudit deletes all entries that are older than the retention, batch after batch, and tells how many.
func SweepAudit(
	ctx context.Context, w port.UnitOfWork, p idempotent.Pace, retention time.Duration,
) (total int, err error) {
	return p.Sweep(ctx, w, func(ctx context.Context, tx port.Tx, limit int) (int, error) {
		return tx.Audit().Sweep(ctx, tx.Now().Add(-retention), limit)
	})
}
