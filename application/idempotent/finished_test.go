package idempotent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

func scopeOf(key idempotency.Key) idempotency.Scope {
	return idempotency.Scope{Operation: "Op", Actor: "alice", Key: key}
}

func TestOnlyTheLatestFinishedRecordsAreRemembered(t *testing.T) {
	f := idempotent.NewFinished(2)
	f.Add(scopeOf("a"))
	f.Add(scopeOf("b"))
	f.Add(scopeOf("a")) // known, and not younger for it
	assert.True(t, f.Has(scopeOf("a")))
	f.Add(scopeOf("c"))
	assert.False(t, f.Has(scopeOf("a")), "the oldest is forgotten")
	assert.True(t, f.Has(scopeOf("b")))
	assert.True(t, f.Has(scopeOf("c")))
	assert.False(t, f.Has(idempotency.Scope{Operation: "Op", Actor: "bob", Key: "c"}))
}

// Of the commit that has finished the key's next intent nobody here was told: a standby need not have it yet. So the
// answer comes from the reservation, whose commit waits.
func TestARememberedRecordThatAnotherInstanceHasFinishedAnewIsReserved(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		waits := &waiting{UnitOfWork: d.work}
		here := deskOver(waits, d.clock, storetest.Times)
		_, err := here.Execute(t.Context(), intent, knowing("the first"))
		require.NoError(t, err)
		d.clock.Pass(storetest.Times.Retention)
		_, err = d.beside().Execute(t.Context(), intent, knowing("the next"))
		require.NoError(t, err)

		for _, want := range []int{1, 0} { // then it is remembered
			waits.seen = nil
			answer, err := here.Execute(t.Context(), intent, never(t))
			require.NoError(t, err)
			assert.True(t, answer.Replayed)
			assert.Equal(t, `"the next"`, string(answer.Document))
			assert.Len(t, waits.seen, want)
		}
	})
}

// What is remembered is no more than a hint: the store's word counts.
func TestARememberedRecordThatIsGoneOrExpiredIsExecutedAnew(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var o operation
		_, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		d.clock.Pass(storetest.Times.Retention)
		again, err := d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.False(t, again.Replayed)
		assert.Equal(t, 2, o.calls)

		d.clock.Pass(storetest.Times.Retention)
		require.NoError(t, d.work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			_, err := tx.Records().Sweep(t.Context(), 10)
			return err
		}))
		again, err = d.Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.False(t, again.Replayed)
		assert.Equal(t, 3, o.calls)
	})
}
