package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAMedianIsTheMiddleOne(t *testing.T) {
	assert.InDelta(t, 2, median([]float64{9, 1, 2}), 0)
	assert.InDelta(t, 1.5, median([]float64{2, 1}), 0)
	assert.True(t, math.IsNaN(median(nil)))
}

func TestAPercentileIsATimeThatWasMeasured(t *testing.T) {
	var times []time.Duration
	for i := 100; i >= 1; i-- {
		times = append(times, time.Duration(i))
	}
	for percent, want := range map[float64]time.Duration{50: 50, 99: 99, 100: 100, 0: 1} {
		assert.Equal(t, want, percentile(times, percent), percent)
	}
	assert.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 99))
	assert.Zero(t, percentile(nil, 50))
}

func TestTheLimitIsOneAfterTheOther(t *testing.T) {
	assert.InDelta(t, 7500, limit(10_000, 30_000), 1e-9)
}

func TestARatioIsTakenWithinARound(t *testing.T) {
	a, b := cell{What: "a"}, cell{What: "b"}
	r := results{}
	// The machine is four times as slow in the second round, for both: whoever compares medians over all rounds is misled.
	for _, perSecond := range [][2]float64{{100, 200}, {25, 50}, {90, 360}} {
		r.add(a, sample{PerSecond: perSecond[0]})
		r.add(b, sample{PerSecond: perSecond[1]})
	}
	rate := func(s ...sample) float64 { return s[0].PerSecond / s[1].PerSecond }
	assert.InDelta(t, 0.5, r.ratio(rate, a, b), 1e-9)

	r.add(a, sample{PerSecond: 1}) // the other one of this round is missing
	assert.InDelta(t, 0.5, r.ratio(rate, a, b), 1e-9)
	assert.True(t, math.IsNaN(r.ratio(rate, a, cell{What: "none"})))
}

func TestTheMiddleOfACellIsEachFiguresOwn(t *testing.T) {
	c := cell{What: "a"}
	r := results{c: {{P50: 1, WAL: 9}, {P50: 3, WAL: 7}, {P50: 2, WAL: 8}}}
	assert.InDelta(t, 2, r.middle(c).P50, 0)
	assert.InDelta(t, 8, r.middle(c).WAL, 0)
}

func TestSpellsAreWeighedByWhatWasDoneInThem(t *testing.T) {
	one := sample{Count: 300, PerSecond: 100, ServiceCPU: 1, DatabaseCPU: 2, LoadCPU: 3, WAL: 4000, Others: 0.4}
	other := sample{Count: 100, PerSecond: 100, ServiceCPU: 5, DatabaseCPU: 6, LoadCPU: 7, WAL: 8000, P50: 9, P99: 9}
	slow := sample{Count: 100, PerSecond: 25, ServiceCPU: 1, DatabaseCPU: 2, LoadCPU: 3, WAL: 4000}
	times := []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	assert.Equal(t, sample{
		Count: 400, PerSecond: 100, ServiceCPU: 2, DatabaseCPU: 3, LoadCPU: 4, WAL: 5000, Others: 0.3, P50: 2, P99: 3,
	}, rounded(together([]sample{one, other}, times)))
	all := rounded(together([]sample{other, slow}, times))
	assert.InDelta(t, 40, all.PerSecond, 0, "200 in 5 seconds")
	assert.InDelta(t, 3, all.ServiceCPU, 0)
}

// rounded spares a comparison what floating-point numbers leave.
func rounded(s sample) sample {
	s.Others = math.Round(s.Others*1e9) / 1e9
	return s
}
