package httpapi_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

// histories is how many are recorded on each store: few unless HISTORIES says otherwise, as `make linear` does.
func histories(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("HISTORIES"), "10"), 10, 32)
	require.NoError(t, err, "HISTORIES")
	require.NotZero(t, n, "HISTORIES")
	return n
}

// hurried are times so short that a history sees leases run out.
var hurried = idempotent.Config{
	Lease: 200 * time.Millisecond, Retention: time.Hour,
	CallTimeout: 50 * time.Millisecond, LockTimeout: 500 * time.Millisecond, Now: time.Now,
}

// shaken is a service of two instances on one store and with one provider, and what shakes it.
type shaken struct {
	edges    []edge
	provider *storetest.Provider
	fragile  bool // the store's faults are on, too; else it may still lose a commit by itself
	unsaid   bool // they are on, and the check is not told
	works    []*dozing
	troubles []trouble
}

// trouble is something that an instance's store suffers while clients work.
type trouble interface {
	shake(chance *rand.Rand)
	calm()
}

func (s *shaken) shake(chance *rand.Rand) {
	for _, w := range s.works {
		w.nod(true)
	}
	if s.fragile || s.unsaid {
		for _, f := range s.troubles {
			f.shake(chance)
		}
	}
}

func (s *shaken) calm() {
	for _, w := range s.works {
		w.nod(false)
	}
	for _, f := range s.troubles {
		f.calm()
	}
}

// losesCommits tells whether an unknown outcome may still become known: because it is meant to, or because a commit gave no
// answer all the same. A server that is short of a processor keeps one for longer than anybody waits.
func (s *shaken) losesCommits() bool {
	return s.fragile || slices.ContainsFunc(s.works, (*dozing).hasLost)
}

// dozing is a store whose callers fall asleep before a transaction now and then, for longer than their lease: as a process
// does that is stopped, or short of a processor. It remembers whether a commit gave no answer.
type dozing struct {
	port.UnitOfWork
	lost atomic.Bool
	mu   sync.Mutex
	nods bool
}

func (d *dozing) hasLost() bool { return d.lost.Load() }

const dozeOneIn = 12

func (d *dozing) nod(nods bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nods = nods
}

func (d *dozing) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	d.mu.Lock()
	sleeps := d.nods && rand.IntN(dozeOneIn) == 0
	d.mu.Unlock()
	if sleeps {
		time.Sleep(hurried.Lease + rand.N(hurried.Lease))
	}
	err := d.UnitOfWork.Do(ctx, wait, fn)
	if errors.Is(err, port.ErrCommitUnknown) {
		d.lost.Store(true)
	}
	return err
}

// lossy is a store without a wire: what a wire could do to it is played.
type lossy struct{ *storetest.Unreliable }

func (l lossy) shake(chance *rand.Rand) {
	for range 4 {
		fate := storetest.Applied
		if chance.IntN(2) == 0 {
			fate = storetest.Undone
		}
		l.LoseCommit(1+chance.IntN(24), fate)
	}
	if chance.IntN(2) == 0 { // a last commit, and from then on this instance is as good as dead
		last := 1 + chance.IntN(24)
		l.LoseCommit(last, storetest.Applied)
		l.LeaveAfter(last)
	}
}

func (l lossy) calm() {
	l.Settle()
	l.Return()
}

// wired is a store behind a wire that breaks.
type wired struct{ *pgproxy.Proxy }

func (w wired) shake(chance *rand.Rand) {
	faults := []pgproxy.Fault{pgproxy.LoseAnswer, pgproxy.LoseAnswer, pgproxy.LoseCommit, pgproxy.LoseAnswerAndCut}
	w.Strike(1+chance.IntN(24), faults[chance.IntN(len(faults))])
	if chance.IntN(2) == 0 {
		time.AfterFunc(upTo(chance, 40*time.Millisecond), w.Reset)
	}
}

func (w wired) calm() {
	w.Strike(0, 0)
	w.Mend()
}

// making is what an instance is made of: its way to the store and to the provider.
type making func(port.UnitOfWork, payment.Gateway) (port.UnitOfWork, payment.Gateway)

// soundly takes them as they are.
func soundly(w port.UnitOfWork, g payment.Gateway) (port.UnitOfWork, payment.Gateway) { return w, g }

