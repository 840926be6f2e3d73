package gormstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

// asBefore takes from a SQLite file what refuses rows that cannot be read: so its rows are as they may have been written
// before it was there.
func asBefore(t *testing.T, name string, d gormtest.Database) {
	t.Helper()
	if name != "SQLite" {
		return
	}
	for _, trigger := range []string{"orders_readable_update", "orders_readable_lines", "journal_entries_readable_update"} {
		d.Exec(t, "DROP TRIGGER "+trigger)
	}
}

func TestTheSchemaKnowsTheCurrenciesOfTheProgram(t *testing.T) {
	rows, err := gormtest.SQLite(t).SQL(t).QueryContext(t.Context(), "SELECT code FROM currencies ORDER BY code")
	require.NoError(t, err)
	defer func() { assert.NoError(t, rows.Close()) }()
	var stored, known []string
	for rows.Next() {
		var code string
		require.NoError(t, rows.Scan(&code))
		stored = append(stored, code)
	}
	require.NoError(t, rows.Err())
	for n := range 26 * 26 * 26 {
		code := string([]byte{byte('A' + n/676), byte('A' + n/26%26), byte('A' + n%26)})
		if _, err := money.ParseCurrency(code); err == nil {
			known = append(known, code)
		}
	}
	assert.Equal(t, known, stored)
}

// afterTheYear9999 and beforeTheYear0 are times, in µs, that RFC 3339 cannot write.
const (
	afterTheYear9999 = "253402300800000000"
	beforeTheYear0   = "-62167219200000001"
)

// A row that the program could not read is refused, whoever writes it.
func TestNoHandWritesAnOrderThatCannotBeReadOnSQLite(t *testing.T) {
	d := gormtest.SQLite(t)
	const line = `{"sku":"tea","name":"a","quantity":1,"unitPrice":1000}`
	whole := row{
		"id": "'o-1'", "customer_id": "'alice'", "status": "'PLACED'", "amount": "1000", "currency": "'JPY'", "placed_at": "1",
		"version": "1", "lines": quoted(linesOf(line)),
	}
	d.Exec(t, whole.into("orders"))
	for what, lines := range map[string]string{
		"no lines":                    linesOf(),
		"a line without a member":     linesOf(line, `{"sku":"tea","name":"a","quantity":1}`),
		"a member twice":              linesOf(`{"sku":"tea","name":"a","quantity":1,"unitPrice":1000,"unitPrice":1}`),
		"a member too many":           linesOf(`{"sku":"tea","name":"a","quantity":1,"unitPrice":1000,"x":1}`),
		"a quantity in quotes":        linesOf(strings.Replace(line, `:1,`, `:"1",`, 1)),
		"a fraction":                  linesOf(strings.Replace(line, `:1,`, `:1.5,`, 1)),
		"a number that is no integer": linesOf(strings.Replace(line, `1000`, `1e3`, 1)),
		"a price beyond all money":    linesOf(strings.Replace(line, `1000`, `99999999999999999999`, 1)),
		"an sku that is no text":      linesOf(strings.Replace(line, `"tea"`, `7`, 1)),
		"a line that is null":         linesOf(`null`),
		"JSON that only SQLite reads": `[{sku:"tea",name:"a",quantity:1,unitPrice:1000}]`,
		"a hexadecimal number":        linesOf(strings.Replace(line, `1000`, `0x10`, 1)),
		"a comma at the end":          `[` + line + `,]`,
	} {
		refuses(t, d, what, whole.with("id", "'o-2'").with("lines", quoted(lines)).into("orders"))
		refuses(t, d, what, "UPDATE orders SET lines = "+quoted(lines))
	}
	for what, set := range map[string]string{
		"a currency that is none":         "currency = 'XXX'",
		"an attempt in no currency":       "attempt_currency = 'XTS', attempt = 1, attempt_amount = 1, attempt_begun_at = 1",
		"a time that cannot be written":   "placed_at = " + afterTheYear9999,
		"a time before all calendars":     "placed_at = " + beforeTheYear0,
		"an attempt begun after all days": "attempt_begun_at = " + afterTheYear9999,
		"a payment after all days":        "paid_at = " + afterTheYear9999,
		"a cancelling after all days":     "cancelled_at = " + afterTheYear9999,
	} {
		refuses(t, d, what, "UPDATE orders SET "+set)
		column, value, _ := strings.Cut(strings.Split(set, ", ")[0], " = ")
		refuses(t, d, what, whole.with("id", "'o-2'").with(column, value).into("orders"))
	}
	d.Exec(t, "UPDATE orders SET status = 'CANCELLED'")
}

func TestNoHandWritesAnEntryThatCannotBeReadOnSQLite(t *testing.T) {
	d := gormtest.SQLite(t)
	whole := byHand("SQLite")
	d.Exec(t, whole.into("journal_entries"))
	for what, bad := range map[string]row{
		"a currency that is none":       whole.with("currency", "'XXX'"),
		"a day that is none":            whole.with("service_date", "'2025-02-30'"),
		"a month that is none":          whole.with("service_date", "'2025-13-01'"),
		"a time that cannot be written": whole.with("posted_at", afterTheYear9999),
		"a member twice": whole.with("lines", quoted(linesOf(
			`{"account":"a","side":"debit","side":"credit","amount":1000}`, credit))),
		"a member in capitals beside it": whole.with("lines", quoted(linesOf(
			`{"account":"a","side":"debit","amount":1000,"Amount":1}`, credit))),
		"a member too many":           whole.with("lines", quoted(linesOf(`{"account":"a","side":"debit","amount":1000,"x":1}`, credit))),
		"JSON that only SQLite reads": whole.with("lines", quoted(`[{account:"a",side:"debit",amount:1000},`+credit+`]`)),
	} {
		fresh := bad.with("id", quoted(string(journal.NewID()))).with("posting_key", quoted(strings.Repeat("1", 64)))
		refuses(t, d, what, fresh.into("journal_entries"))
		for column := range bad {
			if bad[column] != whole[column] {
				refuses(t, d, what, "UPDATE journal_entries SET "+column+" = "+bad[column])
			}
		}
	}
}

