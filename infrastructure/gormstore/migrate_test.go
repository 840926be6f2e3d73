package gormstore_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/gormstore/pgtest"
)

func unmigrated(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"SQLite":     "sqlite:" + filepath.Join(t.TempDir(), "a ?b#c%20.db"),
		"PostgreSQL": pgtest.Empty(t),
	}
}

func open(t *testing.T, url string) *gormstore.Store {
	t.Helper()
	c := gormstore.Config{URL: url, Pool: 2, LockTimeout: time.Second}
	s, err := gormstore.Open(context.WithoutCancel(t.Context()), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestSixAtOnceMigrateOnce(t *testing.T) {
	for name, url := range unmigrated(t) {
		t.Run(name, func(t *testing.T) {
			var starting sync.WaitGroup
			var stores []*gormstore.Store
			for range 6 {
				s := open(t, url)
				stores = append(stores, s)
				starting.Go(func() { assert.NoError(t, s.Migrate(t.Context())) })
			}
			starting.Wait()
			for _, s := range stores {
				assert.NoError(t, s.Ready(t.Context()))
			}
		})
	}
}

func TestADatabaseWithoutItsSchemaIsNotReady(t *testing.T) {
	for name, url := range unmigrated(t) {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, open(t, url).Ready(t.Context()), port.ErrUnavailable)
		})
	}
}

func TestADatabaseThatIsNewerIsLeftAlone(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			d := database(t)
			d.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
			s := d.Open(t, 2)
			require.NoError(t, s.Migrate(t.Context()))
			require.NoError(t, s.Ready(t.Context()))
		})
	}
}

func TestAddressesThatAreOfNoStore(t *testing.T) {
	for _, url := range []string{"", "sqlite:", "memory:", "mysql://localhost/x", "kakutei.db", "postgres:/x"} {
		_, err := gormstore.Open(t.Context(), gormstore.Config{URL: url, Pool: 1, LockTimeout: time.Second})
		require.ErrorIs(t, err, gormstore.ErrAddress, url)
	}
	_, err := gormstore.Open(t.Context(), gormstore.Config{URL: "postgres://u:secret@h:port/x", Pool: 1})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
}
