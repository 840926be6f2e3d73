package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

var auditLog = []check{
	{"an audit entry comes back as it was written, to the last character and microsecond", func(t *testing.T, s Opened) {
		var want []port.AuditEntry
		for i, kind := range port.AuditKinds {
			e := happening(kind, instant(time.Duration(i)*time.Microsecond))
			e.Scope.Actor = strings.Repeat("~", 127) + fmt.Sprint(i)
			e.Detail = "煎茶 o<&>\"'é\u2028\\ \U0001f375\n" + strings.Repeat("x", 2000)
			want = append(want, e)
		}
		appended(t, s.Work, want[0])
		appended(t, s.Work, want[1:]...)
		got := auditAfter(t, s.Beside, 0, "", 100)
		require.Len(t, got, len(want))
		for i := range got {
			assert.Positive(t, got[i].Number)
			want[i].Number = got[i].Number
		}
		assert.Equal(t, want, got)
		assertAscending(t, got)
	}},
	{"a page begins behind the number it is asked for and holds no more than its limit", func(t *testing.T, s Opened) {
		appended(t, s.Work, happenings(port.AuditTakeover, 5)...)
		all := auditAfter(t, s.Work, 0, "", 100)
		first := auditAfter(t, s.Beside, 0, "", 2)
		assert.Equal(t, all[:2], first)
		assert.Equal(t, all[2:4], auditAfter(t, s.Beside, first[1].Number, "", 2))
		assert.Equal(t, all[4:], auditAfter(t, s.Beside, all[3].Number, "", 2))
		assert.Empty(t, auditAfter(t, s.Beside, all[4].Number, "", 2))
		assert.Empty(t, auditAfter(t, s.Beside, math.MaxInt64, "", 2))
	}},
	{"a page of one kind leaves out the others, and they do not count", func(t *testing.T, s Opened) {
		for range 3 {
			appended(t, s.Work, happening(port.AuditMismatch, instant(0)), happening(port.AuditDuplicate, instant(0)))
		}
		all := auditAfter(t, s.Work, 0, "", 100)
		assert.Equal(t, []port.AuditEntry{all[1], all[3]}, auditAfter(t, s.Beside, 0, port.AuditDuplicate, 2))
		assert.Equal(t, []port.AuditEntry{all[5]}, auditAfter(t, s.Beside, all[3].Number, port.AuditDuplicate, 2))
		assert.Empty(t, auditAfter(t, s.Beside, 0, port.AuditResolved, 2))
	}},
	{"an entry that is sent again is no second one", func(t *testing.T, s Opened) {
		first, second, third := happening(port.AuditTakeover, instant(0)), happening(port.AuditTakeover, instant(1)),
			happening(port.AuditTakeover, instant(2))
		appended(t, s.Work, first, first)
		told := auditAfter(t, s.Work, 0, "", 100)
		require.Len(t, told, 1)
		again := first
		again.Detail = "told once more"
		appended(t, s.Beside, second, again, third)
		got := auditAfter(t, s.Work, 0, "", 100)
		require.Len(t, got, 3)
		assert.Equal(t, told[0], got[0])
		assert.Equal(t, []string{second.EventID, third.EventID}, []string{got[1].EventID, got[2].EventID})
		assertAscending(t, got)
	}},
	{"nothing to append is nothing appended", func(t *testing.T, s Opened) {
		appended(t, s.Work)
		assert.Empty(t, auditAfter(t, s.Beside, 0, "", 100))
		assert.Zero(t, lastAudited(t, s.Beside))
	}},
	{"an appended entry goes with its transaction", func(t *testing.T, s Opened) {
		kept, lost := happening(port.AuditReleased, instant(0)), happening(port.AuditReleased, instant(0))
		require.ErrorIs(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := tx.Audit().Append(t.Context(), []port.AuditEntry{lost}); err != nil {
				return err
			}
			seen, err := tx.Audit().After(t.Context(), 0, "", 100)
			require.NoError(t, err)
			assert.Len(t, seen, 1, "a transaction sees what it appended itself")
			return errStep
		}), errStep)
		assert.Empty(t, auditAfter(t, s.Beside, 0, "", 100))
		appended(t, s.Work, kept)
		got := auditAfter(t, s.Beside, 0, "", 100)
		require.Len(t, got, 1)
		assert.Equal(t, kept.EventID, got[0].EventID)
	}},
	{"what a caller does to his copy changes nothing that is appended", func(t *testing.T, s Opened) {
		given := happenings(port.AuditTakeover, 2)
		do(t, s.Work, func(tx port.Tx) error {
			err := tx.Audit().Append(t.Context(), given)
			given[0].Detail = "mine"
			return err
		})
		auditAfter(t, s.Work, 0, "", 100)[1].Detail = "mine too"
		for _, e := range auditAfter(t, s.Beside, 0, "", 100) {
			assert.NotContains(t, e.Detail, "mine")
		}
	}},
	{"the last number stays when its entry is swept, and is never given again", func(t *testing.T, s Opened) {
		appended(t, s.Work, happenings(port.AuditTakeover, 3)...)
		before := auditAfter(t, s.Work, 0, "", 100)
		assert.Equal(t, before[2].Number, lastAudited(t, s.Beside))
		assert.Equal(t, 3, sweptAudit(t, s.Beside, instant(time.Hour), 100))
		assert.Empty(t, auditAfter(t, s.Work, 0, "", 100))
		assert.Equal(t, before[2].Number, lastAudited(t, s.Work))
		appended(t, s.Beside, happening(port.AuditTakeover, instant(0)))
		after := auditAfter(t, s.Work, before[2].Number, "", 100)
		require.Len(t, after, 1)
		assert.Equal(t, after[0].Number, lastAudited(t, s.Work))
	}},
	{"a sweep deletes what is older, oldest numbers first, and no more than its limit", func(t *testing.T, s Opened) {
		appended(t, s.Work, happenings(port.AuditTakeover, 5)...) // a second apart
		edge := instant(4 * time.Second)
		all := auditAfter(t, s.Work, 0, "", 100)
		assert.Equal(t, 3, sweptAudit(t, s.Work, edge, 3))
		assert.Equal(t, all[3:], auditAfter(t, s.Beside, 0, "", 100))
		assert.Equal(t, 1, sweptAudit(t, s.Beside, edge, 3))
		assert.Equal(t, all[4:], auditAfter(t, s.Work, 0, "", 100), "the one of that very instant is not older")
		assert.Zero(t, sweptAudit(t, s.Work, edge, 3))
	}},
	{"a reading transaction neither appends nor sweeps", func(t *testing.T, s Opened) {
		appended(t, s.Work, happening(port.AuditTakeover, instant(0)))
		require.Error(t, s.Work.Read(t.Context(), func(tx port.Tx) error {
			return tx.Audit().Append(t.Context(), happenings(port.AuditTakeover, 1))
		}))
		require.Error(t, s.Work.Read(t.Context(), func(tx port.Tx) error {
			_, err := tx.Audit().Sweep(t.Context(), instant(time.Hour), 1)
			return err
		}))
		assert.Len(t, auditAfter(t, s.Beside, 0, "", 100), 1)
	}},
	{"a kind that is not published is refused", func(t *testing.T, s Opened) {
		require.Error(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			return tx.Audit().Append(t.Context(), happenings("something", 1))
		}))
		assert.Empty(t, auditAfter(t, s.Work, 0, "", 100))
	}},
	{"an entry that is committed late is not passed by", func(t *testing.T, s Opened) {
		early, late := happening(port.AuditTakeover, instant(0)), happening(port.AuditTakeover, instant(1))
		commit := hold(t, s.Work, func(tx port.Tx) error {
			if err := tx.Audit().Append(t.Context(), []port.AuditEntry{early}); err != nil {
				return err
			}
			_, err := tx.Audit().Last(t.Context()) // whatever was deferred is sent by now
			return err
		})
		appendLate := func() error {
			return s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
				return tx.Audit().Append(t.Context(), []port.AuditEntry{late})
			})
		}
		_ = appendLate() // it may have to wait for the other: then it is not there, and comes again
		seen := auditAfter(t, s.Beside, 0, "", 100)
		last := int64(0)
		if len(seen) > 0 {
			last = seen[len(seen)-1].Number
		}
		commit()
		require.NoError(t, appendLate())
		seen = append(seen, auditAfter(t, s.Beside, last, "", 100)...)
		assert.ElementsMatch(t, []string{early.EventID, late.EventID}, eventIDs(seen))
	}},
	{"who reads on while eight others write misses no entry and reads none twice", func(t *testing.T, s Opened) {
		const writers, each = 8, 20
		var sent [writers][]port.AuditEntry
		var failed [writers]error
		written := make(chan struct{})
		go func() {
			defer close(written)
			atOnce(writers, func(i int) {
				for n := 0; n < each && failed[i] == nil; n++ {
					some := happenings(port.AuditTakeover, 1+n%3)
					sent[i] = append(sent[i], some...)
					failed[i] = insisting(func() error {
						return s.either(i).Do(t.Context(), port.Fully, func(tx port.Tx) error {
							return tx.Audit().Append(t.Context(), some)
						})
					})
				}
			})
		}()
		seen := readOn(t, s.Beside, written)

		var want []string
		for i := range writers {
			require.NoError(t, failed[i])
			want = append(want, eventIDs(sent[i])...)
		}
		assert.ElementsMatch(t, want, eventIDs(seen))
		assertAscending(t, seen)
	}},
}

