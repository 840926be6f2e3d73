package idempotent_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// slow is a store that counts what it is asked, and whose commits can be slow to answer: what they have written stands
// before it is known.
type slow struct {
	port.UnitOfWork
	mu    sync.Mutex
	asked int
	read  int
	late  map[int]chan struct{} // by the number of the transaction
}

func (s *slow) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	s.mu.Lock()
	s.asked++
	late := s.late[s.asked]
	s.mu.Unlock()
	err := s.UnitOfWork.Do(ctx, wait, fn)
	if late != nil {
		<-late
	}
	return err
}

func (s *slow) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	s.mu.Lock()
	s.asked++
	s.read++
	s.mu.Unlock()
	return s.UnitOfWork.Read(ctx, fn)
}

// times is how often it has been asked.
func (s *slow) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// delay has the nth transaction from now answer when it is told to.
func (s *slow) delay(n int) (answer func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := make(chan struct{})
	s.late = map[int]chan struct{}{s.asked + n: late}
	return func() { close(late) }
}

// unhurried are times in which a run may last longer than its lease.
var unhurried = idempotent.Config{
	Lease: storetest.Times.Lease, Retention: storetest.Times.Retention,
	CallTimeout: storetest.Times.CallTimeout, LockTimeout: time.Minute, Now: time.Now,
}

// inABubble runs a test whose store has the time that processes have, and both pass only while everybody waits.
func inABubble(t *testing.T, test func(t *testing.T, d desk, s *slow)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{UnitOfWork: memory.New(time.Now)}
		d := deskOver(s, nil, unhurried)
		test(t, d, s)
		synctest.Wait()
		assert.Zero(t, d.Running(), "the gate forgets who has left")
	})
}

// end is how an execution ended.
type end struct {
	answer idempotent.Answer
	err    error
}

// sending executes an intent beside the test.
func (d desk) sending(t *testing.T, in idempotent.Intent, prepare idempotent.Prepare) <-chan end {
	t.Helper()
	ended := make(chan end, 1)
	go func() {
		answer, err := d.Execute(t.Context(), in, prepare)
		ended <- end{answer, err}
	}()
	synctest.Wait()
	return ended
}

// calling is an operation whose call lasts until it is told to end.
func calling() (o *operation, hangUp func()) {
	over := make(chan struct{})
	return &operation{call: func(context.Context) error { <-over; return nil }}, func() { close(over) }
}

func assertToldToWait(t *testing.T, ends ...<-chan end) {
	t.Helper()
	for _, e := range ends {
		require.ErrorIs(t, (<-e).err, idempotency.ErrInProgress)
	}
}

// What the gate says of a run is what the store says of its record, to the client and to the observer.
func TestADuplicateOfARunningCallIsAnsweredAsByTheRecordAndTheStoreIsNotAsked(t *testing.T) {
	for _, after := range []time.Duration{
		0, 3 * time.Second, 10 * time.Second, 25 * time.Second, 29*time.Second + 999*time.Millisecond,
	} {
		inABubble(t, func(t *testing.T, d desk, s *slow) {
			o, hangUp := calling()
			first := d.sending(t, intent, o.steps)
			time.Sleep(after)

			there, before := d.beside(), s.times()
			_, byRecord := there.Execute(t.Context(), intent, never(t))
			require.ErrorIs(t, byRecord, idempotency.ErrInProgress)
			require.Equal(t, before+1, s.times())
			_, err := d.Execute(t.Context(), intent, never(t))
			require.Equal(t, before+1, s.times())

			assert.Equal(t, byRecord, err, "after %s", after)
			require.Len(t, d.seen.Of(port.InProgress), 1)
			assert.Equal(t, there.seen.Of(port.InProgress), d.seen.Of(port.InProgress))
			hangUp()
			require.NoError(t, (<-first).err)
		})
	}
}

