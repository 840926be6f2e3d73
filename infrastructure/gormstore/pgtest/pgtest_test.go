package pgtest

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADatabaseHasTheSchemaAndNothingOfOtherTests(t *testing.T) {
	migrations := unique(t)
	for _, name := range []string{"one", "two", "three", "四"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := Database(t, migrations, createNotes)
			assert.Equal(t, 0, count(t, dsn, "SELECT count(*) FROM notes"))
			require.NoError(t, execute(t.Context(), dsn, "INSERT INTO notes VALUES ('of this test alone')"))
		})
	}
}

func TestAnEmptyDatabaseHasNoTable(t *testing.T) {
	assert.Equal(t, 0, count(t, Empty(t), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
}

func TestADatabaseIsDroppedWithItsTestWhoeverIsConnected(t *testing.T) {
	var dsn string
	t.Run("with a connection left open", func(t *testing.T) {
		dsn = Empty(t)
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		require.NoError(t, conn.Ping(t.Context()))
	})
	require.NotEmpty(t, dsn)
	_, err := pgx.Connect(t.Context(), dsn)
	assert.ErrorContains(t, err, "3D000", "the database does not exist")
}

func TestManyProcessesAtOnceMigrateTheTemplateOnce(t *testing.T) {
	s, template := serverOf(t), template(t)
	var migrated atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		// Beside ensureOnce, each is a process of its own to the server.
		wg.Go(func() {
			assert.NoError(t, s.ensure(t.Context(), template, func(ctx context.Context, dsn string) error {
				migrated.Add(1)
				return createNotes(ctx, dsn)
			}))
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, migrated.Load())
}

func TestAHalfMadeTemplateIsNeverUsed(t *testing.T) {
	s, template := serverOf(t), template(t)
	died := errors.New("half-way")
	err := s.ensure(t.Context(), template, func(ctx context.Context, dsn string) error {
		return errors.Join(createNotes(ctx, dsn), died)
	})
	require.ErrorIs(t, err, died)

	require.NoError(t, s.ensure(t.Context(), template, createNotes), "the rest was replaced: else the table would exist")
	assert.Equal(t, 0, count(t, s.fresh(t, template), "SELECT count(*) FROM notes"))
}

func TestTheTemplateFollowsTheMigrations(t *testing.T) {
	name := func(files fstest.MapFS) string {
		name, err := templateName(files)
		require.NoError(t, err)
		return name
	}
	base := name(fstest.MapFS{"1.sql": {Data: []byte("a")}, "2.sql": {Data: []byte("b")}})
	assert.Equal(t, base, name(fstest.MapFS{"2.sql": {Data: []byte("b")}, "1.sql": {Data: []byte("a")}}))
	assert.NotEqual(t, base, name(fstest.MapFS{"1.sql": {Data: []byte("a")}, "2.sql": {Data: []byte("c")}}))
	assert.NotEqual(t, base, name(fstest.MapFS{"1.sql": {Data: []byte("a")}, "3.sql": {Data: []byte("b")}}))
	assert.NotEqual(t, base, name(fstest.MapFS{"1.sql": {Data: []byte("a")}}))
}

func TestAMissingServerSaysWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "this test needs PostgreSQL: run `make test`",
		"host=localhost dbname=x":      "is no postgres:// URL",
		"mysql://u:secret@localhost/x": "is no postgres:// URL",
		"postgres://u:secret@[/x":      "is no postgres:// URL",
	} {
		_, err := parseServer(text)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestADatabaseNameFitsPostgreSQL(t *testing.T) {
	name := databaseName(`TestA"Name/` + strings.Repeat("長い", 100))
	assert.Regexp(t, `^kakutei_[a-z0-9]{12}_testa_name_+$`, name)
	assert.LessOrEqual(t, len(name), 63)
}

func createNotes(ctx context.Context, dsn string) error {
	return execute(ctx, dsn, "CREATE TABLE notes (note text)")
}

// unique is migrations that no earlier run on the same server has seen; their template is dropped with t.
func unique(t *testing.T) fs.FS {
	t.Helper()
	migrations := fstest.MapFS{"1_notes.sql": {Data: []byte(databaseName(t.Name()))}}
	name, err := templateName(migrations)
	require.NoError(t, err)
	s := serverOf(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.NoError(t, s.exec(ctx, "DROP DATABASE "+quote(name)))
	})
	return migrations
}

func template(t *testing.T) string {
	t.Helper()
	name, err := templateName(unique(t))
	require.NoError(t, err)
	return name
}

func execute(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func count(t *testing.T, dsn, sql string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&n))
	require.NoError(t, conn.Close(t.Context()))
	return n
}
