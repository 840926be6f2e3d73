package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

var races = []check{
	// C16: a lost race is an answer, never an error of the store.
	{"of sixteen reservations at once one holds the key, two hundred times", func(t *testing.T, s Opened) {
		for round := range 200 {
			key := idempotency.Key(fmt.Sprintf("k%d", round))
			stands := race(t, s, 16, key, time.Minute)
			require.Len(t, stands.holders, 1, "round %d", round)
			assert.Equal(t, 1, stands.record.Executions)
		}
	}},
	{"of eight takeovers at once one holds the key", func(t *testing.T, s Opened) {
		for round := range 20 {
			key := idempotency.Key(fmt.Sprintf("k%d", round))
			lost := reserved(t, s.Work, reservation(key))
			require.NoError(t, Age(t.Context(), s.Work, lost.Scope, 2*time.Minute))

			stands := race(t, s, 8, key, time.Minute)
			require.Len(t, stands.holders, 1, "round %d", round)
			assert.Equal(t, 2, stands.record.Executions)

			err := s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				return tx.Records().Replace(t.Context(), lost, lost.Completed(success, tx.Now(), time.Hour))
			})
			require.ErrorIs(t, err, idempotency.ErrLost, "the first holder is fenced off")
		}
	}},
	// C85: expired means absent, whether or not it was swept.
	{"of twenty takers of an expired record one holds the key", func(t *testing.T, s Opened) {
		for round := range 20 {
			key := idempotency.Key(fmt.Sprintf("k%d", round))
			finished(t, s.Work, reservation(key), success, instant(-48*time.Hour), time.Hour)

			stands := race(t, s, 20, key, time.Minute)
			require.Len(t, stands.holders, 1, "round %d", round)
			assert.Equal(t, 1, stands.record.Executions)
			assert.Equal(t, idempotency.InProgress, stands.record.Status)
			assert.Empty(t, stands.record.Outcome.Document)
			assert.True(t, stands.record.ExpiresAt.IsZero())
		}
	}},
	// C04: the loser is told while it is writing, or at its commit; never later.
	{"a completion that runs into a takeover loses, with all that it wrote", func(t *testing.T, s Opened) {
		for round := range 20 {
			o := added(t, s.Work)
			held := reserved(t, s.Work, reservation(idempotency.Key(fmt.Sprintf("k%d", round))))
			winner := reservation(held.Key)
			takeover := hold(t, s.Work, func(tx port.Tx) error {
				taken := held.TakenBy(winner, tx.Now(), time.Minute)
				if err := tx.Records().Replace(t.Context(), held, taken); err != nil {
					return err
				}
				_, err := tx.Records().Find(t.Context(), held.Scope) // whatever was deferred is sent by now
				return err
			})
			completion := make(chan error, 1)
			go func() {
				completion <- s.Beside.Do(t.Context(), port.Fully, func(tx port.Tx) error {
					if err := changing(t, o, paying("k"))(tx); err != nil {
						return err
					}
					return tx.Records().Replace(t.Context(), held, held.Completed(success, tx.Now(), time.Hour))
				})
			}()
			takeover()
			require.ErrorIs(t, <-completion, idempotency.ErrLost)
			assert.Equal(t, order.Placed, orderIn(t, s.Beside, o.State().ID).Status)
			stands, err := RecordIn(t.Context(), s.Beside, held.Scope)
			require.NoError(t, err)
			assert.Equal(t, winner.Token, stands.Token)
		}
	}},
	{"of sixteen payments of one order at once one is recorded", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		var mu sync.Mutex
		paid := 0
		atOnce(16, func(i int) {
			err := s.either(i).Do(t.Context(), port.Fully, changing(t, o, paying(fmt.Sprintf("k%d", i))))
			if err == nil {
				mu.Lock()
				paid++
				mu.Unlock()
				return
			}
			assert.ErrorIs(t, err, order.ErrOtherAttempt)
		})
		assert.Equal(t, 1, paid)
		assert.Equal(t, 1, orderIn(t, s.Work, o.State().ID).Attempt.Number)
	}},
}

// raced is what a race for a key has left.
type raced struct {
	record  idempotency.Record
	holders []idempotency.Token // who was told that the key is his
}

// race has n reservations for one key do at once what the executor does with one: reserve, judge, take what is vacant.
func race(t *testing.T, s Opened, n int, key idempotency.Key, lease time.Duration) (left raced) {
	t.Helper()
	var mu sync.Mutex
	atOnce(n, func(i int) {
		mine := reservation(key)
		var verdict idempotency.Verdict
		err := s.either(i).Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			stands, err := tx.Records().Reserve(t.Context(), mine, lease)
			if err != nil {
				return err
			}
			if verdict = stands.Judge(mine, tx.Now()); verdict == idempotency.Vacant {
				return tx.Records().Replace(t.Context(), stands, stands.TakenBy(mine, tx.Now(), lease))
			}
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, idempotency.ErrInProgress) || errors.Is(err, idempotency.ErrLost):
		case assert.NoError(t, err) && verdict != idempotency.Busy:
			left.holders = append(left.holders, mine.Token)
		}
	})
	var err error
	left.record, err = RecordIn(t.Context(), s.Work, reservation(key).Scope)
	require.NoError(t, err)
	assert.Contains(t, left.holders, left.record.Token)
	return left
}
