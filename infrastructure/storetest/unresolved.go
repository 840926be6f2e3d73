package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// unresolved is what the store knows of records that nobody works on.
var unresolved = []check{
	{"what is unresolved is in progress with its lease over, and nothing else", func(t *testing.T, s Opened) {
		reserved(t, s.Work, reservation("alive"))
		finished(t, s.Work, reservation("finished"), success, instant(0), time.Hour)
		finished(t, s.Work, reservation("expired"), success, instant(-48*time.Hour), time.Hour)
		overdue := left(t, s, "overdue", func(r idempotency.Record, now time.Time) idempotency.Record {
			r.LeaseEnds = now.AddDate(-1, 0, 0)
			return r
		})
		givenUp := left(t, s, "given up", idempotency.Record.Abandoned)
		disputed := left(t, s, "disputed", idempotency.Record.Dispute)
		assert.ElementsMatch(t, []idempotency.Record{overdue, givenUp, disputed}, unresolvedIn(t, s.Beside, false, 10))
	}},
	{"at the very instant of its lease's end a record is unresolved and due", func(t *testing.T, s Opened) {
		do(t, s.Work, func(tx port.Tx) error {
			held, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute)
			if err != nil {
				return err
			}
			alive := held
			alive.LeaseEnds = tx.Now().Add(time.Microsecond)
			if err := tx.Records().Replace(t.Context(), held, alive); err != nil {
				return err
			}
			found, err := tx.Records().Unresolved(t.Context(), false, 10)
			assert.Empty(t, found)
			if err != nil {
				return err
			}
			if err := tx.Records().Replace(t.Context(), alive, alive.Abandoned(tx.Now())); err != nil {
				return err
			}
			found, err = tx.Records().Unresolved(t.Context(), true, 10)
			assert.Equal(t, []idempotency.Record{alive.Abandoned(tx.Now())}, found)
			return err
		})
	}},
	{"unresolved records come oldest first, those of one instant by their names; due ones by how long they wait", func(t *testing.T, s Opened) {
		const old, older = -time.Minute, -time.Hour
		for _, c := range []struct {
			key idempotency.Key
			age time.Duration
		}{{"b", old}, {"d", older}, {"a", old}, {"c", older}} {
			left(t, s, c.key, func(r idempotency.Record, now time.Time) idempotency.Record {
				r.CreatedAt = instant(c.age)
				return r.Abandoned(now.Add(c.age / 2)) // a moment later than the one before
			})
		}
		assert.Equal(t, []idempotency.Key{"c", "d", "a", "b"}, keysOf(unresolvedIn(t, s.Beside, false, 10)))
		assert.Equal(t, []idempotency.Key{"d", "c", "b", "a"}, keysOf(unresolvedIn(t, s.Beside, true, 10)))
	}},
	{"of more unresolved records than the limit those come that are oldest, or due the longest", func(t *testing.T, s Opened) {
		for i := range 9 {
			left(t, s, idempotency.Key(fmt.Sprint(8-i)), func(r idempotency.Record, now time.Time) idempotency.Record {
				r.CreatedAt = instant(time.Duration(8-i) * time.Second)
				return r.Abandoned(now)
			})
		}
		assert.Equal(t, []idempotency.Key{"0", "1", "2", "3"}, keysOf(unresolvedIn(t, s.Beside, false, 4)))
		assert.Equal(t, []idempotency.Key{"8", "7", "6", "5"}, keysOf(unresolvedIn(t, s.Beside, true, 4)))
	}},
	{"what is not due does not use up the limit", func(t *testing.T, s Opened) {
		for i := range 5 {
			left(t, s, idempotency.Key(fmt.Sprint("waiting", i)), func(r idempotency.Record, now time.Time) idempotency.Record {
				r.CreatedAt = instant(-time.Hour)
				return r.Abandoned(now).Postponed(idempotency.NewToken(), now, time.Minute)
			})
		}
		left(t, s, "due", idempotency.Record.Abandoned)
		assert.Equal(t, []idempotency.Key{"due"}, keysOf(unresolvedIn(t, s.Beside, true, 1)))
		assert.Len(t, unresolvedIn(t, s.Beside, false, 10), 6, "an operator sees them all")
	}},
	{"the recovery leaves a record alone until the time that is set, and a disputed one always", func(t *testing.T, s Opened) {
		for key, change := range map[idempotency.Key]func(r idempotency.Record, now time.Time) idempotency.Record{
			"never tried": idempotency.Record.Abandoned,
			"tried an hour ago": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Abandoned(now).Postponed(idempotency.NewToken(), now.Add(-time.Hour), 10*time.Second)
			},
			"tried just now": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Abandoned(now).Postponed(idempotency.NewToken(), now, 10*time.Minute)
			},
			"disputed": idempotency.Record.Dispute,
			"disputed, tried an hour ago": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Dispute(now).Postponed(idempotency.NewToken(), now.Add(-time.Hour), time.Second)
			},
			"released": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Dispute(now).Postponed(idempotency.NewToken(), now, time.Hour).Released(idempotency.NewToken(), now)
			},
		} {
			left(t, s, key, change)
		}
		due := keysOf(unresolvedIn(t, s.Beside, true, 10))
		assert.ElementsMatch(t, []idempotency.Key{"never tried", "tried an hour ago", "released"}, due)
		assert.Len(t, unresolvedIn(t, s.Beside, false, 10), 6)
	}},
	{"at the very instant that the recovery waits for, a record is due", func(t *testing.T, s Opened) {
		do(t, s.Work, func(tx port.Tx) error {
			held, err := tx.Records().Reserve(t.Context(), reservation("k"), time.Minute)
			if err != nil {
				return err
			}
			waiting := held.Abandoned(tx.Now())
			waiting.RecoverFrom = tx.Now().Add(time.Microsecond)
			if err := tx.Records().Replace(t.Context(), held, waiting); err != nil {
				return err
			}
			found, err := tx.Records().Unresolved(t.Context(), true, 10)
			assert.Empty(t, found)
			if err != nil {
				return err
			}
			due := waiting
			due.RecoverFrom = tx.Now()
			if err := tx.Records().Replace(t.Context(), waiting, due); err != nil {
				return err
			}
			found, err = tx.Records().Unresolved(t.Context(), true, 10)
			assert.Equal(t, []idempotency.Record{due}, found)
			return err
		})
	}},
	{"what the recovery and operators note on a record comes back whole", func(t *testing.T, s Opened) {
		for key, change := range map[idempotency.Key]func(r idempotency.Record, now time.Time) idempotency.Record{
			"postponed": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Abandoned(now).Postponed(idempotency.NewToken(), now, 7*time.Microsecond)
			},
			"tried often": func(r idempotency.Record, now time.Time) idempotency.Record {
				r.Recoveries, r.RecoverFrom = 1<<31-1, instant(3*time.Microsecond)
				return r.Abandoned(now)
			},
			"disputed": idempotency.Record.Dispute,
			"released": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Dispute(now).Released(idempotency.NewToken(), now)
			},
			"taken over": func(r idempotency.Record, now time.Time) idempotency.Record {
				tried := r.Abandoned(now).Postponed(idempotency.NewToken(), now, time.Second)
				return tried.TakenBy(reservation(r.Key), now, time.Minute)
			},
			"finished": func(r idempotency.Record, now time.Time) idempotency.Record {
				return r.Postponed(r.Token, now, time.Second).Completed(success, now, time.Hour)
			},
		} {
			want := left(t, s, key, change)
			got, err := RecordIn(t.Context(), s.Beside, want.Scope)
			require.NoError(t, err)
			assert.Equal(t, want, got, key)
		}
	}},
	{"what is listed is the whole record: its request can be executed", func(t *testing.T, s Opened) {
		want := left(t, s, "k", func(r idempotency.Record, now time.Time) idempotency.Record {
			return r.Dispute(now).Postponed(idempotency.NewToken(), now, time.Second)
		})
		assert.Equal(t, []idempotency.Record{want}, unresolvedIn(t, s.Beside, false, 10))
		assert.NotEmpty(t, want.Request)
	}},
	{"of eight recoveries at once one has the record", func(t *testing.T, s Opened) {
		for round := range 10 {
			r := left(t, s, idempotency.Key(fmt.Sprint(round)), idempotency.Record.Abandoned)
			var ended [8]error
			atOnce(len(ended), func(i int) {
				ended[i] = s.either(i).Do(t.Context(), port.Fully, func(tx port.Tx) error {
					next := r.Postponed(idempotency.NewToken(), tx.Now(), time.Minute)
					return tx.Records().Replace(t.Context(), r, next)
				})
			})
			won := 0
			for _, err := range ended {
				if err == nil {
					won++
					continue
				}
				require.ErrorIs(t, err, idempotency.ErrLost)
			}
			assert.Equal(t, 1, won)
			stands, err := RecordIn(t.Context(), s.Work, r.Scope)
			require.NoError(t, err)
			assert.Equal(t, 1, stands.Recoveries)
		}
	}},
}

// left is a stored record of alice's, as its holder or somebody after him has left it.
func left(
	t *testing.T, s Opened, key idempotency.Key, change func(r idempotency.Record, now time.Time) idempotency.Record,
) (stands idempotency.Record) {
	t.Helper()
	do(t, s.Work, func(tx port.Tx) error {
		held, err := tx.Records().Reserve(t.Context(), reservation(key), time.Minute)
		if err != nil {
			return err
		}
		stands = change(held, tx.Now())
		return tx.Records().Replace(t.Context(), held, stands)
	})
	return stands
}

func unresolvedIn(t *testing.T, w port.UnitOfWork, due bool, limit int) (found []idempotency.Record) {
	t.Helper()
	require.NoError(t, w.Read(t.Context(), func(tx port.Tx) (err error) {
		found, err = tx.Records().Unresolved(t.Context(), due, limit)
		return err
	}))
	return found
}

func keysOf(records []idempotency.Record) (keys []idempotency.Key) {
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	return keys
}
