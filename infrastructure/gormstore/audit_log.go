package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// auditLog implements port.AuditLog.
type auditLog struct{ *session }

type auditRow struct {
	Number         int64
	EventID        string
	At             instant
	Operation      string
	Actor          string
	IdempotencyKey string
	Kind           string
	Detail         string
}

// TableName is GORM's way to ask.
func (auditRow) TableName() string { return "audit_log" }

const auditColumns = "number, event_id, at, operation, actor, idempotency_key, kind, detail"

// columns are where auditColumns are scanned into.
func (r *auditRow) columns() []any {
	return []any{&r.Number, &r.EventID, &r.At, &r.Operation, &r.Actor, &r.IdempotencyKey, &r.Kind, &r.Detail}
}

// Append implements port.AuditLog. The head's row is held until the commit: numbers become visible in their order.
func (r auditLog) Append(ctx context.Context, entries []port.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	add := r.sql.raw("UPDATE audit_head SET number = number + @count RETURNING number",
		map[string]any{"count": len(entries)})
	last, err := r.number(ctx, add)
	if err != nil {
		return err
	}
	rows := make([]auditRow, len(entries))
	for i, e := range entries {
		rows[i] = auditRow{
			Number: last - int64(len(entries)-1-i), EventID: e.EventID, At: instant{e.At},
			Operation: string(e.Scope.Operation), Actor: e.Scope.Actor, IdempotencyKey: string(e.Scope.Key),
			Kind: string(e.Kind), Detail: e.Detail,
		}
	}
	insert := r.sql.build(func(db *gorm.DB) *gorm.DB {
		return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "event_id"}}, DoNothing: true}).Create(&rows)
	})
	return r.later(write{statement: insert})
}

// After implements port.AuditLog.
func (r auditLog) After(
	ctx context.Context, number int64, kind port.AuditKind, limit int,
) (entries []port.AuditEntry, err error) {
	q := r.sql.build(func(db *gorm.DB) *gorm.DB {
		db = db.Model(&auditRow{}).Select(auditColumns).Where("number > ?", number)
		if kind != "" {
			db = db.Where("kind = ?", string(kind))
		}
		return db.Order("number").Limit(limit).Find(&[]auditRow{})
	})
	err = r.ask(ctx, q, func(answer row) error {
		var found auditRow
		err := answer.Scan(found.columns()...)
		entries = append(entries, found.entry())
		return err
	})
	return entries, err
}

// Last implements port.AuditLog.
func (r auditLog) Last(ctx context.Context) (int64, error) {
	return r.number(ctx, statement{sql: "SELECT number FROM audit_head"})
}

// number is the one number that is answered.
func (s *session) number(ctx context.Context, q statement) (number int64, err error) {
	err = s.ask(ctx, q, func(answer row) error { return answer.Scan(&number) })
	return number, err
}

// Sweep implements port.AuditLog.
func (r auditLog) Sweep(ctx context.Context, before time.Time, limit int) (int, error) {
	named := map[string]any{"before": instant{before}, "limit": limit}
	if r.sql.db.Name() == "sqlite" {
		return r.sweptSQLite(ctx, sweepAudit, named)
	}
	swept, err := r.number(ctx, r.sql.raw("WITH swept AS ("+sweepAudit+" RETURNING 1) SELECT count(*) FROM swept", named))
	return int(swept), err
}

// The order is the index's: where nothing is that old, nothing is looked through.
const sweepAudit = `DELETE FROM audit_log WHERE number IN (
	SELECT number FROM audit_log WHERE at < @before ORDER BY at LIMIT @limit
)`

func (r auditRow) entry() port.AuditEntry {
	return port.AuditEntry{
		Number: r.Number, EventID: r.EventID, At: r.At.Time, Kind: port.AuditKind(r.Kind), Detail: r.Detail,
		Scope: idempotency.Scope{
			Operation: idempotency.Operation(r.Operation), Actor: r.Actor, Key: idempotency.Key(r.IdempotencyKey),
		},
	}
}
