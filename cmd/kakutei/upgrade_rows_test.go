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
