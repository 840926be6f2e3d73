package gormstore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
)

func TestConnectionsAreCountedWhileATransactionIsOpen(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
				URL: database(t).URL, Pool: 1, LockTimeout: time.Minute,
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			before := s.Connections()
			assert.Positive(t, before.Max)
			assert.Zero(t, before.InUse)
			undone := errors.New("undone")
			err = s.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
				require.False(t, tx.Now().IsZero())
				assert.Equal(t, 1, s.Connections().InUse)
				hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, s.Do(hurried, port.Briefly, func(tx port.Tx) error {
					tx.Now()
					return nil
				}), port.ErrUnavailable)
				return undone
			})
			require.ErrorIs(t, err, undone)
			after := s.Connections()
			assert.Zero(t, after.InUse)
			assert.EqualValues(t, 1, after.Acquired-before.Acquired)
			assert.EqualValues(t, 1, after.Refused-before.Refused)
			assert.GreaterOrEqual(t, after.Waited-before.Waited, 50*time.Millisecond)
		})
	}
}

// Those who go together take one connection, and each of them waits for it.
func TestACompanyTakesOneConnectionAndEachOfItsMembersWaits(t *testing.T) {
	const lockTimeout = time.Second
	s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
		URL: gormtest.PostgreSQL(t).URL, Pool: 1, LockTimeout: lockTimeout,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	gather := func(check func(error)) {
		var reading sync.WaitGroup
		s.GatherReads(t, 5, func() {
			for i := range 5 {
				reading.Go(func() {
					check(s.Read(t.Context(), func(tx port.Tx) error {
						_, err := tx.Records().Find(t.Context(), idempotency.Scope{Key: idempotency.Key(fmt.Sprint("none-", i))})
						return err
					}))
				})
			}
		})
		reading.Wait()
	}
	before := s.Connections()
	gather(func(err error) { assert.ErrorIs(t, err, idempotency.ErrNotFound) })
	after := s.Connections()
	assert.EqualValues(t, 1, after.Acquired-before.Acquired)
	assert.Zero(t, after.Refused-before.Refused)

	require.NoError(t, s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		tx.Now() // this one has the connection
		before = s.Connections()
		gather(func(err error) { assert.ErrorIs(t, err, port.ErrUnavailable) })
		return nil
	}))
	after = s.Connections()
	assert.Zero(t, after.Acquired-before.Acquired)
	assert.EqualValues(t, 5, after.Refused-before.Refused)
	assert.GreaterOrEqual(t, after.Waited-before.Waited, 5*lockTimeout)
	assert.Zero(t, after.InUse)
}

// watch keeps what it is told.
type watch struct {
	exchanges []gormstore.Exchange
	ended     []error
	contexts  []context.Context
}

func (w *watch) Exchanging(ctx context.Context, e gormstore.Exchange) func(error) {
	w.exchanges, w.contexts = append(w.exchanges, e), append(w.contexts, ctx)
	return func(err error) { w.ended = append(w.ended, err) }
}

type transactionKey struct{}

func TestAWatchIsToldOfEachExchangeWithItsTextsAndWithoutItsArguments(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
				URL: database(t).URL, Pool: 2, LockTimeout: 10 * time.Second,
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			var w watch
			s.Watched(&w)
			scope := idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice-1f0c", Key: "key-1f0c"}
			ctx := context.WithValue(t.Context(), transactionKey{}, "the transaction's")
			require.NoError(t, s.Do(ctx, port.Fully, func(tx port.Tx) error {
				held, err := tx.Records().Reserve(t.Context(), idempotency.Reservation{Scope: scope, Token: idempotency.NewToken()}, time.Minute)
				if err != nil {
					return err
				}
				return tx.Records().Replace(t.Context(), held, held.Abandoned(tx.Now()))
			}))
			require.ErrorIs(t, s.Read(t.Context(), func(tx port.Tx) error {
				_, err := tx.Records().Find(t.Context(), idempotency.Scope{Key: "none-1f0c"})
				return err
			}), idempotency.ErrNotFound)

			require.NotEmpty(t, w.exchanges)
			require.Len(t, w.ended, len(w.exchanges), "each has its end")
			commits := 0
			for i, e := range w.exchanges {
				require.NoError(t, w.ended[i])
				assert.NotContains(t, e.Texts(), "1f0c")
				assert.NotEmpty(t, e.Texts())
				if e.Commits {
					commits++
					assert.Contains(t, e.Texts(), "UPDATE")
					assert.Contains(t, e.Texts(), "COMMIT")
					assert.Equal(t, "the transaction's", w.contexts[i].Value(transactionKey{}), "whatever the repository was given")
				}
			}
			assert.Equal(t, 1, commits, "a read has none")
			assert.Equal(t, map[string]string{"PostgreSQL": "postgresql", "SQLite": "sqlite"}[name], w.exchanges[0].Database)
		})
	}
}

func TestWhichDatabaseSharesTheMachine(t *testing.T) {
	for url, shares := range map[string]bool{
		"postgres://127.0.0.1/k":                       true,
		"postgres://u:p@127.0.0.2:5433/k":              true,
		"postgresql://[::1]:5432/k":                    true,
		"postgres://localhost/k?sslmode=disable":       true,
		"postgres:///k?host=/run/postgresql":           true,
		"postgres://127.0.0.1,[::1]/k":                 true,
		"postgres://db.example/k":                      false,
		"postgres://10.0.0.1/k":                        false,
		"postgres://127.0.0.1,10.0.0.1/k":              false,
		"postgres://localhost.example/k":               false,
		"sqlite:" + filepath.Join(t.TempDir(), "k.db"): false,
	} {
		s, err := gormstore.Open(t.Context(), gormstore.Config{URL: url, Pool: 1, LockTimeout: time.Second})
		require.NoError(t, err, url)
		assert.Equal(t, shares, s.SharesMachine(), url)
		require.NoError(t, s.Close())
	}
}