// insisting tries again when the wait for the store's turn has run out, as the writer of the log does: on a machine that
// is slow enough, eight may be too many.
func insisting(write func() error) error {
	for {
		if err := write(); !errors.Is(err, port.ErrUnavailable) {
			return err
		}
	}
}

// readOn pages through the log until it is over and read to its end.
func readOn(t *testing.T, w port.UnitOfWork, over <-chan struct{}) (seen []port.AuditEntry) {
	t.Helper()
	for last, lastRound := int64(0), false; ; {
		select {
		case <-over:
			lastRound = true
		default:
		}
		page := auditAfter(t, w, last, "", 7)
		if len(page) > 0 {
			seen, last = append(seen, page...), page[len(page)-1].Number
		} else if lastRound {
			return seen
		}
	}
}

// happening is an audit entry of alice's record.
func happening(kind port.AuditKind, at time.Time) port.AuditEntry {
	return port.AuditEntry{
		EventID: uuid.NewString(), At: at, Kind: kind, Detail: "execution 2",
		Scope: idempotency.Scope{Operation: operation, Actor: alice, Key: "k"},
	}
}

// happenings are n audit entries, a second apart.
func happenings(kind port.AuditKind, n int) (all []port.AuditEntry) {
	for i := range n {
		all = append(all, happening(kind, instant(time.Duration(i)*time.Second)))
	}
	return all
}

