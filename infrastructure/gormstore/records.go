package gormstore

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

// records implements idempotency.Repository.
type records struct{ *session }

type recordRow struct {
	Operation      string
	Actor          string
	IdempotencyKey string
	Fingerprint    string
	Token          string
	Status         string
	Executions     int
	CreatedAt      instant
	LeaseExpiresAt instant
	Recoveries     int
	RecoverFrom    instant
	Disputed       bool
	CompletedAt    instant
	ExpiresAt      instant
	Refusal        *string
	CreatedID      *string
	Request        []byte
	Document       []byte
}

// TableName is GORM's way to ask.
func (recordRow) TableName() string { return "idempotency_records" }

const recordColumns = `operation, actor, idempotency_key, fingerprint, token, status, executions, created_at,
	lease_expires_at, recoveries, recover_from, disputed, completed_at, expires_at, refusal, created_id, request, document`

// columns are where recordColumns are scanned into.
func (r *recordRow) columns() []any {
	return []any{
		&r.Operation, &r.Actor, &r.IdempotencyKey, &r.Fingerprint, &r.Token, &r.Status, &r.Executions, &r.CreatedAt,
		&r.LeaseExpiresAt, &r.Recoveries, &r.RecoverFrom, &r.Disputed, &r.CompletedAt, &r.ExpiresAt, &r.Refusal,
		&r.CreatedID, &r.Request, &r.Document,
	}
}

// replaceable is every column but the scope.
var replaceable = []string{
	"fingerprint", "token", "status", "executions", "created_at", "lease_expires_at", "recoveries", "recover_from",
	"disputed", "completed_at", "expires_at", "refusal", "created_id", "request", "document",
}

// recordTypes are PostgreSQL's of the replaceable columns that are no text.
var recordTypes = map[string]string{
	"token": "uuid", "executions": "integer", "created_at": "timestamptz", "lease_expires_at": "timestamptz",
	"recoveries": "integer", "recover_from": "timestamptz", "disputed": "boolean", "completed_at": "timestamptz",
	"expires_at": "timestamptz", "request": "bytea", "document": "bytea",
}

// values are the arguments for all columns, in their order.
func (r *recordRow) values() []any {
	return append([]any{r.Operation, r.Actor, r.IdempotencyKey}, r.replacement()...)
}

// replacement are the arguments for the replaceable columns.
func (r *recordRow) replacement() []any {
	return []any{
		r.Fingerprint, r.Token, r.Status, r.Executions, r.CreatedAt.value(), r.LeaseExpiresAt.value(), r.Recoveries,
		r.RecoverFrom.value(), r.Disputed, r.CompletedAt.value(), r.ExpiresAt.value(), nullable(r.Refusal),
		nullable(r.CreatedID), r.Request, r.Document,
	}
}

const ofScope = "operation = @operation AND actor = @actor AND idempotency_key = @key"

// reserve inserts the record unless one stands. Then it has waited until whoever wrote that one has committed it, and what
// is asked next sees it.
const reserve = `INSERT INTO idempotency_records (operation, actor, idempotency_key, fingerprint, token, status,
	executions, created_at, lease_expires_at, request)
VALUES (@operation, @actor, @key, @fingerprint, CAST(@token AS uuid), 'IN_PROGRESS', 1,
	now(), now() + CAST(@lease AS bigint) * interval '1 microsecond', @request)
ON CONFLICT DO NOTHING`

// reserveMany is that for many.
const reserveMany = `INSERT INTO idempotency_records (operation, actor, idempotency_key, fingerprint, token, status,
	executions, created_at, lease_expires_at, request)
SELECT $1, $2, $3, $4, $5, 'IN_PROGRESS', 1, now(), now() + $6 * interval '1 microsecond', $7
@each
ORDER BY $1 COLLATE "C", $2 COLLATE "C", $3 COLLATE "C"
ON CONFLICT DO NOTHING`

// Who asks what has become of it is told the record's times; in company his token comes before them.
const (
	reserved     = "\nRETURNING created_at, lease_expires_at"
	reservedMany = "\nRETURNING token, created_at, lease_expires_at"
)

