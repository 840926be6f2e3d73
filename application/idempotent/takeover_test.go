package idempotent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

// meanwhile has another run take the record over while the first one's call runs, and says what the first one answers.
func (d desk) meanwhile(t *testing.T, late *operation, another func(there desk)) (idempotent.Answer, error) {
	t.Helper()
	late.call = func(context.Context) error {
		late.call = nil
		d.clock.Pass(storetest.Times.Lease)
		another(d.beside())
		return nil
	}
	return d.Execute(t.Context(), intent, late.steps)
}

// Whoever comes when the outside may have been told already is prepared for that; nobody else is.
func TestWhoComesAfterARunThatMayHaveCalledPreparesForThat(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var began, again int
		in := intent
		in.Again = func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
			again++
			return knowing("again")(ctx, tx)
		}
		begin := func(o operation) idempotent.Prepare {
			return func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
				began++
				return o.steps(ctx, tx)
			}
		}
		silent := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), in, begin(silent))
		assertUnknown(t, err)
		assert.Equal(t, []int{1, 0}, []int{began, again})
		answer, err := d.Execute(t.Context(), in, begin(silent))
		require.NoError(t, err)
		assert.Equal(t, `"again"`, string(answer.Document))
		assert.Equal(t, []int{1, 1}, []int{began, again})

		d.clock.Pass(2 * storetest.Times.Retention) // the next record starts from scratch
		_, err = d.Execute(t.Context(), in, begin(operation{}))
		require.NoError(t, err)
		assert.Equal(t, []int{2, 1}, []int{began, again})
	})
}

// C03: takeover is harmless because the first holder can commit nothing any more.
func TestAHolderThatWasTakenOverAnswersFromTheWinnersRecord(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		lost := anOrder(t)
		late := operation{finish: func(ctx context.Context, tx port.Tx) (any, error) {
			return "the loser's", tx.Orders().Add(ctx, lost)
		}}
		answer, err := d.meanwhile(t, &late, func(there desk) {
			winner, err := there.Execute(t.Context(), intent, knowing("the winner's"))
			require.NoError(t, err)
			assert.False(t, winner.Replayed)
		})
		require.NoError(t, err)
		assert.True(t, answer.Replayed)
		assert.Equal(t, `"the winner's"`, string(answer.Document))
		assert.False(t, d.has(t, lost), "what the loser wrote is undone")
		assert.Equal(t, 2, d.record(t).Executions)
	})
}

func TestALateHolderThatFailsAtTheChangedAggregateHasLostItsLease(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		late := operation{finish: func(context.Context, port.Tx) (any, error) { return nil, errRefused }}
		answer, err := d.meanwhile(t, &late, func(there desk) {
			_, err := there.Execute(t.Context(), intent, knowing("the winner's"))
			require.NoError(t, err)
		})
		require.NoError(t, err)
		assert.True(t, answer.Replayed)
		assert.Equal(t, `"the winner's"`, string(answer.Document))
	})
}

func TestALateHolderWhoseWinnerIsStillAtWorkSaysSo(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var late operation
		there := make(chan error, 1)
		goOn := make(chan struct{})
		_, err := d.meanwhile(t, &late, func(other desk) {
			reached := make(chan struct{})
			winner := operation{call: func(context.Context) error { close(reached); <-goOn; return nil }}
			go func() {
				_, err := other.Execute(t.Context(), intent, winner.steps)
				there <- err
			}()
			<-reached
		})
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		close(goOn)
		require.NoError(t, <-there)
	})
}

// C04: the table decides, and a token that was lost is never used again.
func TestALateHolderWhoseWinnerGaveUpTakesOverUnderANewToken(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		late := operation{}
		var first idempotency.Token
		answer, err := d.meanwhile(t, &late, func(there desk) {
			first = d.record(t).Token
			winner := operation{call: func(context.Context) error { return errOutside }}
			_, err := there.Execute(t.Context(), intent, winner.steps)
			assertUnknown(t, err)
		})
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, 2, late.calls)
		r := d.record(t)
		assert.Equal(t, 3, r.Executions)
		assert.NotEqual(t, first, r.Token)
	})
}