func eventIDs(entries []port.AuditEntry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.EventID)
	}
	return ids
}

func appended(t *testing.T, w port.UnitOfWork, entries ...port.AuditEntry) {
	t.Helper()
	do(t, w, func(tx port.Tx) error { return tx.Audit().Append(t.Context(), entries) })
}

func auditAfter(t *testing.T, w port.UnitOfWork, number int64, kind port.AuditKind, limit int) []port.AuditEntry {
	t.Helper()
	var found []port.AuditEntry
	require.NoError(t, w.Read(t.Context(), func(tx port.Tx) (err error) {
		found, err = tx.Audit().After(t.Context(), number, kind, limit)
		return err
	}))
	return found
}

func lastAudited(t *testing.T, w port.UnitOfWork) (last int64) {
	t.Helper()
	require.NoError(t, w.Read(t.Context(), func(tx port.Tx) (err error) {
		last, err = tx.Audit().Last(t.Context())
		return err
	}))
	return last
}

func sweptAudit(t *testing.T, w port.UnitOfWork, before time.Time, limit int) (swept int) {
	t.Helper()
	do(t, w, func(tx port.Tx) (err error) {
		swept, err = tx.Audit().Sweep(t.Context(), before, limit)
		return err
	})
	return swept
}

func assertAscending(t *testing.T, entries []port.AuditEntry) {
	t.Helper()
	for i := 1; i < len(entries); i++ {
		assert.Less(t, entries[i-1].Number, entries[i].Number)
	}
}
