package gormstore

import (
	"math"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"kakutei/application/port"
)

// Timeouts are the settings lock_timeout, statement_timeout and idle_in_transaction_session_timeout in a transaction.
func Timeouts(t *testing.T, s *Store, wait port.Wait) []string {
	t.Helper()
	settings := make([]string, 3)
	require.NoError(t, s.do(t.Context(), wait, func(tx *session) error {
		q := statement{sql: `SELECT current_setting('lock_timeout'), current_setting('statement_timeout'),
			current_setting('idle_in_transaction_session_timeout')`}
		return tx.ask(t.Context(), q, func(answer row) error {
			return answer.Scan(&settings[0], &settings[1], &settings[2])
		})
	}))
	return settings
}

// KeptStatement is PostgreSQL's text of a statement that is used twice, with these arguments, as it is sent then.
func KeptStatement(t *testing.T, text string, named map[string]any, args, again []any) (string, error) {
	t.Helper()
	b, err := newPostgresBuilder()
	require.NoError(t, err)
	draft := func(db *gorm.DB) *gorm.DB { return db.Raw(text, named) }
	if s := b.often("kept", args, draft); s.err != nil {
		return "", s.err
	}
	s := b.often("kept", again, func(*gorm.DB) *gorm.DB {
		t.Fatal("GORM is asked once")
		return nil
	})
	require.Equal(t, again, s.args)
	return s.sql, s.err
}

// Changes are the columns of a row that differ, their values, and the name of that choice.
func Changes(columns []string, before, after []any) (name string, changed []string, values []any) {
	c := changesOf(columns, before, after)
	return c.name, c.columns, c.values
}

// IsBroken tells whether an error leaves open what has become of a statement.
var IsBroken = isBroken

// AtCommit has something happen while a SQLite store commits, before anything is written.
func AtCommit(t *testing.T, s *Store, happen func()) {
	t.Helper()
	c, err := s.engine.(*sqliteEngine).writer.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Raw(func(driver any) error {
		driver.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 { happen(); return 0 })
		return nil
	}))
	require.NoError(t, c.Close())
}

// Line is a line before connections that a test makes.
type Line struct{ line *line }

// NewLine makes one for a store with these settings.
func NewLine(c Config) Line {
	long := longForMany
	if c.URL != "" {
		long = longForOne
	}
	return Line{newLine(0, long, c)}
}

// Join has one more wait since then.
func (l Line) Join(at time.Time) { l.line.join(at) }

// Leave has one wait no more.
func (l Line) Leave() { l.line.leave() }

// IsTooLong asks for one who would join then.
func (l Line) IsTooLong(at time.Time) bool { return l.line.isTooLong(at) }

// TurnsAway has the store take no crowd from now on, as if it had just turned somebody away.
func (s *Store) TurnsAway() { s.line.strict.Store(math.MaxInt64) }
