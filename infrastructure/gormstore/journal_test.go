package gormstore_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
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

// What a payment books is a debit and a credit, which PostgreSQL asks in one expression and all other lines one by one. Both
// ways refuse the same, in whichever line it is and in both alike.
func TestTheTwoLinesOfAPaymentAreAskedAsAllOthersAre(t *testing.T) {
	amounts := []string{
		`"1000"`, `1000.0`, `1000.5`, `999`, `1001`, `0`, `-1000`, `9007199254740993`, `1` + strings.Repeat("0", 400), `true`,
		`null`, `[1000]`, `{"amount":1000}`,
	}
	accounts := []string{`""`, `null`, `7`, `true`, `["a"]`, `{"account":"a"}`}
	sides := []string{`""`, `null`, `1`, `true`, `["debit"]`, `["credit"]`, `"Debit"`, `"CREDIT"`, `"debit "`, `"both"`}
	whole := func(side string) map[string]string {
		return map[string]string{"account": `"a"`, "side": `"` + side + `"`, "amount": `1000`}
	}
	text := func(members map[string]string) string {
		var listed []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			listed = append(listed, `"`+name+`":`+members[name])
		}
		return `{` + strings.Join(listed, ",") + `}`
	}
	broken := map[string]string{}
	for member, values := range map[string][]string{"amount": amounts, "account": accounts, "side": sides} {
		for _, value := range append(values, "") {
			for where, lines := range map[string][]int{"first": {0}, "second": {1}, "both": {0, 1}} {
				pair := []map[string]string{whole("debit"), whole("credit")}
				for _, i := range lines {
					if pair[i][member] = value; value == "" {
						delete(pair[i], member)
					}
				}
				broken[member+" "+value+" in "+where] = text(pair[0]) + "," + text(pair[1])
			}
		}
	}
	one := part("debit", "1") + "," + part("credit", "1")
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			entry := byHand(name)
			for what, pair := range broken {
				refuses(t, d, what, entry.with("lines", quoted(linesOf(pair))).into("journal_entries"))
				longer := entry.with("lines", quoted(linesOf(pair, one))).with("total", "1001")
				refuses(t, d, what+" of four", longer.into("journal_entries"))
			}
			refuses(t, d, "nothing is debited nor credited",
				entry.with("lines", quoted(linesOf(part("debit", "0"), part("credit", "0")))).with("total", "0").into("journal_entries"))
			largest := "9007199254740991"
			for nth, good := range []row{
				entry,
				entry.with("total", "-1000"),
				entry.with("lines", quoted(linesOf(credit, debit))),
				entry.with("lines", quoted(linesOf(debit, credit, one))).with("total", "1001"),
				entry.with("lines", quoted(linesOf(part("debit", "400"), part("debit", "600"), credit))),
				entry.with("lines", quoted(linesOf(part("debit", largest), part("credit", largest)))).with("total", largest),
				entry.with("lines", quoted(linesOf(part("debit", "1"), part("credit", "1")))).with("total", "1"),
				entry.with("lines", quoted(linesOf(strings.ReplaceAll(debit, `"a"`, `"売掛金"`), credit))),
			} {
				key := strings.Repeat(string(rune('1'+nth)), 64)
				d.Exec(t, good.with("id", quoted(string(journal.NewID()))).with("posting_key", quoted(key)).into("journal_entries"))
			}
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
				"a key with one letter beyond f":    other.with("posting_key", quoted(strings.Repeat("1", 63)+"g")),
				"a key with one capital":            other.with("posting_key", quoted("A"+strings.Repeat("1", 63))),
				"a key with a line's end":           other.with("posting_key", quoted(strings.Repeat("1", 64)+"\n")),
				"a key whose last is a line's end":  other.with("posting_key", quoted(strings.Repeat("1", 63)+"\n")),
				"a key that begins with an end":     other.with("posting_key", quoted("\n"+strings.Repeat("1", 63))),
				"a key with a blank":                other.with("posting_key", quoted(strings.Repeat("1", 31)+" "+strings.Repeat("1", 32))),
				"a key with a digit of its own":     other.with("posting_key", quoted(strings.Repeat("1", 63)+"１")),
				"a key of 64 bytes in fewer":        other.with("posting_key", quoted(strings.Repeat("1", 61)+"１")),
				"no key":                            other.with("posting_key", "NULL"),
				"an unknown type":                   other.with("source_document_type", "'receipt'"),
				"a negative version":                other.with("version", "-1"),
				"a version of more than 31 bits":    other.with("version", "2147483648"),
				"a date in another form":            other.with("service_date", "'2025-1-29'"),
				"a date with a time":                other.with("service_date", "'2025-01-29T00:00:00Z'"),
				"a date with a line's end":          other.with("service_date", "'2025-01-29\n'"),
				"a date in other digits":            other.with("service_date", "'２025-01-29'"),
				"a date with a dash for a digit":    other.with("service_date", "'2025-01-2-'"),
				"a date with its dashes elsewhere":  other.with("service_date", "'20250-1-29'"),
				"a date with a letter":              other.with("service_date", "'2025-o1-29'"),
				"a date with other marks":           other.with("service_date", "'2025/01/29'"),
				"a date with a blank":               other.with("service_date", "'2025-01- 9'"),
				"a date of a longer year":           other.with("service_date", "'12025-01-29'"),
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

