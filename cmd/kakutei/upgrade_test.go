//go:build upgrade

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// startOld starts an instance of the version before, which .ci/upgrade has built.
func (g ground) startOld() *instance {
	g.t.Helper()
	c, r := another(g.t, os.Getenv("KAKUTEI_TEST_OLD"), g.env)
	i := &instance{running: r, process: c, end: sync.OnceFunc(func() { _ = c.Wait() })}
	g.t.Cleanup(i.kill)
	return i
}

// shoppers place and pay orders one after the other, each request at either instance in turn, until they are told to go.
type shoppers struct {
	at       pair
	placed   atomic.Int64
	mu       sync.Mutex
	payments []*insistence
	all      sync.WaitGroup
}

func (s *shoppers) shop(ctx context.Context, t *testing.T, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		whole := context.WithoutCancel(ctx)
		place := placing(fmt.Sprint("place-", name, "-", n))
		if err := s.at.insist(whole, place, n); err != nil {
			t.Error(err)
			return
		}
		p := paymentOf(orderIn(place.final[0]), fmt.Sprint("pay-", name, "-", n))
		if n%3 == 0 {
			p.body = paidBy("pm_lost_answer") // finished by a retry at the other one, or by either's recovery
		}
		if err := s.at.insist(whole, p, n+1); err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		s.payments = append(s.payments, p)
		s.mu.Unlock()
		s.placed.Add(1)
	}
}

// come lets some payments go by.
func (s *shoppers) come(t *testing.T) {
	t.Helper()
	until := s.placed.Load() + 30
	reached := func() bool { return s.placed.Load() >= until }
	if assert.Eventually(t, reached, patience, 10*time.Millisecond) {
		return
	}
	for _, i := range s.at.both {
		text := i.stderr.String()
		t.Logf("%s ended with: %s", i.base, text[max(0, len(text)-3000):])
	}
	t.FailNow()
}

// A rolling upgrade, its being taken back, and its second try, amid payments. Instances of either version are killed with
// payments under way, which those of the other version finish.
func TestTheVersionBeforeRunsBesideThisOneWhilePaymentsGoOn(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	s := &shoppers{at: pair{both: [2]*instance{g.startOld(), g.startOld()}}}
	old := g.number(`SELECT max(version_id) FROM goose_db_version`)
	ctx, goHome := context.WithCancel(t.Context())
	defer goHome()
	for i := range 4 {
		s.all.Go(func() { s.shop(ctx, t, fmt.Sprint(i)) })
	}
	s.come(t)

	step := func(what string, turn int, start func() *instance, end func(*instance)) {
		leaving := s.at.at(turn)
		s.at.replace(turn, start()) // beside both
		end(leaving)
		s.come(t)
		t.Logf("%s: %d payments so far, schema %d", what, s.placed.Load(), g.number(`SELECT max(version_id) FROM goose_db_version`))
	}
	orderly := func(i *instance) {
		i.signal(syscall.SIGTERM)
		i.end()
	}
	killed := func(i *instance) { i.kill() }
	step("one of two is new", 0, func() *instance { return g.start() }, orderly)
	step("the new one is killed, an old one comes back", 0, g.startOld, killed)
	step("one of two is new again", 0, func() *instance { return g.start() }, killed)
	step("both are new", 1, func() *instance { return g.start() }, killed)
	step("one is taken back", 0, g.startOld, orderly)
	step("both are new at last", 0, func() *instance { return g.start() }, killed)

	goHome()
	s.all.Wait()
	g.whole(s.at.at(0).running, s.payments...)
	t.Logf("schema %d became %d amid %d payments", old, g.number(`SELECT max(version_id) FROM goose_db_version`), len(s.payments))
	assert.NotContains(t, s.at.at(0).stderr.String(), `"level":"ERROR"`)
	said, err := exec.CommandContext(t.Context(), os.Getenv("KAKUTEI_TEST_OLD"), "version").Output()
	require.NoError(t, err)
	t.Logf("%s", said)
}
