package gormstore

import (
	"testing"

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

// IsBroken tells whether an error leaves open what has become of a statement.
var IsBroken = isBroken
