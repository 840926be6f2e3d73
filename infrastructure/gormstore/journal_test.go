package gormstore_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/journal"
	"kakutei/infrastructure/gormstore/gormtest"
)

// row is a row as somebody writes it by hand: SQL by column.
type row map[string]string

func (r row) with(column, value string) row {
	r = maps.Clone(r)
	r[column] = value
	return r
}

func (r row) into(table string) string {
	columns := slices.Sorted(maps.Keys(r))
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = r[c]
	}
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// aTime is one in the dialect of a database.
var aTime = map[string]string{"SQLite": "1", "PostgreSQL": "now()"}

// byHand is a whole and balanced entry over 1000 yen.
func byHand(database string) row {
	return row{
		"id": quoted(string(journal.NewID())), "posting_key": quoted(strings.Repeat("0", 64)), "fingerprint": "'v1:'",
		"company_id": "'c'", "source_document_type": "'sales_invoice'", "source_document_id": "'inv-1'", "version": "0",
		"service_date": "'2025-01-29'", "total": "1000", "currency": "'JPY'", "posted_by": "'hand'",
		"posted_at": aTime[database], "lines": quoted(linesOf(debit, credit)),
	}
}

func quoted(text string) string { return "'" + text + "'" }

func linesOf(lines ...string) string { return "[" + strings.Join(lines, ",") + "]" }

// part is a line on one side.
func part(side, amount string) string {
	return `{"account":"a","side":"` + side + `","amount":` + amount + `}`
}

var debit, credit = part("debit", "1000"), part("credit", "1000")

// halfEntries are lists of lines that are not whole and balanced, each in one way.
var halfEntries = map[string]string{
	"no lines":                         linesOf(),
	"debits alone":                     linesOf(debit),
	"credits alone":                    linesOf(credit),
	"unbalanced":                       linesOf(debit, part("credit", "999")),
	"balanced, but half the total":     linesOf(part("debit", "500"), part("credit", "500")),
	"balanced, but twice the total":    linesOf(debit, credit, debit, credit),
	"both on one side":                 linesOf(debit, part("debit", "1000")),
	"a zero amount":                    linesOf(debit, credit, part("debit", "0")),
	"negative amounts":                 linesOf(part("debit", "1001"), part("debit", "-1"), credit),
	"a third side":                     linesOf(debit, credit, part("both", "1")),
	"a side in capitals":               linesOf(debit, credit, part("Debit", "1")),
	"fractions that add up":            linesOf(part("debit", "999.5"), part("debit", "0.5"), credit),
	"an amount written as a fraction":  linesOf(part("debit", "1000.0"), credit),
	"an amount in quotes":              linesOf(part("debit", `"1000"`), credit),
	"an amount that is true":           linesOf(debit, credit, part("debit", "true")),
	"an amount that is null":           linesOf(debit, credit, part("debit", "null")),
	"a line without an amount":         linesOf(debit, credit, `{"account":"a","side":"debit"}`),
	"a line without a side":            linesOf(debit, credit, `{"account":"a","amount":1}`),
	"a line without an account":        linesOf(`{"side":"debit","amount":1000}`, credit),
	"an account that is empty":         linesOf(`{"account":"","side":"debit","amount":1000}`, credit),
	"an account that is null":          linesOf(`{"account":null,"side":"debit","amount":1000}`, credit),
	"an account that is no text":       linesOf(`{"account":7,"side":"debit","amount":1000}`, credit),
	"an empty line":                    linesOf(debit, credit, `{}`),
	"a line that is JSON in quotes":    linesOf(`"`+strings.ReplaceAll(debit, `"`, `\"`)+`"`, credit),
	"a line that is a text":            linesOf(debit, credit, `"x"`),
	"a line that is a number":          linesOf(debit, credit, `1000`),
	"a line that is null":              linesOf(debit, credit, `null`),
	"a line that is a list":            linesOf(debit, credit, `[]`),
	"an object instead of a list":      `{"a":` + debit + `,"b":` + credit + `}`,
	"null instead of a list":           `null`,
	"a text instead of a list":         `"lines"`,
	"something that is not even JSON":  `lines`,
	"a total that only one side meets": linesOf(debit, part("credit", "1")),
}

