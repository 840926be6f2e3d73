package gormstore

import (
	"testing"

	"modernc.org/sqlite"

	"github.com/stretchr/testify/require"

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
