package gormstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
)

// orders implements order.Repository.
type orders struct{ *session }

type orderRow struct {
	ID              string
	CustomerID      string
	Status          string
	Amount          int64
	Currency        string
	PlacedAt        instant
	Version         int
	Attempt         int
	AttemptAmount   *int64
	AttemptCurrency *string
	AttemptMethod   *string
	AttemptBegunAt  instant
	WrittenOff      int
	AttemptProvider *string
	PayingKey       *string
	PaymentID       *string
	ChargeID        *string
	PaidAt          instant
	CancelledAt     instant
	CancelReason    *string
	Lines           string
}

// TableName is GORM's way to ask.
func (orderRow) TableName() string { return "orders" }

const orderColumns = `id, customer_id, status, amount, currency, placed_at, version, attempt, attempt_amount,
	attempt_currency, attempt_method, attempt_begun_at, written_off, attempt_provider, paying_key, payment_id, charge_id,
	paid_at, cancelled_at, cancel_reason, lines`

// columns are where orderColumns are scanned into.
func (r *orderRow) columns() []any {
	return []any{
		&r.ID, &r.CustomerID, &r.Status, &r.Amount, &r.Currency, &r.PlacedAt, &r.Version, &r.Attempt, &r.AttemptAmount,
		&r.AttemptCurrency, &r.AttemptMethod, &r.AttemptBegunAt, &r.WrittenOff, &r.AttemptProvider, &r.PayingKey,
		&r.PaymentID, &r.ChargeID, &r.PaidAt, &r.CancelledAt, &r.CancelReason, &r.Lines,
	}
}

// changeable are the columns that the verbs change.
var changeable = []string{
	"status", "version", "attempt", "attempt_amount", "attempt_currency", "attempt_method", "attempt_begun_at",
	"written_off", "attempt_provider", "paying_key", "payment_id", "charge_id", "paid_at", "cancelled_at", "cancel_reason",
}

// orderTypes are PostgreSQL's of the columns that are no text.
var orderTypes = map[string]string{
	"id": "uuid", "amount": "bigint", "placed_at": "timestamptz", "version": "integer", "attempt": "integer",
	"attempt_amount": "bigint", "attempt_begun_at": "timestamptz", "written_off": "integer", "payment_id": "uuid",
	"paid_at": "timestamptz", "cancelled_at": "timestamptz", "lines": "jsonb",
}

var (
	newOrderTypes    = typesOf(orderTypes, columnsIn(orderColumns))
	lockedOrderTypes = []string{"uuid", "text"}
	openOrderTypes   = []string{"uuid", "text", "text", "uuid", "text"}
	announcedTypes   = []string{"uuid", "text", "text", "text", "text", "text", "uuid"}
)

// values are the arguments for all columns, in their order.
func (r *orderRow) values() []any {
	return []any{
		r.ID, r.CustomerID, r.Status, r.Amount, r.Currency, r.PlacedAt.value(), r.Version, r.Attempt,
		nullable(r.AttemptAmount), nullable(r.AttemptCurrency), nullable(r.AttemptMethod), r.AttemptBegunAt.value(),
		r.WrittenOff, nullable(r.AttemptProvider), nullable(r.PayingKey), nullable(r.PaymentID), nullable(r.ChargeID),
		r.PaidAt.value(), r.CancelledAt.value(), nullable(r.CancelReason), r.Lines,
	}
}

// is tells whether two rows are the same. PostgreSQL writes the lines in its own way.
func (r *orderRow) is(o orderRow) bool {
	var mine, theirs []storedLine
	if r.Lines != o.Lines && (json.Unmarshal([]byte(r.Lines), &mine) != nil || json.Unmarshal([]byte(o.Lines), &theirs) != nil) {
		return false
	}
	o.Lines = r.Lines
	return slices.Equal(mine, theirs) && slices.EqualFunc(r.values(), o.values(), sameValue)
}

