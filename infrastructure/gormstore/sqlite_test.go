package gormstore_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

// An interrupted BEGIN may have begun a transaction all the same: the connection must not come back with it open.
func TestAnInterruptedBeginLeavesTheWriterUsable(t *testing.T) {
	s := gormtest.SQLite(t).Open(t, 2)
	scope := idempotency.Scope{Operation: "o", Actor: "a", Key: "k"}
	look := func(ctx context.Context) error {
		return s.Do(ctx, port.Briefly, func(tx port.Tx) error {
			_, err := tx.Records().Find(ctx, scope)
			return err
		})
	}
	for begun, i := time.Now(), 0; time.Since(begun) < 5*time.Second; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%120)*time.Microsecond)
		_ = look(ctx)
		cancel()
		if i%20 == 0 {
			require.ErrorIs(t, look(t.Context()), idempotency.ErrNotFound, "after %d interrupted ones", i)
		}
	}
}

// C83: one writer at a time is a queue, not an error.
func TestFiftyOrdersAtOnceArePaidOnSQLite(t *testing.T) {
	p := storetest.NewProvider()
	c := gormstore.Config{URL: gormtest.SQLite(t).URL, Pool: 16, LockTimeout: time.Minute} // however slow the machine is
	work, err := gormstore.Open(context.WithoutCancel(t.Context()), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, work.Close()) })
	s := storetest.OpenShop(work, p)
	ids := placed(t, s, 50)
	var paying sync.WaitGroup
	for _, id := range ids {
		paying.Go(func() {
			_, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, "pay-"+string(id)))
			assert.NoError(t, err)
		})
	}
	paying.Wait()
	assert.Equal(t, 50, p.Charges())
}

// A wait for the file ends with its time, and what waited can be asked again.
func TestAFileThatAnotherProgramHoldsIsUnavailableInTime(t *testing.T) {
	d := gormtest.SQLite(t)
	s := storetest.OpenShop(d.Open(t, 2), storetest.NewProvider())
	id := placed(t, s, 1)[0]
	holder, err := d.SQL(t).Conn(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, holder.Close()) }()
	_, err = holder.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	began := time.Now()
	_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.ErrorIs(t, err, port.ErrUnavailable)
	assert.Less(t, time.Since(began), 3*gormtest.LockTimeout)
	view, err := s.Order(t.Context(), string(id), "alice")
	require.NoError(t, err, "reading goes on")
	assert.Equal(t, order.Placed, view.Status)
	_, err = holder.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	_, err = s.ConfirmPayment(t.Context(), storetest.Payment(id, "k"))
	require.NoError(t, err)
}

// The file is lost while a transaction is at work on it: nothing of it is committed, neither there nor in what has come in
// the file's place.
func TestATransactionWhoseFileIsLostIsNotCommitted(t *testing.T) {
	d := gormtest.SQLite(t)
	file := strings.TrimPrefix(d.URL, "sqlite:")
	s := d.Open(t, 2)
	err := s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		_, err := tx.Records().Reserve(t.Context(), anIntent, time.Minute)
		require.NoError(t, err)
		moveAway(t, file)
		return nil
	})
	require.ErrorIs(t, err, port.ErrUnavailable)
	require.NotErrorIs(t, err, port.ErrCommitUnknown)
	away, err := sql.Open("sqlite", file+".away")
	require.NoError(t, err)
	defer func() { assert.NoError(t, away.Close()) }()
	var records int
	require.NoError(t, away.QueryRowContext(t.Context(), `SELECT count(*) FROM idempotency_records`).Scan(&records))
	assert.Zero(t, records)
	assert.NoFileExists(t, file)
	require.ErrorIs(t, s.Ready(t.Context()), port.ErrUnavailable)
}

var anIntent = idempotency.Reservation{
	Scope: idempotency.Scope{Operation: "o", Actor: "a", Key: "k"}, Token: idempotency.NewToken(), Request: "r",
}

func moveAway(t *testing.T, file string) {
	t.Helper()
	for _, part := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.Rename(file+part, file+".away"+part))
	}
}

// What is committed in the moment in which the file is lost is in the lost one, and nobody is told that it is kept.
func TestACommitWhoseFileIsLostMeanwhileIsUnknown(t *testing.T) {
	d := gormtest.SQLite(t)
	s := d.Open(t, 2)
	require.NoError(t, s.Ready(t.Context()))
	gormstore.AtCommit(t, s, func() { moveAway(t, strings.TrimPrefix(d.URL, "sqlite:")) })
	err := s.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		_, err := tx.Records().Reserve(t.Context(), anIntent, time.Minute)
		return err
	})
	require.ErrorIs(t, err, port.ErrCommitUnknown)
	require.ErrorIs(t, s.Ready(t.Context()), port.ErrUnavailable)
}