// The balance is asked of every row, by whoever writes it in whatever way: a trigger can be switched off, a CHECK cannot.
func TestWhatIsRefusedNamesItsRuleAndNobodySwitchesItOff(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	whole := byHand("PostgreSQL")
	for rule, bad := range map[string]row{
		"posting_key":             whole.with("posting_key", quoted(strings.Repeat("g", 64))),
		"civil_date":              whole.with("service_date", "'2025-1-029'"),
		"journal_entries_balance": whole.with("lines", quoted(linesOf(debit, part("credit", "999")))),
	} {
		_, err := d.SQL(t).ExecContext(t.Context(), "SET session_replication_role = replica; "+bad.into("journal_entries"))
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, rule)
		assert.Equal(t, rule, refused.ConstraintName)
		assert.Equal(t, "23514", refused.Code, "check_violation")
	}
}

// A CHECK that is NULL would let a row pass.
func TestTheBalanceIsNeverUnknown(t *testing.T) {
	db := gormtest.PostgreSQL(t).SQL(t)
	pair := func(amount string) string { return linesOf(part("debit", amount), part("credit", amount)) }
	for what, asked := range map[string]string{
		"no total":          `NULL, ` + quoted(pair("1000")),
		"a total of 0":      `0, ` + quoted(pair("0")),
		"no lines":          `1000, ` + quoted(linesOf()),
		"empty lines":       `1000, ` + quoted(linesOf("{}", "{}")),
		"null for amounts":  `1000, ` + quoted(pair("null")),
		"null for lines":    `1000, ` + quoted(linesOf("null", "null")),
		"numbers for lines": `1000, ` + quoted(linesOf("1000", "1000")),
	} {
		var balances *bool
		row := db.QueryRowContext(t.Context(), `SELECT journal_lines_balance(total => x.total, lines => x.lines)
			FROM (SELECT `+strings.Replace(asked, ", ", "::bigint AS total, ", 1)+`::jsonb AS lines) AS x`)
		require.NoError(t, row.Scan(&balances), what)
		require.NotNil(t, balances, what)
		assert.False(t, *balances, what)
	}
}

// An index over texts in the database's collation asks the C library, or ICU, for each comparison.
func TestTheIndexesOfAPaymentCompareBytes(t *testing.T) {
	rows, err := gormtest.PostgreSQL(t).SQL(t).QueryContext(t.Context(), `
		SELECT i.indexrelid::regclass::text, c.collname
		FROM pg_index AS i, unnest(i.indcollation) AS compared JOIN pg_collation AS c ON c.oid = compared
		WHERE i.indrelid IN ('orders'::regclass, 'idempotency_records'::regclass, 'journal_entries'::regclass)`)
	require.NoError(t, err)
	defer func() { assert.NoError(t, rows.Close()) }()
	var indexes []string
	for rows.Next() {
		var index, collation string
		require.NoError(t, rows.Scan(&index, &collation))
		assert.Equal(t, "C", collation, index)
		indexes = append(indexes, index)
	}
	require.NoError(t, rows.Err())
	assert.Subset(t, indexes, []string{"orders_charge_id", "journal_entries_posting_key", "idempotency_records_pkey"})
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