func TestALateHolderThatRefusesAfterItsWinnerGaveUpDoesNotBringItsLostTokenBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		late := operation{}
		var first idempotency.Token
		_, err := d.meanwhile(t, &late, func(there desk) {
			first = d.record(t).Token
			winner := operation{call: func(context.Context) error { return errOutside }}
			_, err := there.Execute(t.Context(), intent, winner.steps)
			assertUnknown(t, err)
			late.prepare = func(context.Context, port.Tx) error { return errRefused }
		})
		assertUnknown(t, err)
		r := d.record(t)
		assert.Equal(t, 3, r.Executions)
		assert.NotEqual(t, first, r.Token)
	})
}

// C18: an outside hand deletes the record under its holder.
func TestAHolderWhoseRecordIsGoneStartsOver(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var late operation
		answer, err := d.meanwhile(t, &late, func(desk) {
			require.NoError(t, storetest.Vanish(t.Context(), d.work, intent.Scope))
		})
		require.NoError(t, err)
		assert.False(t, answer.Replayed)
		assert.Equal(t, 2, late.calls)
		assert.Equal(t, d.record(t).Outcome, answer.Outcome)
	})
}

func TestAHolderThatFailsAtAnAggregateWhoseRecordIsGoneStartsOverToo(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		late := operation{finish: func(context.Context, port.Tx) (any, error) { return nil, errForNow }}
		answer, err := d.meanwhile(t, &late, func(desk) {
			require.NoError(t, storetest.Vanish(t.Context(), d.work, intent.Scope))
			late.prepare = func(context.Context, port.Tx) error { late.finish = nil; return nil }
		})
		require.NoError(t, err)
		assert.Equal(t, d.record(t).Outcome, answer.Outcome)
	})
}

func TestAHolderWhoseRecordIsGoneCannotRefuseAfterItsCall(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var late operation
		_, err := d.meanwhile(t, &late, func(desk) {
			require.NoError(t, storetest.Vanish(t.Context(), d.work, intent.Scope))
			late.prepare = func(context.Context, port.Tx) error { return errRefused }
		})
		assertUnknown(t, err)
		d.assertNoRecord(t)
	})
}

func TestOfEightTakersOneExecutesAndTheOthersWaitOrReplay(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		gaveUp := operation{call: func(context.Context) error { return errOutside }}
		_, err := d.Execute(t.Context(), intent, gaveUp.steps)
		assertUnknown(t, err)

		const takers = 8
		type end struct {
			answer idempotent.Answer
			err    error
		}
		ends, start := make(chan end, takers), make(chan struct{})
		for range takers {
			taker := d.beside()
			go func() {
				<-start
				answer, err := taker.Execute(t.Context(), intent, (&operation{}).steps)
				ends <- end{answer, err}
			}()
		}
		close(start)
		executed := 0
		for range takers {
			e := <-ends
			switch {
			case e.err != nil:
				require.ErrorIs(t, e.err, idempotency.ErrInProgress)
			case !e.answer.Replayed:
				executed++
			}
		}
		assert.Equal(t, 1, executed)
		assert.Equal(t, 2, d.record(t).Executions)
	})
}

// outrun is a store in which somebody else is always faster to the record.
type outrun struct{ port.UnitOfWork }

func (o outrun) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	return o.UnitOfWork.Do(ctx, wait, func(tx port.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return idempotency.ErrLost
	})
}

// C18: who has called nobody has nothing to be in doubt of, however often others were faster to the vacant record.
func TestWhoIsOutrunEachTimeIsToldThatOthersAreAtWork(t *testing.T) {
	onBothStores(t, func(t *testing.T, d desk) {
		var o operation
		outrun := deskOver(outrun{d.work}, d.clock, storetest.Times)
		_, err := outrun.Execute(t.Context(), intent, o.steps)
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		assert.Zero(t, o.calls)
		assert.Equal(t, 1, outrun.seen.Count(port.InProgress), "an observer hears it as well")
		d.assertNoRecord(t)
	})
}