var (
	reservationTypes = []string{"text", "text", "text", "text", "uuid", "bigint", "bytea"}
	standingTypes    = []string{"text", "text", "text", "uuid"}
	scopeTypes       = []string{"text", "text", "text"}
)

// Reserve implements idempotency.Repository. All is asked in one exchange.
func (r records) Reserve(
	ctx context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	if r.sql.db.Name() == "sqlite" {
		return r.reserveAlone(ctx, n, lease)
	}
	mine := recordRowOf(n.Opened(time.Time{}, lease))
	if r.recognize(n.Scope) {
		insert := r.reservation("presumed reservation", reserve, n.Scope, mine, lease)
		insert.together = together{types: reservationTypes, text: reserveMany}
		// A wait that runs out may have been for the key or for the order: who starts anew is told which.
		return n.Opened(r.clock, lease), r.later(write{
			statement: insert, miss: errPresumed, busy: errPresumed, holds: []any{n.Scope},
		})
	}
	insert := r.reservation("reservation", reserve+reserved, n.Scope, mine, lease)
	inserted := false
	var stands recordRow
	questions := []question{
		{statement: insert, each: func(answer row) error {
			inserted = true
			return answer.Scan(&mine.CreatedAt, &mine.LeaseExpiresAt)
		}},
		{statement: r.standing(n), each: func(answer row) error { return answer.Scan(stands.columns()...) }},
	}
	if r.wait == port.Briefly { // who waits longer does so alone
		questions[0].holds = n.Scope
		questions[0].together = together{types: reservationTypes, text: reserveMany + reservedMany, told: 5}
		questions[1].types = standingTypes
		undo := r.withdrawal(n)
		questions[0].undo = &undo
	}
	if r.ahead.id != "" {
		questions = append(questions, r.ahead.fetch(r.sql, n))
	}
	for range tries {
		err := r.askAll(ctx, questions...)
		switch {
		case errors.Is(err, errBusy):
			return idempotency.Record{}, idempotency.ErrInProgress.Because(err)
		case err != nil:
			return idempotency.Record{}, err
		case inserted:
			return mine.record(), nil
		case stands.Operation != "":
			return stands.record(), r.answered(stands)
		}
	}
	return idempotency.Record{}, idempotency.ErrInProgress.Because(errors.New("the record comes and goes"))
}

func (r records) reservation(
	name, text string, s idempotency.Scope, mine recordRow, lease time.Duration,
) statement {
	args := append(scopeValues(s), mine.Fingerprint, mine.Token, lease.Microseconds(), mine.Request)
	return r.sql.often(name, args, func(db *gorm.DB) *gorm.DB {
		return db.Raw(text, scoped(s, map[string]any{
			"fingerprint": mine.Fingerprint, "token": mine.Token, "lease": lease.Microseconds(), "request": mine.Request,
		}))
	})
}

// withdrawal takes a reservation back in the transaction that has made it.
func (r records) withdrawal(n idempotency.Reservation) statement {
	return r.sql.often("withdrawal", append(scopeValues(n.Scope), string(n.Token)), func(db *gorm.DB) *gorm.DB {
		return db.Where(ofScope+" AND token = @token", scoped(n.Scope, map[string]any{"token": string(n.Token)})).
			Delete(&recordRow{})
	})
}

// standing asks for the record that stands in a reservation's way: any but what this transaction has inserted. With the
// reservation's own token it is that of an earlier run.
func (r records) standing(n idempotency.Reservation) statement {
	return r.sql.often("standing record", append(scopeValues(n.Scope), string(n.Token)), func(db *gorm.DB) *gorm.DB {
		return db.Model(&recordRow{}).Select(recordColumns).
			Where(ofScope+" AND NOT (token = @token AND created_at = now())", scoped(n.Scope, map[string]any{
				"token": string(n.Token),
			})).Find(&[]recordRow{})
	})
}

