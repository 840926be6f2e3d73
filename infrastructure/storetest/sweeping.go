package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

var sweeping = []check{
	{"a sweep deletes what is finished and expired, and nothing else", func(t *testing.T, s Opened) {
		running := reserved(t, s.Work, reservation("running"))
		abandoned := reserved(t, s.Work, reservation("abandoned"))
		require.NoError(t, Age(t.Context(), s.Work, abandoned.Scope, 9000*time.Hour))
		now := running.CreatedAt
		fresh := finished(t, s.Work, reservation("fresh"), success, now, time.Hour)
		refusal := idempotency.Outcome{Refusal: "amount_mismatch", Document: []byte("{}")}
		var expired []idempotency.Record
		for key, outcome := range map[idempotency.Key]idempotency.Outcome{"succeeded": success, "failed": refusal} {
			expired = append(expired, finished(t, s.Work, reservation(key), outcome, now.Add(-2*time.Hour), time.Hour))
		}

		swept, err := idempotent.Sweep(t.Context(), s.Beside, idempotent.Pace{})
		require.NoError(t, err)
		assert.Equal(t, 2, swept)
		for _, r := range []idempotency.Record{running, abandoned, fresh} {
			stands, err := RecordIn(t.Context(), s.Work, r.Scope)
			require.NoError(t, err, r.Key)
			assert.Equal(t, r.Token, stands.Token)
		}
		for _, r := range expired {
			_, err := RecordIn(t.Context(), s.Work, r.Scope)
			require.ErrorIs(t, err, idempotency.ErrNotFound, r.Key)
		}
	}},
	{"at the very instant of its expiry a record is absent, to the sweep too", func(t *testing.T, s Opened) {
		do(t, s.Work, func(tx port.Tx) error {
			n := reservation("k")
			held, err := tx.Records().Reserve(t.Context(), n, time.Minute)
			require.NoError(t, err)
			done := held.Completed(success, tx.Now().Add(-time.Hour), time.Hour)
			if err := tx.Records().Replace(t.Context(), held, done); err != nil {
				return err
			}
			stands, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute)
			require.NoError(t, err)
			assert.Equal(t, tx.Now(), stands.ExpiresAt)
			assert.Equal(t, idempotency.Vacant, stands.Judge(reservation("k"), tx.Now()))
			swept, err := tx.Records().Sweep(t.Context(), 10)
			assert.Equal(t, 1, swept)
			return err
		})
	}},
	{"a sweep deletes no more than its limit", func(t *testing.T, s Opened) {
		expire(t, s, 5)
		var swept []int
		for range 3 {
			do(t, s.Work, func(tx port.Tx) error {
				n, err := tx.Records().Sweep(t.Context(), 2)
				swept = append(swept, n)
				return err
			})
		}
		assert.Equal(t, []int{2, 2, 1}, swept)
	}},
	{"sweeps at once share the work", func(t *testing.T, s Opened) {
		const expired = 60
		expire(t, s, expired)
		var swept [4]int
		var failed [4]error
		atOnce(len(swept), func(i int) { swept[i], failed[i] = idempotent.Sweep(t.Context(), s.either(i), idempotent.Pace{}) })
		total, err := idempotent.Sweep(t.Context(), s.Work, idempotent.Pace{}) // what one had in hand when another looked
		require.NoError(t, err)
		for i, n := range swept {
			require.NoError(t, failed[i])
			total += n
		}
		assert.Equal(t, expired, total)
	}},
	{"a record that is being taken is left to its taker", func(t *testing.T, s Opened) {
		old := finished(t, s.Work, reservation("k"), success, instant(-48*time.Hour), time.Hour)
		taker := reservation("k")
		release := hold(t, s.Work, func(tx port.Tx) error {
			if err := tx.Records().Replace(t.Context(), old, old.TakenBy(taker, tx.Now(), time.Minute)); err != nil {
				return err
			}
			_, err := tx.Records().Find(t.Context(), old.Scope) // whatever was deferred is sent by now
			return err
		})
		swept, err := idempotent.Sweep(t.Context(), s.Beside, idempotent.Pace{})
		if s.OneAtATime {
			require.ErrorIs(t, err, port.ErrUnavailable)
		} else {
			require.NoError(t, err)
		}
		assert.Zero(t, swept)
		release()
		stands, err := RecordIn(t.Context(), s.Beside, old.Scope)
		require.NoError(t, err)
		assert.Equal(t, taker.Token, stands.Token)
	}},
	// C18: the row goes between what a taker read and what it writes.
	{"who would take a record that was swept meanwhile has lost it", func(t *testing.T, s Opened) {
		old := finished(t, s.Work, reservation("k"), success, instant(-48*time.Hour), time.Hour)
		_, err := idempotent.Sweep(t.Context(), s.Beside, idempotent.Pace{})
		require.NoError(t, err)
		require.ErrorIs(t, s.Work.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			return tx.Records().Replace(t.Context(), old, old.TakenBy(reservation("k"), tx.Now(), time.Minute))
		}), idempotency.ErrLost)
	}},
}

// expire stores records that are past their retention.
func expire(t *testing.T, s Opened, n int) {
	t.Helper()
	for i := range n {
		finished(t, s.Work, reservation(idempotency.Key(fmt.Sprint(i))), success, instant(-48*time.Hour), time.Hour)
	}
}