// changeables are the arguments for the changeable columns.
func (r *orderRow) changeables() []any {
	return []any{
		r.Status, r.Version, r.Attempt, nullable(r.AttemptAmount), nullable(r.AttemptCurrency),
		nullable(r.AttemptMethod), r.AttemptBegunAt.value(), r.WrittenOff, nullable(r.AttemptProvider),
		nullable(r.PayingKey), nullable(r.PaymentID), nullable(r.ChargeID), r.PaidAt.value(), r.CancelledAt.value(),
		nullable(r.CancelReason),
	}
}

// decisive is what a payment's two transactions decide by. It is asked of an order that was presumed: a statement by hand
// need not change the version.
const decisive = ` AND status = ? AND customer_id = ? AND amount = ? AND currency = ? AND attempt = ? AND written_off = ?
	AND attempt_amount IS NOT DISTINCT FROM ? AND attempt_currency IS NOT DISTINCT FROM ?
	AND paying_key IS NOT DISTINCT FROM ?`

var decisiveTypes = []string{"text", "text", "bigint", "text", "integer", "integer", "bigint", "text", "text"}

// decisives are the arguments for those.
func (r *orderRow) decisives() []any {
	return []any{
		r.Status, r.CustomerID, r.Amount, r.Currency, r.Attempt, r.WrittenOff,
		nullable(r.AttemptAmount), nullable(r.AttemptCurrency), nullable(r.PayingKey),
	}
}

// errOverwritten says that the stored order is not the one that was read: start anew, from a fresh read.
var errOverwritten = fmt.Errorf("%w: the order was changed meanwhile", errAgain)

// Find implements order.Repository.
func (r orders) Find(ctx context.Context, id order.ID, customer string) (*order.Order, error) {
	found, err := r.read(ctx, "order", id, customer)
	if err != nil {
		return nil, err
	}
	r.seen = found
	return found.order()
}

// Lock implements order.Repository.
func (r orders) Lock(ctx context.Context, id order.ID, customer string) (*order.Order, error) {
	if left, ok := r.presume(id, customer); ok {
		return r.held(left)
	}
	found, err := r.read(ctx, "locked order", id, customer, clause.Locking{Strength: "UPDATE"})
	if err != nil {
		return nil, err
	}
	return r.held(found)
}

// held remembers the row of an order that this transaction has locked: nobody else changes it before the transaction's
// end.
func (r orders) held(row orderRow) (*order.Order, error) {
	r.locked = row
	return row.order()
}

func (r orders) read(
	ctx context.Context, name string, id order.ID, customer string, options ...clause.Expression,
) (orderRow, error) {
	q := question{statement: r.sql.often(name, []any{string(id), customer}, func(db *gorm.DB) *gorm.DB {
		return db.Model(&orderRow{}).Select(orderColumns).Clauses(options...).
			Where("id = ? AND customer_id = ?", string(id), customer).Find(&[]orderRow{})
	})}
	var found orderRow
	q.each = func(answer row) error { return answer.Scan(found.columns()...) }
	if len(options) > 0 {
		q.types, q.holds, q.skips = lockedOrderTypes, id, true
	}
	if err := r.askAll(ctx, q); err != nil {
		return orderRow{}, busyOrder(err)
	}
	return found, nil
}

// busyOrder names a wait for the order's row that ran out.
func busyOrder(err error) error {
	if errors.Is(err, errBusy) {
		return order.ErrPaymentInProgress.Because(err)
	}
	return err
}

// announced is an order that will be asked for with LockIfOpen, and what the reservation has brought along of it.
type announced struct {
	id            order.ID
	customer, key string
	row           orderRow // without an id if the reservation was not granted, or the order is not open
}

// lockIfOpenAndMine locks and reads the order for the request that holds the record, if that could change it.
const lockIfOpenAndMine = `SELECT ` + orderColumns + ` FROM orders
WHERE id = @id AND customer_id = @customer AND (status = 'PLACED' OR status = 'PAYMENT_PENDING' AND paying_key = @key)
	AND EXISTS (
		SELECT FROM idempotency_records
		WHERE operation = @operation AND actor = @actor AND idempotency_key = @record AND token = CAST(@token AS uuid)
	)
FOR UPDATE`

