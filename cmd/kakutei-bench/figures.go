package main

import (
	"math"
	"slices"
	"time"
)

// median is the middle one, or between the two in the middle; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile is the smallest time that so many percent of all do not exceed (nearest rank); 0 of none.
func percentile(times []time.Duration, percent float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// limit is the rate at which one could do both, one after the other: L = 1 / (1/a + 1/b).
func limit(a, b float64) float64 { return 1 / (1/a + 1/b) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// sample is what one cell came to in one round.
type sample struct {
	Count     int     `json:"count"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"` // milliseconds, as is P99
	P99       float64 `json:"p99"`
	// CPU in milliseconds per request, of the service's process, of PostgreSQL's processes and of the load generator.
	ServiceCPU  float64 `json:"serviceCPU"`
	DatabaseCPU float64 `json:"databaseCPU"`
	LoadCPU     float64 `json:"loadCPU"`
	WAL         float64 `json:"wal"`          // bytes per request
	Others      float64 `json:"othersOfCPUs"` // CPUs that processes which are not the bench's have used meanwhile
}

// together is what samples of one load, one after the other, come to as one: its rate by their time, what a request takes
// by their requests, percentiles by the times of all answers.
func together(all []sample, times []time.Duration) (t sample) {
	var took, others float64
	for _, s := range all {
		n, seconds := float64(s.Count), float64(s.Count)/s.PerSecond
		t.Count += s.Count
		t.ServiceCPU += n * s.ServiceCPU
		t.DatabaseCPU += n * s.DatabaseCPU
		t.LoadCPU += n * s.LoadCPU
		t.WAL += n * s.WAL
		took, others = took+seconds, others+seconds*s.Others
	}
	n := float64(t.Count)
	t.ServiceCPU, t.DatabaseCPU, t.LoadCPU, t.WAL = t.ServiceCPU/n, t.DatabaseCPU/n, t.LoadCPU/n, t.WAL/n
	t.PerSecond, t.Others = n/took, others/took
	t.P50, t.P99 = milliseconds(percentile(times, 50)), milliseconds(percentile(times, 99))
	return t
}

// cell is one row of the table. Each round adds a sample to it.
type cell struct {
	Store string // PostgreSQL, SQLite, or none
	What  string
	Conns int
}

// results are all samples, by cell and round. A cell that was not measured in a round is missing there.
type results map[cell][]sample

func (r results) add(c cell, s sample) { r[c] = append(r[c], s) }

// middle is the median of each figure by itself.
func (r results) middle(c cell) sample {
	of := func(figure func(sample) float64) float64 {
		var values []float64
		for _, s := range r[c] {
			values = append(values, figure(s))
		}
		return median(values)
	}
	return sample{
		Count:     int(of(func(s sample) float64 { return float64(s.Count) })),
		PerSecond: of(func(s sample) float64 { return s.PerSecond }),
		P50:       of(func(s sample) float64 { return s.P50 }), P99: of(func(s sample) float64 { return s.P99 }),
		ServiceCPU:  of(func(s sample) float64 { return s.ServiceCPU }),
		DatabaseCPU: of(func(s sample) float64 { return s.DatabaseCPU }),
		LoadCPU:     of(func(s sample) float64 { return s.LoadCPU }),
		WAL:         of(func(s sample) float64 { return s.WAL }), Others: of(func(s sample) float64 { return s.Others }),
	}
}

// ratio is the median, over the rounds, of what the samples of one round come to. Two rounds are never compared.
func (r results) ratio(of func(...sample) float64, cells ...cell) float64 {
	var values []float64
	for round := range r[cells[0]] {
		var samples []sample
		for _, c := range cells {
			if round < len(r[c]) {
				samples = append(samples, r[c][round])
			}
		}
		if len(samples) == len(cells) {
			values = append(values, of(samples...))
		}
	}
	return median(values)
}