// The store alone knows whether the record will be the run's. Its duplicates wait for that, without the store.
func TestDuplicatesThatComeBeforeTheReservationIsKnownAreToldWhenItIs(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		o, hangUp := calling()
		answer := s.delay(1)
		first := d.sending(t, intent, o.steps)
		var storm []<-chan end
		for range 32 {
			storm = append(storm, d.sending(t, intent, never(t)))
		}
		for _, e := range storm {
			assert.Empty(t, e, "nobody knows yet")
		}
		answer()
		synctest.Wait()
		for _, e := range storm {
			assert.Empty(t, e, "the call may be quick")
		}
		assertToldToWait(t, storm...)
		hangUp()
		require.NoError(t, (<-first).err)
		assert.Equal(t, 2, s.times(), "the first one's commits, and nothing else")
	})
}

// Who would be told to wait has the outcome a moment later: so they let the run go first, and are answered from its record.
func TestDuplicatesOfAQuickCallHaveItsOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		lasts  time.Duration
		waited time.Duration
	}{
		"that takes no time":          {0, 0},
		"that takes a few ms":         {9 * time.Millisecond, 9 * time.Millisecond},
		"that is not so quick at all": {time.Second, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inABubble(t, func(t *testing.T, d desk, s *slow) {
				answer := s.delay(1)
				o := &operation{call: func(context.Context) error { time.Sleep(c.lasts); return nil }}
				first := d.sending(t, intent, o.steps)
				storm := []<-chan end{d.sending(t, intent, never(t)), d.sending(t, intent, never(t))}
				answer()
				began := time.Now()
				if c.lasts > c.waited {
					assertToldToWait(t, storm...)
					assert.Equal(t, c.waited, time.Since(began))
					require.NoError(t, (<-first).err)
					assert.Equal(t, 2, s.times())
					return
				}
				done := <-first
				require.NoError(t, done.err)
				for _, e := range storm {
					replayed := <-e
					require.NoError(t, replayed.err)
					assert.True(t, replayed.answer.Replayed)
					assert.Equal(t, done.answer.Outcome, replayed.answer.Outcome)
				}
				assert.Equal(t, c.waited, time.Since(began))
				assert.Equal(t, 4, s.times(), "two commits, and a read of the record for each")
				assert.Equal(t, 2, s.read)
			})
		})
	}
}

// A completion that was not applied is found out, and all of it is done again. Who has waited since the first call still has
// the outcome as soon as there is one.
func TestDuplicatesOfAQuickCallThatIsRepeatedHaveTheOutcome(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		d.store.LoseCommit(2, storetest.Undone)
		answer := s.delay(1)
		o := &operation{}
		first := d.sending(t, intent, o.steps)
		again := d.sending(t, intent, never(t))
		began := time.Now()
		answer()
		done, replayed := <-first, <-again
		require.NoError(t, done.err)
		require.NoError(t, replayed.err)
		assert.Equal(t, 2, o.calls)
		assert.True(t, replayed.answer.Replayed)
		assert.Equal(t, done.answer.Outcome, replayed.answer.Outcome)
		assert.Zero(t, time.Since(began))
	})
}

// Whatever becomes of the quick call's outcome: they are told what was so while they waited, and the store is not asked.
func TestDuplicatesOfAQuickCallThatHaveNoOutcomeAreToldToWait(t *testing.T) {
	silent := func(context.Context) error { return errOutside }
	for name, c := range map[string]struct {
		call   func(context.Context) error
		slow   bool // to say that the outcome is on record
		waited time.Duration
	}{
		"the call fails":         {silent, false, 0},
		"it is slow to be kept":  {nil, true, 100 * time.Millisecond},
		"it ends its lease late": {silent, true, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inABubble(t, func(t *testing.T, d desk, s *slow) {
				answer := s.delay(1)
				first := d.sending(t, intent, (&operation{call: c.call}).steps)
				storm := []<-chan end{d.sending(t, intent, never(t)), d.sending(t, intent, never(t))}
				kept := func() {}
				if c.slow {
					s.mu.Lock()
					late := make(chan struct{})
					s.late[2] = late
					s.mu.Unlock()
					kept = func() { close(late) }
				}
				began := time.Now()
				answer()
				synctest.Wait()
				var after <-chan end
				if c.slow {
					time.Sleep(time.Millisecond)
					after = d.sending(t, intent, (&operation{}).steps)
				}
				assertToldToWait(t, storm...)
				assert.Equal(t, c.waited, time.Since(began))
				assert.Equal(t, 2, s.times(), "the run's own")
				kept()
				<-first
				if c.slow {
					require.NoError(t, (<-after).err, "who comes when the call is over may find an outcome, and is told of none other")
				}
			})
		})
	}
}