// Announce implements order.Repository. In SQLite an exchange costs nothing.
func (r orders) Announce(id order.ID, customer, key string) {
	r.ahead = announced{id: id, customer: customer, key: key}
}

// fetch asks for the announced order; it is sent behind the reservation, and sees it.
func (a *announced) fetch(b builder, n idempotency.Reservation) question {
	a.row = orderRow{}
	args := append([]any{string(a.id), a.customer, a.key}, scopeValues(n.Scope)...)
	args = append(args, string(n.Token))
	q := b.often("announced order", args, func(db *gorm.DB) *gorm.DB {
		return db.Raw(lockIfOpenAndMine, map[string]any{
			"id": string(a.id), "customer": a.customer, "key": a.key, "token": string(n.Token),
			"operation": string(n.Operation), "actor": n.Actor, "record": string(n.Key),
		})
	})
	each := func(answer row) error { return answer.Scan(a.row.columns()...) }
	return question{statement: q.typed(announcedTypes...), each: each, busy: order.ErrPaymentInProgress, holds: a.id}
}

// taken is the announced order, once, if it is the one that is asked for and has come along.
func (a *announced) taken(id order.ID, customer, key string) (orderRow, bool) {
	if a.row.ID == "" || a.id != id || a.customer != customer || a.key != key {
		return orderRow{}, false
	}
	row := a.row
	a.row = orderRow{}
	return row, true
}

// lockIfOpen reads the order, and locks it if the request under @key could change it (order.State.Open). While it waits
// for the lock the order may become one that it could not change: then @open's row is gone, and the other one is still
// what it was before.
const lockIfOpen = `WITH open AS (
	SELECT ` + orderColumns + ` FROM orders
	WHERE id = @id AND customer_id = @customer AND (status = 'PLACED' OR status = 'PAYMENT_PENDING' AND paying_key = @key)
	FOR UPDATE
)
SELECT true, ` + orderColumns + ` FROM open
UNION ALL
SELECT false, ` + orderColumns + ` FROM orders
WHERE id = @id AND customer_id = @customer AND NOT EXISTS (SELECT FROM open)`

// lockIfOpenMany is that for many. One that another transaction holds is not waited for: it is read as it is, and if the
// request could change it, nobody knows whether it is locked (NULL).
const lockIfOpenMany = `WITH open AS (
	SELECT found.* @each CROSS JOIN LATERAL (
		SELECT nth, ` + orderColumns + ` FROM orders
		WHERE id = $1 AND customer_id = $2 AND (status = 'PLACED' OR status = 'PAYMENT_PENDING' AND paying_key = $3)
		FOR UPDATE SKIP LOCKED
	) AS found
)
SELECT nth, true, ` + orderColumns + ` FROM open
UNION ALL
SELECT nth, found.* @each CROSS JOIN LATERAL (
	SELECT CASE WHEN status = 'PLACED' OR status = 'PAYMENT_PENDING' AND paying_key = $3 THEN NULL ELSE false END,
		` + orderColumns + ` FROM orders
	WHERE id = $1 AND customer_id = $2 AND NOT EXISTS (SELECT FROM open WHERE open.nth = each_of.nth) OFFSET 0
) AS found`

// LockIfOpen implements order.Repository. SQLite's transactions have the whole file to themselves: there, reading is
// locking.
func (r orders) LockIfOpen(ctx context.Context, id order.ID, customer, key string) (*order.Order, error) {
	if r.sql.db.Name() == "sqlite" {
		return r.Find(ctx, id, customer)
	}
	q := r.sql.often("open order", []any{string(id), customer, key, string(id), customer}, func(db *gorm.DB) *gorm.DB {
		return db.Raw(lockIfOpen, map[string]any{"id": string(id), "customer": customer, "key": key})
	})
	q.together = together{types: openOrderTypes, text: lockIfOpenMany}
	if row, ok := r.ahead.taken(id, customer, key); ok {
		return r.held(row)
	}
	for range tries {
		var found orderRow
		var locked *bool
		each := func(answer row) error { return answer.Scan(append([]any{&locked}, found.columns()...)...) }
		err := r.askAll(ctx, question{statement: q, each: each, holds: id})
		if err != nil {
			return nil, busyOrder(err)
		}
		switch {
		case found.ID == "":
			return nil, order.ErrNotFound
		case locked == nil: // in company; who is alone waits
			return nil, r.fail(errAlone)
		case *locked:
			return r.held(found)
		}
		o, err := found.order()
		if err != nil || !o.State().Open(key) {
			return o, err
		}
	}
	return nil, order.ErrPaymentInProgress
}

