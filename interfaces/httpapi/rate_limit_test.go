package httpapi

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noon is when a test's clock begins.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestABucketHoldsTwoSecondsOfItsRate(t *testing.T) {
	for _, perSecond := range []int{1, 2, 3, 7, 10, 1000, 1_000_000} {
		r := newRates(perSecond)
		for i := range 2 * min(perSecond, 1000) {
			require.Zero(t, r.take("alice", noon), "%d per second, number %d", perSecond, i)
		}
		if perSecond > 1000 {
			continue
		}
		wait := r.take("alice", noon)
		assert.InDelta(t, time.Second/time.Duration(perSecond), wait, float64(2*perSecond), "%d per second", perSecond)
		assert.Equal(t, wait, r.take("alice", noon), "who is refused has taken nothing")
		assert.Positive(t, r.take("alice", noon.Add(wait-time.Nanosecond)))
		assert.Zero(t, r.take("alice", noon.Add(wait)))
		assert.Positive(t, r.take("alice", noon.Add(wait)))
	}
}

func TestInTheLongRunTheRateIsTheRate(t *testing.T) {
	r, accepted := newRates(5), 0
	const seconds = 60
	for i := range seconds * 100 { // a hundred requests per second
		if r.take("alice", noon.Add(time.Duration(i)*10*time.Millisecond)) == 0 {
			accepted++
		}
	}
	assert.InDelta(t, 5*seconds+10, accepted, 1)
}

func TestEachActorHasABucket(t *testing.T) {
	r := newRates(1)
	for range 2 {
		require.Zero(t, r.take("alice", noon))
	}
	require.Positive(t, r.take("alice", noon))
	assert.Zero(t, r.take("bob", noon))
}

func TestABucketIsNotForgottenBeforeItIsFull(t *testing.T) {
	r := newRates(1)
	// One request every 900 ms is more than the rate: once the burst is used up, one in ten is refused, however often
	// the generations change.
	refused := 0
	for i := range 100 {
		if r.take("alice", noon.Add(time.Duration(i)*900*time.Millisecond)) > 0 {
			refused++
		}
	}
	assert.InDelta(t, 10, refused, 2)
}

func TestTheNumberOfBucketsIsBounded(t *testing.T) {
	r, most := newRates(1), 0
	for i := range 2 * maxBuckets {
		r.take(strconv.Itoa(i), noon)
		most = max(most, len(r.full)+len(r.older))
	}
	require.LessOrEqual(t, most, maxBuckets)
	for range 2 { // who has come last is known
		r.take("alice", noon)
	}
	assert.Positive(t, r.take("alice", noon))
	r.take("bob", noon.Add(time.Minute))
	r.take("bob", noon.Add(2*time.Minute))
	assert.LessOrEqual(t, len(r.full)+len(r.older), 2, "who has gone is forgotten")
}
