package idempotency_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/idempotency"
)

const longest = 10 * time.Minute

// tried is the record after so many tries of the recovery, all of them now.
func tried(r idempotency.Record, n int, now time.Time, interval time.Duration) idempotency.Record {
	for range n {
		r = r.Postponed("recovery", now, interval)
	}
	return r
}

func TestARecordIsUnresolvedFromTheVeryEndOfItsLeaseUntilItsOutcome(t *testing.T) {
	running := holder.Opened(opened, lease)
	for name, c := range map[string]struct {
		record idempotency.Record
		now    time.Time
		want   bool
	}{
		"while its holder has just begun":          {running, opened, false},
		"a tick before the lease is over":          {running, ends.Add(-tick), false},
		"when the lease is over":                   {running, ends, true},
		"for ever after":                           {running, ends.AddDate(10, 0, 0), true},
		"by a clock that is behind":                {running, opened.Add(-time.Hour), false},
		"at once when its holder gave up":          {running.Abandoned(opened), opened, true},
		"at once when only a person can settle it": {running.Dispute(opened), opened, true},
		"not when it was taken over":               {running.TakenBy(comes("second", asked), ends, lease), ends, false},
		"not when its holder goes on":              {running.Renewed(ends, lease), ends, false},
		"not when it has succeeded":                {running.Completed(success, completed, retention), ends, false},
		"not when it has failed":                   {running.Completed(refusal, completed, retention), ends, false},
		"not when it has expired":                  {running.Completed(success, completed, retention), expires, false},
		"when the recovery has tried it":           {tried(running, 1, ends, time.Second), ends, true},
		"when it was released":                     {running.Released("second", ends), ends, true},
	} {
		assert.Equal(t, c.want, c.record.Unresolved(c.now), name)
	}
}

// Whoever finds a record unresolved may take it: the two never contradict each other.
func TestAnUnresolvedRecordIsVacantAndNoOtherInProgressIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := holder.Opened(opened, lease)
		now := opened.Add(time.Duration(rapid.Int64Range(-int64(lease), int64(3*lease)).Draw(t, "now")))
		vacant := r.Judge(comes("second", asked), now) == idempotency.Vacant
		require.Equal(t, vacant, r.Unresolved(now))
	})
}

// DESIGN.md §3, rule 8: it backs off from one interval, doubling, to ten minutes.
func TestHowLongTheRecoveryLeavesARecordAlone(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		want     []time.Duration // after the first try, the second …
	}{
		"ten seconds double until it would be more than ten minutes": {10 * time.Second, []time.Duration{
			10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second,
			longest, longest,
		}},
		"what doubles to ten minutes exactly stays there": {75 * time.Second, []time.Duration{
			75 * time.Second, 150 * time.Second, 300 * time.Second, longest, longest,
		}},
		"all but ten minutes are doubled to ten minutes": {longest - tick, []time.Duration{longest - tick, longest, longest}},
		"ten minutes stay ten minutes":                   {longest, []time.Duration{longest, longest}},
		"a day is ten minutes":                           {24 * time.Hour, []time.Duration{longest, longest}},
		"the longest interval there is is ten minutes":   {math.MaxInt64, []time.Duration{longest, longest}},
	} {
		r := holder.Opened(opened, lease)
		for i, want := range c.want {
			r = r.Postponed("recovery", ends, c.interval)
			assert.Equal(t, want, r.RecoverFrom.Sub(ends), "%s: after try %d", name, i+1)
			assert.Equal(t, i+1, r.Recoveries, name)
		}
	}
}

// Half of ten minutes, taken often enough, is no whole number: what comes close to ten minutes is not yet there.
func TestTheLastDoublingBeforeTenMinutesIsADoubling(t *testing.T) {
	r := holder.Opened(opened, lease)
	r.Recoveries = 39
	assert.Equal(t, time.Duration(1<<39), r.Postponed("recovery", ends, 1).RecoverFrom.Sub(ends))
}