// answered has an answer from a finished record wait until a standby has the record, too.
func (r records) answered(stands recordRow) error {
	if idempotency.Status(stands.Status) == idempotency.InProgress {
		return nil
	}
	scope := stands.record().Scope
	q := r.sql.often("answered record", scopeValues(scope), func(db *gorm.DB) *gorm.DB {
		return db.Raw("SELECT 1 FROM idempotency_records WHERE "+ofScope+behindStandby, scoped(scope, nil))
	})
	return r.later(write{statement: q, busy: idempotency.ErrInProgress})
}

// reserveAlone is for a store whose writing transactions have no company: what it does not find, nobody inserts before
// it does.
func (r records) reserveAlone(
	ctx context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	stands, err := r.Find(ctx, n.Scope)
	if !errors.Is(err, idempotency.ErrNotFound) {
		return stands, err
	}
	opened := n.Opened(r.Now(), lease)
	row := recordRowOf(opened)
	insert := r.sql.often("new record", row.values(), func(db *gorm.DB) *gorm.DB { return db.Create(&row) })
	return opened, r.later(write{statement: insert, busy: idempotency.ErrInProgress})
}

// Replace implements idempotency.Repository. Only what has changed is sent.
func (r records) Replace(_ context.Context, old, next idempotency.Record) error {
	before, row := recordRowOf(old), recordRowOf(next)
	c := changesOf(replaceable, before.replacement(), row.replacement())
	args := append(c.values, append(scopeValues(old.Scope), before.Token, before.Status)...)
	update := r.sql.often("next record "+c.name, args, func(db *gorm.DB) *gorm.DB {
		return db.Model(&recordRow{}).Select(c.columns).
			Where(ofScope+" AND token = @token AND status = @status", scoped(old.Scope, map[string]any{
				"token": before.Token, "status": before.Status,
			})).Updates(row)
	})
	types := typesOf(recordTypes, c.columns, "text", "text", "text", "uuid", "text")
	return r.later(write{statement: update.typed(types...), miss: idempotency.ErrLost, busy: idempotency.ErrInProgress})
}

// Find implements idempotency.Repository.
func (r records) Find(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	return r.find(ctx, "record", s)
}

