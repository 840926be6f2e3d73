package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// lost is a record that somebody else has by now.
func lost(t *testing.T, w port.UnitOfWork) (r idempotency.Record) {
	t.Helper()
	require.NoError(t, w.Do(t.Context(), port.Fully, func(tx port.Tx) (err error) {
		r, err = tx.Records().Reserve(t.Context(), reservation, time.Minute)
		return err
	}))
	r.Token = idempotency.NewToken()
	return r
}

func TestADeferredWriteFailsAtTheCommit(t *testing.T) {
	d := memory.NewDeferring(memory.New(time.Now))
	r := lost(t, d)
	err := d.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		assert.NoError(t, tx.Records().Replace(t.Context(), r, r), "not sent yet")
		return nil
	})
	require.ErrorIs(t, err, idempotency.ErrLost)
}

func TestADeferredWriteFailsAtTheNextReadAndSoDoesEverythingAfterIt(t *testing.T) {
	d := memory.NewDeferring(memory.New(time.Now))
	r := lost(t, d)
	err := d.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		require.NoError(t, tx.Records().Replace(t.Context(), r, r))
		for range 2 {
			_, err := tx.Records().Find(t.Context(), r.Scope)
			require.ErrorIs(t, err, idempotency.ErrLost)
		}
		return nil
	})
	require.ErrorIs(t, err, idempotency.ErrLost)
}

func TestAskingForTheTimeSendsWhatWaits(t *testing.T) {
	d := memory.NewDeferring(memory.New(time.Now))
	r := lost(t, d)
	before := d.RoundTrips()
	err := d.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		require.NoError(t, tx.Records().Replace(t.Context(), r, r))
		_ = tx.Now()
		return nil
	})
	require.ErrorIs(t, err, idempotency.ErrLost)
	assert.Equal(t, 2, d.RoundTrips()-before, "the time; the end")
}

func TestWhatChangesAfterADeferredWriteIsNotWritten(t *testing.T) {
	d := memory.NewDeferring(memory.New(time.Now))
	document := []byte("sent")
	require.NoError(t, d.Do(t.Context(), port.Fully, func(tx port.Tx) error {
		held, err := tx.Records().Reserve(t.Context(), reservation, time.Minute)
		if err != nil {
			return err
		}
		done := held.Completed(idempotency.Outcome{Document: document}, tx.Now(), time.Hour)
		err = tx.Records().Replace(t.Context(), held, done)
		copy(document, "gone")
		return err
	}))
	stands, err := storetest.RecordIn(t.Context(), d, reservation.Scope)
	require.NoError(t, err)
	assert.Equal(t, "sent", string(stands.Outcome.Document))
}

func TestARoundTripIsAReadOrTheEndOfATransaction(t *testing.T) {
	for name, c := range map[string]struct {
		fn   func(tx port.Tx) error
		want int
	}{
		"nothing":   {func(port.Tx) error { return nil }, 1},
		"the time":  {func(tx port.Tx) error { _, _ = tx.Now(), tx.Now(); return nil }, 2},
		"two reads": {func(tx port.Tx) error { find(t, tx); find(t, tx); return nil }, 3},
		"a read, which brings the time, and a failure": {func(tx port.Tx) error {
			find(t, tx)
			_ = tx.Now()
			return idempotency.ErrNotFound
		}, 2},
	} {
		d := memory.NewDeferring(memory.New(time.Now))
		_ = d.Do(t.Context(), port.Fully, c.fn)
		assert.Equal(t, c.want, d.RoundTrips(), name)
	}
}

func find(t *testing.T, tx port.Tx) {
	t.Helper()
	_, err := tx.Records().Find(t.Context(), reservation.Scope)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}