func TestTheBackoffNeverShrinksAndNeverExceedsTenMinutesHoweverOftenARecordWasTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "interval"))
		if rapid.Bool().Draw(t, "short") {
			interval = interval%longest + 1
		}
		r := holder.Opened(opened, lease)
		r.Recoveries = rapid.IntRange(0, math.MaxInt32-2).Draw(t, "recoveries")
		if rapid.Bool().Draw(t, "few") {
			r.Recoveries %= 80
		}
		first := r.Postponed("recovery", ends, interval)
		second := first.Postponed("recovery", ends, interval)
		backoff, next := first.RecoverFrom.Sub(ends), second.RecoverFrom.Sub(ends)
		require.GreaterOrEqual(t, backoff, min(interval, longest))
		require.LessOrEqual(t, backoff, longest)
		require.Equal(t, min(2*backoff, longest), next)
	})
}

func TestATryOfTheRecoveryChangesTokenAndBackoffAlone(t *testing.T) {
	running := holder.Opened(opened, lease)
	want := running
	want.Token, want.Recoveries, want.RecoverFrom = "recovery", 1, ends.Add(time.Minute).Add(10*time.Second)
	postponed := running.Postponed("recovery", ends.Add(time.Minute), 10*time.Second)
	assert.Equal(t, want, postponed, "the lease stays over, and a try is no execution")
	assert.Equal(t, idempotency.Vacant, postponed.Judge(comes("second", asked), ends), "a client's retry does not wait")
	assert.Equal(t, idempotency.Reused, postponed.Judge(comes("second", other), ends))
}

func TestATakeoverKeepsTheBackoff(t *testing.T) {
	postponed := tried(holder.Opened(opened, lease), 3, ends, 10*time.Second)
	taken := postponed.TakenBy(comes("second", asked), ends, lease)
	assert.Equal(t, 3, taken.Recoveries, "the recovery's own execution is one, too")
	assert.Equal(t, postponed.RecoverFrom, taken.RecoverFrom)
	assert.Equal(t, 2, taken.Executions, "tries that executed nothing do not count")
}

func TestADisputeIsAnAbandonedRecordThatOnlyAPersonCanSettle(t *testing.T) {
	running := holder.Opened(opened, lease)
	want := running.Abandoned(completed)
	want.Disputed = true
	assert.Equal(t, want, running.Dispute(completed))
	assert.False(t, running.Abandoned(completed).Disputed)
}

// Money was taken that nobody had asked for. Whoever asks again may get no answer at all: that does not undo it.
func TestADisputeOutlivesWhoeverAsksAgain(t *testing.T) {
	disputed := holder.Opened(opened, lease).Dispute(completed)
	assert.True(t, disputed.TakenBy(comes("second", asked), completed, lease).Abandoned(completed).Disputed)
	assert.True(t, disputed.Postponed("recovery", completed, time.Second).Disputed)
}

func TestSinceWhenARecordIsDue(t *testing.T) {
	running := holder.Opened(opened, lease)
	assert.Equal(t, ends, running.DueSince(), "nobody has tried it: since the end of its lease")
	assert.Equal(t, ends.Add(10*time.Second), running.Postponed("recovery", ends, 10*time.Second).DueSince())
	assert.Equal(t, ends, running.Released("released", ends).DueSince())
}

func TestAReleasedRecordIsDueAtOnceAsIfNobodyHadTriedIt(t *testing.T) {
	disputed := tried(holder.Opened(opened, lease), 20, ends, 10*time.Second).Dispute(ends)
	now := ends.Add(time.Minute)
	want := disputed
	want.Token, want.RecoverFrom, want.Recoveries, want.Disputed = "released", now, 0, false
	released := disputed.Released("released", now)
	assert.Equal(t, want, released, "lease, executions and request stay as they are: money is not decided here")
	next := released.Postponed("recovery", now, 10*time.Second)
	assert.Equal(t, now.Add(10*time.Second), next.RecoverFrom, "the backoff begins anew")
}

func TestACompletedRecordIsNobodysToRecover(t *testing.T) {
	r := tried(holder.Opened(opened, lease), 1, ends, time.Hour)
	for _, o := range []idempotency.Outcome{success, refusal} {
		done := r.Completed(o, completed, retention)
		assert.False(t, done.Unresolved(expires.AddDate(1, 0, 0)))
		assert.Empty(t, done.Request)
		again := done.TakenBy(comes("second", other), expires, lease)
		assert.Zero(t, again.Recoveries, "what comes after the retention starts from scratch")
		assert.True(t, again.RecoverFrom.IsZero())
		assert.False(t, again.Disputed)
	}
}