func (r records) find(
	ctx context.Context, name string, s idempotency.Scope, options ...clause.Expression,
) (idempotency.Record, error) {
	q := r.sql.often(name, scopeValues(s), func(db *gorm.DB) *gorm.DB {
		return db.Model(&recordRow{}).Select(recordColumns).Clauses(options...).Where(ofScope, scoped(s, nil)).
			Find(&[]recordRow{})
	})
	if name == "record" {
		q = q.typed(scopeTypes...)
	}
	var found recordRow
	if err := r.ask(ctx, q, func(answer row) error { return answer.Scan(found.columns()...) }); err != nil {
		return idempotency.Record{}, err
	}
	if found.Operation == "" {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return found.record(), nil
}

// Lock implements idempotency.Repository.
func (r records) Lock(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	found, err := r.find(ctx, "locked record", s, clause.Locking{Strength: "UPDATE"})
	if errors.Is(err, errBusy) {
		return idempotency.Record{}, idempotency.ErrInProgress.Because(err)
	}
	return found, err
}

// Unresolved implements idempotency.Repository.
func (r records) Unresolved(ctx context.Context, due bool, limit int) (found []idempotency.Record, err error) {
	now := instant{r.Now()}
	q := r.sql.build(func(db *gorm.DB) *gorm.DB {
		db = db.Model(&recordRow{}).Select(recordColumns).
			Where("status = 'IN_PROGRESS' AND lease_expires_at <= ?", now)
		order := "created_at, operation, actor, idempotency_key"
		if due {
			const since = "coalesce(recover_from, lease_expires_at)"
			db, order = db.Where("NOT disputed AND "+since+" <= ?", now), since+", "+order
		}
		return db.Order(order).Limit(limit).Find(&[]recordRow{})
	})
	err = r.ask(ctx, q, func(answer row) error {
		var next recordRow
		err := answer.Scan(next.columns()...)
		found = append(found, next.record())
		return err
	})
	return found, err
}

// The dialects name the row they delete each in its own way; in SQLite nobody else holds one.
const (
	sweepPostgres = `WITH swept AS (
	DELETE FROM idempotency_records WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM idempotency_records WHERE status <> 'IN_PROGRESS' AND expires_at <= now()
		ORDER BY expires_at LIMIT @limit FOR UPDATE SKIP LOCKED
	)) RETURNING 1
) SELECT count(*) FROM swept`
	sweepSQLite = `DELETE FROM idempotency_records WHERE rowid IN (
	SELECT rowid FROM idempotency_records WHERE status <> 'IN_PROGRESS' AND expires_at <= @now
	ORDER BY expires_at LIMIT @limit
)`
)

// SweepBatch is how many rows a sweeping transaction should delete at most; zero: it does not matter. In SQLite a row's
// deletion changes a page of each index, and everybody who writes waits for it.
func (s *Store) SweepBatch() int {
	if s.sql.db.Name() == "sqlite" {
		return 100
	}
	return 0
}

// Sweep implements idempotency.Repository.
func (r records) Sweep(ctx context.Context, limit int) (int, error) {
	if r.sql.db.Name() == "sqlite" {
		return r.sweptSQLite(ctx, sweepSQLite, map[string]any{"limit": limit, "now": instant{r.Now()}})
	}
	swept, err := r.number(ctx, r.sql.raw(sweepPostgres, map[string]any{"limit": limit}))
	return int(swept), err
}

// sweptSQLite has SQLite delete, and tells how many rows. To have each row answered would take longer than the deletion.
func (s *session) sweptSQLite(ctx context.Context, text string, named map[string]any) (int, error) {
	if err := s.later(write{statement: s.sql.raw(text, named)}); err != nil {
		return 0, err
	}
	swept, err := s.number(ctx, statement{sql: "SELECT changes()"})
	return int(swept), err
}

// scopeValues are the arguments for ofScope.
func scopeValues(s idempotency.Scope) []any {
	return []any{string(s.Operation), s.Actor, string(s.Key)}
}

func scoped(s idempotency.Scope, more map[string]any) map[string]any {
	named := map[string]any{"operation": string(s.Operation), "actor": s.Actor, "key": string(s.Key)}
	for name, value := range more {
		named[name] = value
	}
	return named
}

func recordRowOf(r idempotency.Record) recordRow {
	row := recordRow{
		Operation: string(r.Operation), Actor: r.Actor, IdempotencyKey: string(r.Key),
		Fingerprint: string(r.Fingerprint), Token: string(r.Token), Status: string(r.Status), Executions: r.Executions,
		CreatedAt: instant{r.CreatedAt}, LeaseExpiresAt: instant{r.LeaseEnds},
		Recoveries: r.Recoveries, RecoverFrom: instant{r.RecoverFrom}, Disputed: r.Disputed,
		CompletedAt: instant{r.CompletedAt}, ExpiresAt: instant{r.ExpiresAt},
		Refusal: optional(string(r.Outcome.Refusal)), CreatedID: optional(r.Outcome.Created),
	}
	if r.Status == idempotency.InProgress {
		row.Request = []byte(r.Request)
	} else {
		row.Document = r.Outcome.Document
	}
	return row
}

func (r recordRow) record() idempotency.Record {
	return idempotency.Record{
		Scope: idempotency.Scope{
			Operation: idempotency.Operation(r.Operation), Actor: r.Actor, Key: idempotency.Key(r.IdempotencyKey),
		},
		Fingerprint: idempotency.Fingerprint(r.Fingerprint), Request: idempotency.Request(r.Request),
		Token: idempotency.Token(r.Token), Status: idempotency.Status(r.Status), Executions: r.Executions,
		CreatedAt: r.CreatedAt.Time, LeaseEnds: r.LeaseExpiresAt.Time,
		Recoveries: r.Recoveries, RecoverFrom: r.RecoverFrom.Time, Disputed: r.Disputed,
		CompletedAt: r.CompletedAt.Time, ExpiresAt: r.ExpiresAt.Time,
		Outcome: idempotency.Outcome{
			Refusal: fault.Code(given(r.Refusal)), Document: r.Document, Created: given(r.CreatedID),
		},
	}
}