// Add implements order.Repository.
func (r orders) Add(_ context.Context, o *order.Order) error {
	row := orderRowOf(o)
	if err := row.setLines(o.State().Lines); err != nil {
		return r.fail(err)
	}
	r.seen = row
	insert := r.sql.often("new order", row.values(), func(db *gorm.DB) *gorm.DB { return db.Create(&row) })
	return r.later(write{statement: insert.typed(newOrderTypes...)})
}

// Save implements order.Repository. Of an order that this transaction has locked, only what has changed is sent, and the
// row is certain to be there, unless it was presumed (left).
func (r orders) Save(_ context.Context, o *order.Order) error {
	row := orderRowOf(o)
	stored := row.Version - 1
	w := write{
		miss: errOverwritten, busy: order.ErrPaymentInProgress,
		taken: taken{column: "charge_id", constraint: "orders_charge_id", by: order.ErrChargeTaken},
	}
	var before []any
	if r.locked.ID == row.ID && r.locked.Version == stored {
		before = r.locked.changeables()
		if r.presumed != nothing {
			w.miss, w.holds, r.checked = errPresumed, []any{order.ID(row.ID)}, true
		} else {
			w.miss = nil
		}
		r.changed = row
		r.changed.Lines = r.locked.Lines
	}
	c := changesOf(changeable, before, row.changeables())
	name, which, args := "changed order ", "id = ? AND version = ?", []any{row.ID, stored}
	types := []string{"uuid", "integer"}
	if r.presumed != nothing {
		name, which = "presumed order ", which+decisive
		args, types = append(args, r.locked.decisives()...), append(types, decisiveTypes...)
	}
	w.statement = r.sql.often(name+c.name, append(c.values, args...), func(db *gorm.DB) *gorm.DB {
		return db.Model(&orderRow{}).Select(c.columns).Where(which, args...).Updates(row)
	}).typed(typesOf(orderTypes, c.columns, types...)...)
	if r.presumed == asSeen {
		return r.reserveFor(w)
	}
	return r.later(w)
}

// FindAll implements order.Repository.
func (r orders) FindAll(ctx context.Context, ids []order.ID) ([]*order.Order, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return r.list(ctx, r.sql.build(func(db *gorm.DB) *gorm.DB {
		return db.Model(&orderRow{}).Select(orderColumns).Where("id IN ?", ids).Find(&[]orderRow{})
	}))
}

// beforeAll stands before every id: a mark without one.
const beforeAll order.ID = "00000000-0000-0000-0000-000000000000"

// paidAfter names paid_at alone first: so the index over payments is found.
const paidAfter = `SELECT ` + orderColumns + ` FROM orders
WHERE paid_at >= @at AND (paid_at > @at OR id > @id) AND status = 'PAID'
ORDER BY paid_at, id LIMIT @limit`

// PaidAfter implements order.Repository.
func (r orders) PaidAfter(ctx context.Context, m order.Mark, limit int) ([]*order.Order, error) {
	return r.list(ctx, r.sql.raw(paidAfter, map[string]any{
		"at": m.PaidAt.UTC(), "id": string(cmp.Or(m.ID, beforeAll)), "limit": limit,
	}))
}