// instances opens one on each store.
func instances(t *testing.T, making making, stores ...port.UnitOfWork) *shaken {
	t.Helper()
	s := &shaken{provider: storetest.NewProvider()}
	for _, store := range stores {
		d := &dozing{UnitOfWork: store}
		s.works = append(s.works, d)
		work, provider := making(d, s.provider)
		// What they answer is judged by the model, and how long it takes must not depend on another judge.
		s.edges = append(s.edges, openAuditing(t, work, memory.New(time.Now), func(c *httpapi.Config) {
			c.Till.Executor = idempotent.New(work, httpapi.Documents{}, c.Till.Observer, hurried)
			c.Till.Gateway, c.Till.Lease = provider, hurried.Lease
			c.Deadline, c.Lease = hurried.Deadline(), hurried.Lease
		}).undescribed())
	}
	return s
}

// shakenOn opens two instances over an empty store, with the faults that it can have, by the store's name.
var shakenOn = map[string]func(t *testing.T) (troubles []trouble, stores []port.UnitOfWork){
	"memory": func(*testing.T) ([]trouble, []port.UnitOfWork) {
		store := memory.New(time.Now)
		return played(store, store)
	},
	"SQLite": func(t *testing.T) ([]trouble, []port.UnitOfWork) {
		d := gormtest.SQLite(t)
		return played(hastily(t, d.URL), hastily(t, d.URL))
	},
	"PostgreSQL": func(t *testing.T) (troubles []trouble, stores []port.UnitOfWork) {
		d := gormtest.PostgreSQL(t)
		for range 2 {
			proxy, url := pgproxy.Between(t, d.URL)
			troubles, stores = append(troubles, wired{proxy}), append(stores, hastily(t, url))
		}
		return troubles, stores
	},
}

func played(works ...port.UnitOfWork) (troubles []trouble, stores []port.UnitOfWork) {
	for _, w := range works {
		u := storetest.NewUnreliable(w)
		troubles, stores = append(troubles, lossy{u}), append(stores, u)
	}
	return troubles, stores
}

// hastily opens a store that waits no longer than a history can bear.
func hastily(t *testing.T, url string) port.UnitOfWork {
	t.Helper()
	c := gormstore.Config{URL: url, Pool: 8, LockTimeout: hurried.LockTimeout}
	s, err := gormstore.Open(context.WithoutCancel(t.Context()), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// What a store loses that was to lose nothing is as unknown to the clients as what it was to lose.
func TestACommitThatAStoreLosesByItselfIsNoFaultOfTheService(t *testing.T) {
	store := memory.New(time.Now)
	troubles, stores := played(store, store)
	lost := 0
	for seed := range uint64(10) {
		service := instances(t, soundly, stores...)
		service.unsaid, service.troubles = true, troubles
		h, err := service.record(t, seed)
		require.NoError(t, err)
		if service.losesCommits() {
			lost++
		}
		result := h.check()
		require.Equal(t, porcupine.Ok, result, "history %d", seed)
	}
	require.Positive(t, lost)
}

// Every other history is of a store that loses commits, too; the rest is held to more, since fewer answers are unknown.
func TestWhatConcurrentClientsSeeHasAnOrderThatExplainsIt(t *testing.T) {
	for name, open := range shakenOn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			troubles, stores := open(t)
			var slowest time.Duration
			said := map[string]int{}
			byItself := 0
			for seed := range histories(t) {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					service := instances(t, soundly, stores...)
					service.fragile, service.troubles = seed%2 == 1, troubles
					h, err := service.record(t, seed)
					require.NoError(t, err)
					if result := h.check(); result != porcupine.Ok {
						require.Fail(t, "no order explains it", "%s; drawn in %s", result, h.draw(t))
					}
					slowest = max(slowest, h.settled)
					if !service.fragile && service.losesCommits() {
						byItself++
					}
					for _, o := range h.orders {
						for _, x := range o.story.exchanges {
							said[x.code]++
						}
					}
				})
			}
			t.Logf("answers: %v; every key had its outcome %s after the faults at the latest; %d stores without faults lost a commit",
				said, slowest.Round(time.Millisecond), byItself)
		})
	}
}
