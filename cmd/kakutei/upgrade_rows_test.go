package main

import (
	"database/sql"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/migrations"
)

// schema is how the migrations of a test's store are taken forth and back.
type schema struct {
	*goose.Provider
	newest int64
	// columns are those of all tables, as "table column", and whether an INSERT may leave them out.
	columns func() map[string]column
}

type column struct {
	kind     string
	optional bool
}

// schemaOf is the schema of a ground's store.
func (g ground) schema(store string) schema {
	g.t.Helper()
	dialect, files, query := goose.DialectPostgres, fs.FS(migrations.Postgres), `
		SELECT table_name, column_name, udt_name, is_nullable = 'YES' OR column_default IS NOT NULL
		FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%'`
	folder := "postgres"
	if store == "SQLite" {
		dialect, files, folder = goose.DialectSQLite3, migrations.SQLite, "sqlite"
		query = `SELECT m.name, c.name, c.type, c."notnull" = 0 OR c.dflt_value IS NOT NULL
			FROM sqlite_master AS m, pragma_table_info(m.name) AS c
			WHERE m.type = 'table' AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%'`
	}
	files, err := fs.Sub(files, folder)
	require.NoError(g.t, err)
	rows := rowsOf(g.t, g.env["KAKUTEI_DATABASE_URL"])
	rows.SetMaxOpenConns(1)
	p, err := goose.NewProvider(dialect, rows, files)
	require.NoError(g.t, err)
	sources := p.ListSources()
	return schema{p, sources[len(sources)-1].Version, func() map[string]column { return columnsBy(g.t, rows, query) }}
}

func columnsBy(t *testing.T, rows *sql.DB, query string) map[string]column {
	t.Helper()
	found, err := rows.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer found.Close()
	columns := map[string]column{}
	for found.Next() {
		var table, name string
		var c column
		require.NoError(t, found.Scan(&table, &name, &c.kind, &c.optional))
		columns[table+" "+name] = c
	}
	require.NoError(t, found.Err())
	require.NotEmpty(t, columns)
	return columns
}

// Old and new instances run together while an upgrade goes on, and old ones go on after it when the new ones are taken
// back: whatever an old program reads must stay, and whatever it does not write must have a value.
func TestEachMigrationOnlyAddsToWhatTheVersionBeforeItReadsAndWrites(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			s := groundOn(t, open(t)).schema(name)
			_, err := s.UpTo(t.Context(), 1)
			require.NoError(t, err)
			before := s.columns()
			for version := int64(2); version <= s.newest; version++ {
				_, err := s.UpTo(t.Context(), version)
				require.NoError(t, err)
				after := s.columns()
				tables := map[string]bool{}
				for column, was := range before {
					assert.Equal(t, was.kind, after[column].kind, "%s in version %d", column, version)
					assert.True(t, after[column].optional || !was.optional, "%s may be left out no more in version %d", column, version)
					table, _, _ := strings.Cut(column, " ")
					tables[table] = true
				}
				for column, is := range after {
					table, _, _ := strings.Cut(column, " ")
					if _, stood := before[column]; !stood && tables[table] {
						assert.True(t, is.optional, "%s is new in version %d, and who does not know of it cannot leave it out", column, version)
					}
				}
				before = after
			}
		})
	}
}

// described is all that a schema says of its rows, in the words of the store's catalogue.
var described = map[string]string{
	"SQLite": `SELECT type || ' ' || name || ': ' || sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'goose%'`,
	"PostgreSQL": `
		SELECT 'constraint ' || coalesce(nullif(conrelid, 0)::regclass::text, contypid::regtype::text) || ' ' || conname ||
			': ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT c.relname || ' ' || coalesce(c.reloptions::text, '') FROM pg_class AS c
			WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
		UNION ALL SELECT 'column ' || a.attrelid::regclass || ' ' || a.attname || ': ' ||
			format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || coalesce(l.collname, '') || ' ' ||
			coalesce(pg_get_expr(d.adbin, d.adrelid), '')
		FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
		LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
		LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`,
}

func TestTakingTheNewestMigrationBackRestoresTheSchemaBeforeIt(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			g := groundOn(t, open(t))
			s := g.schema(name)
			rows := rowsOf(t, g.env["KAKUTEI_DATABASE_URL"])
			says := func() (all []string) {
				found, err := rows.QueryContext(t.Context(), described[name])
				require.NoError(t, err)
				defer found.Close()
				for found.Next() {
					var one string
					require.NoError(t, found.Scan(&one))
					all = append(all, one)
				}
				require.NoError(t, found.Err())
				return all
			}
			_, err := s.UpTo(t.Context(), s.newest-1)
			require.NoError(t, err)
			before := says()
			_, err = s.Up(t.Context())
			require.NoError(t, err)
			after := says()
			require.NotSubset(t, before, after, "the migration changes what is compared")
			_, err = s.DownTo(t.Context(), s.newest-1)
			require.NoError(t, err)
			assert.ElementsMatch(t, before, says())
			_, err = s.Up(t.Context())
			require.NoError(t, err)
			assert.ElementsMatch(t, after, says())
		})
	}
}