// "In progress" would be wrong of an outcome that others may have read already.
func TestADuplicateThatComesWhileTheOutcomeIsCommittedIsAnsweredFromIt(t *testing.T) {
	for name, c := range map[string]struct {
		commit  int
		prepare func() idempotent.Prepare
	}{
		"with a call": {2, func() idempotent.Prepare { return (&operation{}).steps }},
		"without":     {1, func() idempotent.Prepare { return knowing("done") }},
	} {
		t.Run(name, func(t *testing.T) {
			inABubble(t, func(t *testing.T, d desk, s *slow) {
				answer := s.delay(c.commit)
				first := d.sending(t, intent, c.prepare())
				again := d.sending(t, intent, never(t))
				answer()
				done, replayed := <-first, <-again
				require.NoError(t, done.err)
				require.NoError(t, replayed.err)
				assert.True(t, replayed.answer.Replayed)
				assert.Equal(t, done.answer.Outcome, replayed.answer.Outcome)
				assert.Equal(t, c.commit+1, s.times())
				assert.Equal(t, 1, s.read, "the record; nothing was reserved again")
			})
		})
	}
}

// Whoever is told what stands on record may tell others, and they come at once.
func TestWhoIsToldOfTheEndFindsNobodyAtTheGate(t *testing.T) {
	silent := operation{call: func(context.Context) error { return errOutside }}
	for name, c := range map[string]struct {
		prepare idempotent.Prepare
		end     port.Happening
	}{
		"an outcome after a call":   {(&operation{}).steps, port.Completed},
		"an outcome without a call": {knowing("done"), port.Completed},
		"no outcome":                {silent.steps, port.Abandoned},
	} {
		t.Run(name, func(t *testing.T) {
			inABubble(t, func(t *testing.T, d desk, _ *slow) {
				told := 0
				d.seen.When(c.end, func() {
					told++
					assert.Zero(t, d.Running())
				})
				_, _ = d.Execute(t.Context(), intent, c.prepare)
				assert.Equal(t, 1, told)
			})
		})
	}
}

func TestADuplicateThatComesWhileTheHolderGivesUpExecutes(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		answer := s.delay(2)
		silent := operation{call: func(context.Context) error { return errOutside }}
		first := d.sending(t, intent, silent.steps)
		again := d.sending(t, intent, (&operation{}).steps)
		assert.Empty(t, again)
		answer()
		assertUnknown(t, (<-first).err)
		require.NoError(t, (<-again).err)
		assert.Equal(t, 2, d.record(t).Executions)
	})
}

// The gate knows nothing of other requests: their fingerprint is compared in the store, whatever the run is at.
func TestAnotherRequestUnderTheKeyAsksTheStore(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		refused := func() {
			began, before := time.Now(), s.times()
			_, err := d.Execute(t.Context(), otherIntent, never(t))
			require.ErrorIs(t, err, idempotency.ErrKeyReused)
			assert.Equal(t, before+1, s.times())
			assert.Zero(t, time.Since(began), "it has not waited")
		}
		o, hangUp := calling()
		reserved := s.delay(1)
		first := d.sending(t, intent, o.steps)
		refused()
		reserved()
		synctest.Wait()
		refused()
		completed := s.delay(1)
		hangUp()
		synctest.Wait()
		refused2 := d.sending(t, otherIntent, never(t))
		require.ErrorIs(t, (<-refused2).err, idempotency.ErrKeyReused)
		completed()
		require.NoError(t, (<-first).err)
	})
}