// refuses runs a statement that the database must not take.
func refuses(t *testing.T, d gormtest.Database, what, statement string) {
	t.Helper()
	_, err := d.SQL(t).ExecContext(t.Context(), statement)
	require.Error(t, err, what)
	assert.Regexp(t, `(?i)constraint|cannot extract elements|invalid input syntax|malformed JSON|out of range`,
		err.Error(), what)
}

// Not even a hand that writes SQL books half an entry, or makes one of a whole entry.
func TestNoHandBooksHalfAnEntry(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			whole := byHand(name)
			for what, lines := range halfEntries {
				refuses(t, d, what, whole.with("lines", quoted(lines)).into("journal_entries"))
			}
			d.Exec(t, whole.into("journal_entries"))
			for what, lines := range halfEntries {
				refuses(t, d, what, "UPDATE journal_entries SET lines = "+quoted(lines))
			}
			refuses(t, d, "another total", "UPDATE journal_entries SET total = 999")
			d.Exec(t, "UPDATE journal_entries SET total = -1000") // debits and credits are its amount all the same
		})
	}
}

func TestTheConstraintsOfAnEntry(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			whole := byHand(name)
			d.Exec(t, whole.into("journal_entries"))
			other := byHand(name).with("posting_key", quoted(strings.Repeat("1", 64)))
			for what, bad := range map[string]row{
				"a second entry of a document":      byHand(name),
				"a second entry with the id":        other.with("id", whole["id"]),
				"a key that is too short":           other.with("posting_key", quoted(strings.Repeat("1", 63))),
				"a key that is too long":            other.with("posting_key", quoted(strings.Repeat("1", 65))),
				"a key in capitals":                 other.with("posting_key", quoted(strings.Repeat("A", 64))),
				"no key":                            other.with("posting_key", "NULL"),
				"an unknown type":                   other.with("source_document_type", "'receipt'"),
				"a negative version":                other.with("version", "-1"),
				"a version of more than 31 bits":    other.with("version", "2147483648"),
				"a date in another form":            other.with("service_date", "'2025-1-29'"),
				"a date with a time":                other.with("service_date", "'2025-01-29T00:00:00Z'"),
				"no date":                           other.with("service_date", "''"),
				"a total of 0":                      other.with("total", "0"),
				"more money than can be published":  other.with("total", "9007199254740992"),
				"less money than can be published":  other.with("total", "-9007199254740992"),
				"a currency in lower case":          other.with("currency", "'jpy'"),
				"a currency of four letters":        other.with("currency", "'JPYX'"),
				"nobody who posted it":              other.with("posted_by", "NULL"),
				"an entry that was posted no day":   other.with("posted_at", "NULL"),
				"an entry without its fingerprint":  other.with("fingerprint", "NULL"),
				"an entry that belongs to nobody":   other.with("company_id", "NULL"),
				"a document without an id":          other.with("source_document_id", "NULL"),
				"an entry without a list of lines":  other.with("lines", "NULL"),
				"a total that its lines do not hit": other.with("total", "1001"),
			} {
				refuses(t, d, what, bad.into("journal_entries"))
			}
			d.Exec(t, other.into("journal_entries"))
			refuses(t, d, "one key for two entries", "UPDATE journal_entries SET posting_key = "+whole["posting_key"])
		})
	}
}

func TestTheConstraintsOfTheAuditLog(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			entry := row{
				"number": "1", "event_id": quoted(string(journal.NewID())), "at": aTime[name], "operation": "'o'", "actor": "'a'",
				"idempotency_key": "'k'", "kind": "'takeover'", "detail": "''",
			}
			d.Exec(t, entry.into("audit_log"))
			other := entry.with("number", "2").with("event_id", quoted(string(journal.NewID())))
			refuses(t, d, "a kind that is not published", other.with("kind", "'something'").into("audit_log"))
			refuses(t, d, "no kind", other.with("kind", "''").into("audit_log"))
			refuses(t, d, "a number that is given", other.with("number", "1").into("audit_log"))
			refuses(t, d, "an event that is written", other.with("event_id", entry["event_id"]).into("audit_log"))
			refuses(t, d, "a second head", "INSERT INTO audit_head (number) VALUES (0)")
			d.Exec(t, other.into("audit_log"))
		})
	}
}