// A migration that asks more of the rows asks those that stand, too: whoever switched a trigger off is told.
func TestHalfAnEntryThatATriggerWasSwitchedOffForIsNotMigrated(t *testing.T) {
	g := groundOn(t, lastingStores["PostgreSQL"](t))
	s := g.schema("PostgreSQL")
	_, err := s.UpTo(t.Context(), 7)
	require.NoError(t, err)
	book := func(id, credit string) {
		g.exec(`INSERT INTO journal_entries (id, posting_key, fingerprint, company_id, source_document_type,
			source_document_id, version, service_date, total, currency, posted_by, posted_at, lines)
			VALUES ('01a2326e-c789-7c8e-8a93-edb09cb3c64` + id + `', '` + strings.Repeat(id, 64) + `', 'v1:', 'c', 'sales_invoice',
			'inv-` + id + `', 0, '2025-01-29', 1000, 'JPY', 'hand', now(), '[{"account":"a","side":"debit","amount":1000},
			{"account":"b","side":"credit","amount":` + credit + `}]')`)
	}
	book("0", "1000")
	g.exec(`ALTER TABLE journal_entries DISABLE TRIGGER journal_entries_rules`)
	book("1", "999")
	g.exec(`ALTER TABLE journal_entries ENABLE TRIGGER journal_entries_rules`)
	_, err = s.UpTo(t.Context(), 8)
	require.ErrorContains(t, err, "journal_entries_balance")
	g.exec(`DELETE FROM journal_entries WHERE source_document_id = 'inv-1'`)
	_, err = s.UpTo(t.Context(), 8)
	require.NoError(t, err)
}

// asTheVersionBeforeWroteThem makes all rows what a program would have written that knows the columns of the version
// before the newest alone.
func (g ground) asTheVersionBeforeWroteThem(known map[string]column) {
	g.t.Helper()
	columns := map[string][]string{}
	for name := range known {
		table, column, _ := strings.Cut(name, " ")
		columns[table] = append(columns[table], `"`+column+`"`)
	}
	for table, names := range columns {
		list := strings.Join(names, ", ")
		g.exec(fmt.Sprintf(`CREATE TABLE kept AS SELECT %s FROM %s`, list, table))
		g.exec(`DELETE FROM ` + table)
		g.exec(fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM kept`, table, list, list))
		g.exec(`DROP TABLE kept`)
	}
}

// upgraded is what a service leaves that has had one of everything.
type upgraded struct {
	paid, declined, cancelled answered
	order, refused, ended     string
	pending                   *insistence
	entry                     answered
}

const document = `{"companyId":"company-1","sourceDocumentType":"sales_invoice","sourceDocumentId":"inv-1",` +
	`"serviceDate":"2025-01-29","total":110000}`

func (g ground) leaves() (l upgraded) {
	g.t.Helper()
	i := g.with("KAKUTEI_RECOVERY_INTERVAL", "0").start()
	l.order, l.refused, l.ended = i.placed("place-1"), i.placed("place-2"), i.placed("place-3")
	l.paid = i.post(l.order+"/confirm-payment", "pay-1", thousand)
	l.declined = i.post(l.refused+"/confirm-payment", "pay-2", paidBy("pm_declined"))
	l.cancelled = i.post(l.ended+"/cancel", "cancel-3", `{}`)
	l.pending = paymentOf(i.unanswered("4", "pm_lost_answer"), "pay-4")
	l.pending.body = paidBy("pm_lost_answer")
	l.entry = i.as("demo-alice@company-1", http.MethodPost, "/api/journal-entries/post", document)
	require.Equal(g.t, []int{200, 402, 200, 201},
		[]int{l.paid.status, l.declined.status, l.cancelled.status, l.entry.status})
	i.signal(syscall.SIGTERM)
	i.end()
	return l
}

// goesOn demands that a service has all of it, and finishes what is open.
func (l upgraded) goesOn(g ground) {
	g.t.Helper()
	i := g.start()
	i.becomes(l.pending.order, "PAID")
	require.NoError(g.t, l.pending.insist(g.t.Context(), func() *running { return i.running }))
	for _, c := range []struct {
		first           answered
		path, key, body string
	}{
		{l.paid, l.order + "/confirm-payment", "pay-1", thousand},
		{l.declined, l.refused + "/confirm-payment", "pay-2", paidBy("pm_declined")},
		{l.cancelled, l.ended + "/cancel", "cancel-3", `{}`},
	} {
		c.first.replayed = true
		assert.Equal(g.t, c.first, i.post(c.path, c.key, c.body), c.key)
	}
	again := i.as("demo-alice@company-1", http.MethodPost, "/api/journal-entries/post", document)
	assert.Equal(g.t, http.StatusOK, again.status, again.body)
	paid := paymentOf(l.refused, "pay-2-again")
	require.NoError(g.t, paid.insist(g.t.Context(), func() *running { return i.running }))
	for _, order := range []string{l.order, l.refused, l.pending.order} {
		assert.Equal(g.t, 1, g.charges(order))
	}
	g.agrees()
	g.rests()
	i.signal(syscall.SIGTERM)
	i.end()
}

func TestWhatTheVersionBeforeHasLeftIsMigratedAndServed(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			g := groundOn(t, open(t))
			left := g.leaves()
			s := g.schema(name)
			_, err := s.DownTo(t.Context(), s.newest-1)
			require.NoError(t, err)
			left.goesOn(g) // its start migrates
		})
	}
}

func TestWhatTheVersionBeforeWritesBesideThisOneIsServed(t *testing.T) {
	for name, open := range lastingStores {
		t.Run(name, func(t *testing.T) {
			before := groundOn(t, open(t)).schema(name)
			_, err := before.UpTo(t.Context(), before.newest-1)
			require.NoError(t, err)
			g := groundOn(t, open(t))
			left := g.leaves()
			g.asTheVersionBeforeWroteThem(before.columns())
			left.goesOn(g)
		})
	}
}