// The record may be another request's: then nobody holds it here, and each is told so by the store.
func TestDuplicatesOfAReusedKeyAreAllToldSo(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		_, err := d.beside().Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		answer := s.delay(1)
		all := []<-chan end{d.sending(t, otherIntent, never(t)), d.sending(t, otherIntent, never(t))}
		answer()
		for _, e := range all {
			require.ErrorIs(t, (<-e).err, idempotency.ErrKeyReused)
		}
	})
}

// The record may be finished, by another instance or before a restart: then each is answered from it.
func TestRepeatsOfWhatAnotherInstanceHasFinishedAreAllReplayed(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		_, err := d.beside().Execute(t.Context(), intent, knowing("done"))
		require.NoError(t, err)
		answer := s.delay(1)
		all := []<-chan end{d.sending(t, intent, never(t)), d.sending(t, intent, never(t)), d.sending(t, intent, never(t))}
		answer()
		for _, e := range all {
			replayed := <-e
			require.NoError(t, replayed.err)
			assert.True(t, replayed.answer.Replayed)
		}
	})
}

func TestDuplicatesOfARunThatFailsAskTheStore(t *testing.T) {
	for name, fails := range map[string]func(context.Context, port.Tx) error{
		"by an error": func(context.Context, port.Tx) error { return errAccident },
		"by a panic":  func(context.Context, port.Tx) error { panic("bug") },
	} {
		t.Run(name, func(t *testing.T) {
			inABubble(t, func(t *testing.T, d desk, _ *slow) {
				reached, goOn := make(chan struct{}), make(chan struct{})
				broken := func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
					return idempotent.Next{}, fails(ctx, tx)
				}
				held := &holding{UnitOfWork: d.work, reached: reached, goOn: goOn}
				d.Executor = idempotent.New(held, d.documents, d.seen, storetest.Times)
				failed := make(chan struct{})
				go func() {
					defer close(failed)
					defer func() { _ = recover() }()
					_, err := d.Execute(t.Context(), intent, broken)
					assert.ErrorIs(t, err, errAccident)
				}()
				<-reached
				again := d.sending(t, intent, knowing("done"))
				assert.Empty(t, again)
				close(goOn)
				<-failed
				require.NoError(t, (<-again).err)
			})
		})
	}
}

// holding is a store whose first transaction begins when it is told to.
type holding struct {
	port.UnitOfWork
	once          sync.Once
	reached, goOn chan struct{}
}

func (h *holding) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	h.once.Do(func() {
		close(h.reached)
		<-h.goOn
	})
	return h.UnitOfWork.Do(ctx, wait, fn)
}

// C03: a panic in the call leaves nobody at the gate.
func TestAPanicLeavesTheGate(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, _ *slow) {
		broken := operation{call: func(context.Context) error { panic("bug") }}
		require.Panics(t, func() { _, _ = d.Execute(t.Context(), intent, broken.steps) })
		_, err := d.Execute(t.Context(), intent, (&operation{}).steps)
		require.NoError(t, err)
	})
}

// A transaction that takes long is waited for as long as a reservation waits in the store, and no longer.
func TestADuplicateDoesNotWaitLongAtTheGate(t *testing.T) {
	for lockTimeout, patience := range map[time.Duration]time.Duration{
		time.Second: 100 * time.Millisecond, 10 * time.Millisecond: 10 * time.Millisecond,
	} {
		inABubble(t, func(t *testing.T, _ desk, s *slow) {
			times := unhurried
			times.LockTimeout = lockTimeout
			here := deskOver(s, nil, times)
			o, hangUp := calling()
			answer := s.delay(1)
			first := here.sending(t, intent, o.steps)
			began := time.Now()
			again := here.sending(t, intent, never(t))
			assert.Equal(t, 1, s.times())
			assertToldToWait(t, again)
			assert.Equal(t, patience, time.Since(began))
			assert.Equal(t, 2, s.times(), "it has asked the store then")
			answer()
			hangUp()
			require.NoError(t, (<-first).err)
		})
	}
}

