package idempotent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

func TestAnUnknownOutcomeEndsTheLeaseAtOnceAndTheRetryExecutes(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		assert.Equal(t, d.clock.Now(), d.record(t).LeaseEnds)

		o.call = nil
		answer, err := d.beside().Execute(t.Context(), intent, o.steps)
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, 2, o.calls)
		assert.Equal(t, 2, d.record(t).Executions)
	})
}

func TestTheAdvisedWaitDoublesUpToTheLease(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			_, err := d.Execute(t.Context(), intent, o.steps)
			f, _ := fault.From(err)
			require.NotNil(t, f)
			assert.Equal(t, want*time.Second, f.Wait())
		}
	})
}

func TestAPanicInAnyStepGoesOnItsWayAndTheNextRetryExecutes(t *testing.T) {
	bug := func() { panic("bug") }
	for step, o := range map[string]*operation{
		"prepare": {prepare: func(context.Context, port.Tx) error { bug(); return nil }},
		"call":    {call: func(context.Context) error { bug(); return nil }},
		"finish":  {finish: func(context.Context, port.Tx) (any, error) { bug(); return "done", nil }},
	} {
		t.Run(step, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, d desk) {
				require.PanicsWithValue(t, "bug", func() { _, _ = d.Execute(t.Context(), intent, o.steps) })
				answer, err := d.Execute(t.Context(), intent, (&operation{}).steps)
				require.NoError(t, err)
				assert.False(t, answer.Replayed)
			})
		})
	}
}

func TestAPanicInALaterExecutionsPrepareLeavesTheLeaseOver(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		o := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, o.steps)
		assertUnknown(t, err)
		o.prepare = func(context.Context, port.Tx) error { panic("bug") }
		require.Panics(t, func() { _, _ = d.Execute(t.Context(), intent, o.steps) })
		_, err = d.Execute(t.Context(), intent, (&operation{}).steps)
		require.NoError(t, err)
	})
}

// C53: the client's connection is not the work's life.
func TestAClientThatHangsUpStopsNoStep(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		client, hangUp := context.WithCancel(t.Context())
		hangUp()
		o := operation{
			prepare: func(ctx context.Context, _ port.Tx) error { return ctx.Err() },
			call:    func(ctx context.Context) error { return ctx.Err() },
			finish:  func(ctx context.Context, _ port.Tx) (any, error) { return "done", ctx.Err() },
		}
		answer, err := d.Execute(client, intent, o.steps)
		require.NoError(t, err)
		assert.Equal(t, `"done"`, string(answer.Document))
	})
}

func TestTheWorkHasADeadlineOfItsOwnAndTheCallAShorterOne(t *testing.T) {
	clock := storetest.NewClock()
	times := idempotent.Config{
		Lease: time.Minute, Retention: time.Hour, CallTimeout: 10 * time.Second, LockTimeout: 2 * time.Second,
		Now: time.Now,
	}
	d := deskOver(memory.New(clock.Now), clock, times)
	started := time.Now()
	endsIn := func(ctx context.Context, want time.Duration) {
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		assert.WithinDuration(t, started.Add(want), deadline, time.Second)
	}
	o := operation{
		prepare: func(ctx context.Context, _ port.Tx) error { endsIn(ctx, 18*time.Second); return nil },
		call:    func(ctx context.Context) error { endsIn(ctx, 10*time.Second); return nil },
		finish: func(ctx context.Context, _ port.Tx) (any, error) {
			endsIn(ctx, 18*time.Second)
			return "done", nil
		},
	}
	_, err := d.Execute(t.Context(), intent, o.steps)
	require.NoError(t, err)
	assert.Equal(t, 18*time.Second, times.Deadline())
}

// What runs before the call uses up the lease, too: the call has what is left of it, however long its own timeout is.
func TestACallEndsBeforeItsLease(t *testing.T) {
	clock := storetest.NewClock()
	times := storetest.Times
	times.Lease = times.CallTimeout / 2
	d := deskOver(memory.New(clock.Now), clock, times)
	latest := time.Now().Add(times.CallTimeout)
	o := operation{call: func(ctx context.Context) error {
		ends, bounded := ctx.Deadline()
		assert.True(t, bounded)
		assert.True(t, ends.Before(latest.Add(-times.Lease+time.Second)), "the call may run until %s", ends)
		return nil
	}}
	_, err := d.Execute(t.Context(), intent, o.steps)
	require.NoError(t, err)
	assert.Equal(t, 1, o.calls)
}

func TestACallIsCutOffAtItsTimeout(t *testing.T) {
	clock := storetest.NewClock()
	times := storetest.Times
	times.CallTimeout = 10 * time.Millisecond
	d := deskOver(memory.New(clock.Now), clock, times)
	o := operation{call: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	_, err := d.Execute(t.Context(), intent, o.steps)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assertUnknown(t, err)
	assert.Equal(t, clock.Now(), d.record(t).LeaseEnds)
}

func TestEndingTheLeaseHasTimeWhenTheWorkHasNoneLeft(t *testing.T) {
	clock := storetest.NewClock()
	times := storetest.Times
	times.CallTimeout, times.LockTimeout = 5*time.Millisecond, 5*time.Millisecond
	w := memory.New(clock.Now)
	d := deskOver(w, clock, times)
	var work context.Context
	o := operation{
		prepare: func(ctx context.Context, _ port.Tx) error { work = ctx; return nil },
		call:    func(context.Context) error { <-work.Done(); return nil }, // deaf to its own timeout
	}
	_, err := d.Execute(t.Context(), intent, o.steps)
	assertUnknown(t, err)
	_, err = d.beside().Execute(t.Context(), intent, (&operation{}).steps)
	require.NoError(t, err)
}
