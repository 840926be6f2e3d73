//go:build ha

package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// haRounds is how often a leader is killed: HA_ROUNDS, or 3.
func haRounds(t *testing.T) int {
	t.Helper()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("HA_ROUNDS"), "3"))
	require.NoError(t, err, "HA_ROUNDS")
	require.Positive(t, rounds, "HA_ROUNDS")
	return rounds
}

// The leader's node dies amid the load and its synchronous standby takes over; the dead one comes back as a standby and is
// made leader again, also amid the load.
func TestHAAFailoverAndASwitchoverLoseNothingAndRepeatNothing(t *testing.T) {
	s := openShop(t, newCluster(t, synchronous))
	var failovers, switchovers times
	s.busy(func() {
		for round := range haRounds(t) {
			leader, _ := s.cluster.pair()
			require.NotNil(t, leader)
			failovers.add(s.strikes(fmt.Sprintf("round %d, %s killed", round+1, leader.name), func() { s.cluster.kill(leader) }))
			s.successes(t, 30, time.Now())
			back := time.Now()
			s.cluster.start(leader)
			s.cluster.awaitStandby()
			t.Logf("%s is a standby again after %s", leader.name, time.Since(back).Round(time.Millisecond))
			switchovers.add(s.strikes(fmt.Sprintf("round %d, switched back to %s", round+1, leader.name), s.cluster.switchOver))
			s.cluster.awaitStandby()
		}
	})
	s.settled()
	t.Logf("without a success: failovers %s; switchovers %s", &failovers, &switchovers)
	t.Logf("pg_rewind ran %d times", s.cluster.rewinds())
}

// The leader's node sleeps amid the load until another one leads, and wakes up in the belief that it leads still: its
// connections, and new ones, may be written to until its Patroni has looked around. No standby confirms what is. What it
// is only asked it answers from the past: an order that was placed meanwhile is unknown to it.
func TestHAALeaderThatWakesUpBehindItsSuccessorAcknowledgesNothing(t *testing.T) {
	c := newCluster(t, synchronous)
	s := openShop(t, c)
	s.woken = true
	s.busy(func() {
		sleeper, other := c.pair()
		s.strikes(sleeper.name+" stopped", func() { c.signal(sleeper, syscall.SIGSTOP) })
		leader, _ := c.pair()
		require.Equal(t, other, leader)
		s.strikes(sleeper.name+" continued", func() {
			c.signal(sleeper, syscall.SIGCONT)
			c.awaitStandby()
		})
	})
	s.settled()
}

// A standby that receives nothing any more, be it stuck or cut off: a payment that the provider has taken meanwhile is not
// acknowledged, neither to the request nor to its repeats, until another server has it.
func TestHAWhatTheStandbyHasNotReceivedIsNotAcknowledged(t *testing.T) {
	c := newCluster(t, synchronous)
	s := openShop(t, c, "KAKUTEI_LEASE", "4s", "KAKUTEI_GATEWAY_TIMEOUT", "3s", "KAKUTEI_RECOVERY_INTERVAL", "0")
	payments := s.placed(6)
	for _, p := range payments {
		p.body = paidBy("pm_slow_1500")
	}
	noneIsAcknowledged := s.asks(payments)
	require.Eventually(t, func() bool { return s.charged() == len(payments) }, soon, 10*time.Millisecond)
	c.withhold()
	noneIsAcknowledged()
	s.asks(payments)()
	leader, _ := c.pair()
	c.kill(leader)
	s.end(payments)
	s.settled()
}

// Asynchronous replication acknowledges it, and a failover loses it. The provider's list shows what was lost, and the
// same request under the same key makes it whole, without a second charge.
func TestHAWithAsynchronousReplicationWhatTheStandbyHasNotReceivedIsLostAndFoundByTheComparison(t *testing.T) {
	c := newCluster(t, asynchronous)
	s := openShop(t, c)
	payments := s.placed(6)
	c.withhold()
	s.end(payments)
	leader, _ := c.pair()
	c.kill(leader)
	assert.Zero(t, s.found(s.acknowledged()), "and lost")
	assert.Equal(t, len(payments), s.number(`SELECT count(*) FROM orders WHERE status = 'PLACED' AND attempt = 0`))
	assert.Zero(t, s.number(`SELECT count(*) FROM idempotency_records WHERE operation LIKE 'Confirm%'`))
	got := alone(t, s.env, "reconcile")
	assert.Equal(t, 2, got.code, got.stderr)
	assert.Equal(t, len(payments), strings.Count(got.stdout, "charged_not_paid"), got.stdout)

	for _, p := range payments {
		p.final = nil // the old answer is no more
	}
	s.end(payments)
	s.settled()
}

// A strict cluster that is down to one node acknowledges nothing, until there are two again.
func TestHAAStrictClusterAcknowledgesNothingOnOneNode(t *testing.T) {
	c := newCluster(t, strict)
	s := openShop(t, c)
	payments := s.placed(6)
	killed, other := c.pair()
	c.kill(killed)
	require.Eventually(t, func() bool {
		leader, _ := c.pair()
		return leader == other
	}, patience, 50*time.Millisecond, "the standby takes over")
	for range 2 {
		s.asks(payments)()
	}
	c.start(killed)
	s.end(payments)
	s.settled()
}
