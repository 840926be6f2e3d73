package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Two instances take turns at the file: whoever waits asks often enough to find it free, though the other one is always
// at work. Few requests are answered that there was no turn in time, and their repeats succeed.
func TestTwoInstancesUnderLoadTakeTurnsAtOneFile(t *testing.T) {
	g := groundOn(t, sqliteFile(t)).with("KAKUTEI_LEASE", "5s")
	one, other := g.start(), g.start()
	payments := underLoadAt(t, func() { <-time.After(loadFor) }, one.running, other.running)
	tries, worst := 0, 0
	for _, p := range payments {
		tries, worst = tries+p.tries, max(worst, p.tries)
	}
	t.Logf("%d payments at two instances took %d requests, one of them %d", len(payments), tries, worst)
	assert.Less(t, tries-len(payments), len(payments)/10, "few are asked to come again")
	g.whole(one.running, payments...)
}