func TestNoHandWritesATimeThatCannotBeReadOnSQLite(t *testing.T) {
	d := gormtest.SQLite(t)
	for table, whole := range map[string]row{
		"idempotency_records": {
			"operation": "'o'", "actor": "'a'", "idempotency_key": "'k'", "fingerprint": "'v1:'", "token": "'t'",
			"status": "'IN_PROGRESS'", "executions": "1", "created_at": "1", "lease_expires_at": "1", "request": "x'00'",
		},
		"simulator_charges": {
			"gateway_key": "'k'", "order_id": "'o'", "attempt": "1", "amount": "1", "currency": "'JPY'", "method": "''",
			"status": "'failed'", "booked_at": "1",
		},
		"audit_log": {
			"number": "1", "event_id": "'e'", "at": "1", "operation": "'o'", "actor": "'a'", "idempotency_key": "'k'",
			"kind": "'takeover'", "detail": "''",
		},
	} {
		columns := map[string][]string{
			"idempotency_records": {"created_at", "lease_expires_at", "recover_from"},
			"simulator_charges":   {"booked_at"}, "audit_log": {"at"},
		}[table]
		for _, column := range columns {
			refuses(t, d, table, whole.with(column, afterTheYear9999).into(table))
			refuses(t, d, table, whole.with(column, beforeTheYear0).into(table))
		}
		d.Exec(t, whole.into(table))
		for _, column := range columns {
			refuses(t, d, table, "UPDATE "+table+" SET "+column+" = "+afterTheYear9999)
		}
	}
	for _, finished := range []string{"completed_at", "expires_at"} {
		refuses(t, d, finished, `UPDATE idempotency_records SET status = 'SUCCEEDED', completed_at = 1, expires_at = 1,
			document = x'00', request = NULL, `+finished+` = `+afterTheYear9999)
	}
	refuses(t, d, "neither disputed nor not", "UPDATE idempotency_records SET disputed = 7")
}

// An infinite lease would be nobody's, and an infinite payment's place in the list before or behind all others.
func TestNoHandWritesATimeThatCannotBeReadOnPostgreSQL(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	s := storetest.OpenShop(d.Open(t, 1), storetest.NewProvider())
	ids := placed(t, s, 1)
	_, err := s.ConfirmPayment(t.Context(), storetest.Payment(ids[0], "k"))
	require.NoError(t, err)
	for table, columns := range map[string][]string{
		"orders":              {"placed_at", "attempt_begun_at", "paid_at"},
		"idempotency_records": {"created_at", "lease_expires_at", "recover_from", "completed_at", "expires_at"},
		"journal_entries":     {"posted_at"},
	} {
		for _, column := range columns {
			for _, at := range []string{"infinity", "-infinity", "10000-01-01 00:00:00+00", "0001-01-01 00:00:00+00 BC"} {
				refuses(t, d, column+" "+at, "UPDATE "+table+" SET "+column+" = '"+at+"'")
			}
		}
	}
	refuses(t, d, "a line of the book", `INSERT INTO simulator_charges
		(gateway_key, order_id, attempt, amount, currency, method, status, booked_at)
		VALUES ('k', 'o', 1, 1, 'JPY', '', 'failed', 'infinity')`)
}

// An entry that was put in by hand under the document of an order, in a currency that is none, stands: the payment does
// not wait behind it, and what was booked is told as a mismatch. Read by itself it is not served.
func TestAPaymentDoesNotWaitBehindAnEntryThatCannotBeRead(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			p := storetest.NewProvider()
			store := d.Open(t, 2)
			s := storetest.OpenShop(store, p)
			ids := placed(t, s, 2)
			_, err := s.ConfirmPayment(t.Context(), storetest.Payment(ids[0], "k-0"))
			require.NoError(t, err)
			var paid order.State
			require.NoError(t, store.Read(t.Context(), func(tx port.Tx) error {
				o, err := tx.Orders().Find(t.Context(), ids[0], "alice")
				paid = o.State()
				return err
			}))
			paid.ID = ids[1] // whose document differs by its id alone
			key := bookkeeping.Invoice(storetest.Company, storetest.Zone, paid).PostingKey()
			asBefore(t, name, d)
			d.Exec(t, `UPDATE journal_entries SET currency = 'XXX', source_document_id = $1, posting_key = $2`,
				string(ids[1]), string(key))

			_, err = s.ConfirmPayment(t.Context(), storetest.Payment(ids[1], "k-1"))
			require.NoError(t, err)
			view, err := s.Order(t.Context(), string(ids[1]), "alice")
			require.NoError(t, err)
			assert.Equal(t, order.Paid, view.Status)
			assert.Equal(t, 1, s.Seen.Count(port.Mismatch))
			var id journal.ID
			row := d.SQL(t).QueryRowContext(t.Context(), `SELECT id FROM journal_entries WHERE posting_key = $1`, string(key))
			require.NoError(t, row.Scan(&id))
			err = store.Read(t.Context(), func(tx port.Tx) error {
				_, err := tx.Journal().Find(t.Context(), id)
				return err
			})
			require.ErrorIs(t, err, port.ErrUnavailable)
			assert.ErrorContains(t, err, string(id), "the log names the row")
		})
	}
}