// A holder that is stuck in its call for longer than its lease stands in nobody's way.
func TestAStuckHolderIsTakenOverByADuplicateInTheSameProcess(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		stuck, letGo := calling()
		late := d.sending(t, intent, stuck.steps)
		time.Sleep(storetest.Times.Lease - time.Microsecond)
		_, err := d.Execute(t.Context(), intent, never(t))
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		time.Sleep(time.Microsecond)

		o, hangUp := calling()
		winner := d.sending(t, intent, o.steps)
		require.Equal(t, 2, d.record(t).Executions, "it has taken over")
		before := s.times()
		_, err = d.Execute(t.Context(), intent, never(t))
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		require.Equal(t, before, s.times(), "the gate knows the winner")

		letGo()
		fenced := <-late
		require.ErrorIs(t, fenced.err, idempotency.ErrInProgress)
		before = s.times()
		_, err = d.Execute(t.Context(), intent, never(t))
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		require.Equal(t, before, s.times(), "nor does it forget the winner when the loser leaves")

		hangUp()
		won := <-winner
		require.NoError(t, won.err)
		assert.False(t, won.answer.Replayed)
		assert.Equal(t, d.record(t).Outcome, won.answer.Outcome)
	})
}

// The lease counts from each reservation: one in doubt that reserves again holds a lease that has begun then.
func TestAHolderInDoubtIsAtTheGateForItsNewLease(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		d.store.LoseCommit(2, storetest.Undone)
		over := make(chan struct{})
		var o operation
		o.call = func(context.Context) error {
			if o.calls == 1 {
				time.Sleep(20 * time.Second)
				return nil
			}
			<-over
			return nil
		}
		first := d.sending(t, intent, o.steps)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, o.calls)
		before := s.times()
		for _, advised := range []time.Duration{15 * time.Second, 5 * time.Second} { // of 30, after 15 and 25
			_, err := d.Execute(t.Context(), intent, never(t))
			require.ErrorIs(t, err, idempotency.ErrInProgress)
			f, _ := fault.From(err)
			assert.Equal(t, advised, f.Wait())
			time.Sleep(10 * time.Second)
		}
		assert.Equal(t, before, s.times())
		close(over)
		<-first
	})
}

// Who executes without a client has read in the store that the lease is over. By this process's clock it need not be: a
// hand has ended it, or the store's clock was set. The store's word counts.
func TestWhoComesWithoutAClientPassesTheGate(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, _ *slow) {
		stuck, letGo := calling()
		late := d.sending(t, intent, stuck.steps)
		require.NoError(t, storetest.Age(t.Context(), d.work, intent.Scope, storetest.Times.Lease))
		word := intent
		word.Unattended = true
		answer, err := d.Execute(t.Context(), word, knowing("as a person says"))
		require.NoError(t, err)
		assert.False(t, answer.Replayed)

		client, err := d.Execute(t.Context(), intent, never(t))
		require.NoError(t, err)
		assert.Equal(t, answer.Outcome, client.Outcome)
		letGo()
		fenced := <-late
		require.NoError(t, fenced.err)
		assert.Equal(t, answer.Outcome, fenced.answer.Outcome)
	})
}

// While the recovery has a request executed, a client's retry is answered at the gate like any other duplicate.
func TestADuplicateOfARecoveryIsToldToWait(t *testing.T) {
	inABubble(t, func(t *testing.T, d desk, s *slow) {
		silent := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, silent.steps)
		assertUnknown(t, err)
		o, hangUp := calling()
		recovered := make(chan error, 1)
		go func() {
			_, err := d.recoveryOf(o).Round(t.Context(), 10)
			recovered <- err
		}()
		synctest.Wait()
		before := s.times()
		_, err = d.Execute(t.Context(), intent, never(t))
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		assert.Equal(t, before, s.times())
		hangUp()
		require.NoError(t, <-recovered)
	})
}
