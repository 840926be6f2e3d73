package gormstore

import (
	"context"

	"gorm.io/gorm"

	"kakutei/application/port"
	"kakutei/infrastructure/gateway"
)

// Book is the built-in payment provider's book, kept in this store in transactions of its own: it stands for the outside
// world and shares none with an order.
type Book struct{ store *Store }

var _ gateway.Book = Book{}

// Book is the provider's book in this store.
func (s *Store) Book() Book { return Book{s} }

type chargeRow struct {
	GatewayKey  string
	OrderID     string
	Attempt     int
	Amount      int64
	Currency    string
	Method      string
	Status      string
	ChargeID    *string
	DeclineCode *string
	BookedAt    instant
}

// TableName is GORM's way to ask.
func (chargeRow) TableName() string { return "simulator_charges" }

const chargeColumns = `gateway_key, order_id, attempt, amount, currency, method, status, charge_id, decline_code, booked_at`

func (r *chargeRow) columns() []any {
	return []any{
		&r.GatewayKey, &r.OrderID, &r.Attempt, &r.Amount, &r.Currency, &r.Method, &r.Status, &r.ChargeID,
		&r.DeclineCode, &r.BookedAt,
	}
}

// positions say where a line comes to stand in the order of booking. SQLite has one writer at a time, so it is counted.
// PostgreSQL has many, and none shall wait for another: it is the transaction's number, which tells of a gap whether a
// line may still come (see bookmark).
var positions = map[string]string{
	"sqlite":   `(SELECT coalesce(max(position), 0) + 1 FROM simulator_charges)`,
	"postgres": `CAST(CAST(pg_current_xact_id() AS text) AS bigint)`,
}

func (b Book) position() string { return positions[b.store.sql.db.Name()] }

// Enter implements gateway.Book.
func (b Book) Enter(ctx context.Context, line gateway.Line) (stands gateway.Line, entered bool, err error) {
	return b.change(ctx, line, `INSERT INTO simulator_charges (`+chargeColumns+`, position)
VALUES (@key, @order, @attempt, @amount, @currency, @method, @status, @charge, @decline, @booked, `+b.position()+`)
ON CONFLICT DO NOTHING RETURNING `+chargeColumns)
}

// Settle implements gateway.Book.
func (b Book) Settle(ctx context.Context, line gateway.Line) (stands gateway.Line, settled bool, err error) {
	return b.change(ctx, line, `UPDATE simulator_charges
SET status = @status, charge_id = @charge, decline_code = @decline, booked_at = @booked, position = `+b.position()+`
WHERE gateway_key = @key AND status = 'failed' RETURNING `+chargeColumns)
}

// change answers the row that the statement has changed, or else the one that stands.
func (b Book) change(
	ctx context.Context, line gateway.Line, text string,
) (stands gateway.Line, changed bool, err error) {
	err = b.store.do(ctx, port.Fully, func(tx *session) error {
		stands, changed = gateway.Line{}, false
		err := tx.ask(ctx, tx.sql.raw(text, named(line)), func(answer row) error {
			changed = true
			return scanLine(answer, &stands)
		})
		if err != nil || changed {
			return err
		}
		stands, err = b.line(ctx, tx, line.GatewayKey)
		return err
	})
	return stands, changed, err
}

func (Book) line(ctx context.Context, tx *session, key string) (line gateway.Line, err error) {
	q := tx.sql.build(func(db *gorm.DB) *gorm.DB {
		return db.Model(&chargeRow{}).Select(chargeColumns).Where("gateway_key = ?", key).Find(&[]chargeRow{})
	})
	found := false
	err = tx.ask(ctx, q, func(answer row) error {
		found = true
		return scanLine(answer, &line)
	})
	if err == nil && !found {
		err = gateway.ErrNoLine
	}
	return line, err
}

// OfOrder implements gateway.Book.
func (b Book) OfOrder(ctx context.Context, orderID string) (lines []gateway.Line, err error) {
	err = b.store.read(ctx, func(tx *session) error {
		lines = nil
		q := tx.sql.build(func(db *gorm.DB) *gorm.DB {
			return db.Model(&chargeRow{}).Select(chargeColumns).
				Where("order_id = ? AND status <> ?", orderID, string(gateway.Failed)).
				Order("booked_at, attempt").Find(&[]chargeRow{})
		})
		return tx.ask(ctx, q, func(answer row) error {
			var line gateway.Line
			err := scanLine(answer, &line)
			lines = append(lines, line)
			return err
		})
	})
	return lines, err
}

func named(l gateway.Line) map[string]any {
	return map[string]any{
		"key": l.GatewayKey, "order": l.OrderID, "attempt": l.Attempt, "amount": l.Amount, "currency": l.Currency,
		"method": l.Method, "status": string(l.Status), "charge": optional(l.ChargeID),
		"decline": optional(l.DeclineCode), "booked": instant{l.BookedAt},
	}
}

func scanLine(answer row, into *gateway.Line, more ...any) error {
	var r chargeRow
	if err := answer.Scan(append(r.columns(), more...)...); err != nil {
		return err
	}
	*into = gateway.Line{
		GatewayKey: r.GatewayKey, OrderID: r.OrderID, Attempt: r.Attempt, Amount: r.Amount, Currency: r.Currency,
		Method: r.Method, Status: gateway.Status(r.Status), ChargeID: given(r.ChargeID),
		DeclineCode: given(r.DeclineCode), BookedAt: r.BookedAt.Time,
	}
	return nil
}