// list goes on behind an order that cannot be read: the database has done what it was asked.
func (r orders) list(ctx context.Context, q statement) (found []*order.Order, err error) {
	var bad order.Unreadable
	err = r.ask(ctx, q, func(answer row) error {
		var one orderRow
		if err := answer.Scan(one.columns()...); err != nil {
			return err
		}
		if o, err := one.order(); err != nil {
			mark := order.Mark{PaidAt: one.PaidAt.Time, ID: order.ID(one.ID)}
			bad = append(bad, order.UnreadableOrder{Mark: mark, Why: err})
		} else {
			found = append(found, o)
		}
		return nil
	})
	if err == nil && len(bad) > 0 {
		err = bad
	}
	return found, err
}

type storedLine struct {
	SKU       string `json:"sku"`
	Name      string `json:"name"`
	Quantity  int64  `json:"quantity"`
	UnitPrice int64  `json:"unitPrice"`
}

// orderRowOf is the order as its next version is stored, without its lines, which never change.
func orderRowOf(o *order.Order) orderRow {
	s := o.State()
	return orderRow{
		ID: string(s.ID), CustomerID: s.Customer, Status: string(s.Status),
		Amount: s.Total.Units(), Currency: s.Total.Currency().Code(), PlacedAt: instant{s.PlacedAt},
		Version: s.Version + 1, Attempt: s.Attempt.Number,
		AttemptAmount:   optional(s.Attempt.Money.Units()),
		AttemptCurrency: optional(s.Attempt.Money.Currency().Code()),
		AttemptMethod:   optional(s.Attempt.Method), AttemptBegunAt: instant{s.Attempt.BegunAt},
		WrittenOff: s.Attempt.WrittenOff, AttemptProvider: optional(s.Attempt.Provider),
		PayingKey: optional(s.PayingKey), PaymentID: optional(s.PaymentID), ChargeID: optional(s.ChargeID),
		PaidAt: instant{s.PaidAt}, CancelledAt: instant{s.CancelledAt}, CancelReason: optional(s.CancelReason),
	}
}

func (r *orderRow) setLines(lines []order.Line) error {
	stored := make([]storedLine, len(lines))
	for i, l := range lines {
		stored[i] = storedLine(l)
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return fmt.Errorf("gormstore: %w", err)
	}
	r.Lines = string(text)
	return nil
}

// order is the aggregate that was stored; without a row it is order.ErrNotFound. A row that no verb has written, with a
// currency that is none for example, is not served: port.ErrUnavailable.
func (r orderRow) order() (*order.Order, error) {
	if r.ID == "" {
		return nil, order.ErrNotFound
	}
	var stored []storedLine
	if err := json.Unmarshal([]byte(r.Lines), &stored); err != nil {
		return nil, unreadable("lines of order", r.ID, err)
	}
	total, err := moneyOf(r.Amount, r.Currency)
	if err != nil {
		return nil, unreadable("order", r.ID, err)
	}
	s := order.State{
		ID: order.ID(r.ID), Customer: r.CustomerID, Status: order.Status(r.Status), Total: total,
		PlacedAt: r.PlacedAt.Time, PayingKey: given(r.PayingKey), PaymentID: given(r.PaymentID),
		ChargeID: given(r.ChargeID), PaidAt: r.PaidAt.Time, CancelledAt: r.CancelledAt.Time,
		CancelReason: given(r.CancelReason), Version: r.Version,
	}
	for _, l := range stored {
		s.Lines = append(s.Lines, order.Line(l))
	}
	if r.Attempt > 0 {
		asked, err := moneyOf(given(r.AttemptAmount), given(r.AttemptCurrency))
		if err != nil {
			return nil, unreadable("attempt of order", r.ID, err)
		}
		s.Attempt = payment.Attempt{
			OrderID: r.ID, Number: r.Attempt, Money: asked, Method: given(r.AttemptMethod), BegunAt: r.AttemptBegunAt.Time,
			WrittenOff: r.WrittenOff, Provider: given(r.AttemptProvider),
		}
	}
	return order.Rehydrate(s), nil
}

func moneyOf(units int64, code string) (money.Money, error) {
	currency, err := money.ParseCurrency(code)
	return money.Of(units, currency), err
}
