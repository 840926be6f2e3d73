package idempotent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/storetest"
)

// early is a store to somebody who has read a record before its holder renewed the lease: same token, lease over.
type early struct {
	port.UnitOfWork
	ended func(idempotency.Record) idempotency.Record
}

func (e early) Do(ctx context.Context, wait port.Wait, fn func(port.Tx) error) error {
	return e.UnitOfWork.Do(ctx, wait, func(tx port.Tx) error { return fn(earlyTx{tx, e.ended}) })
}

func (e early) Read(ctx context.Context, fn func(port.Tx) error) error {
	return e.UnitOfWork.Read(ctx, func(tx port.Tx) error { return fn(earlyTx{tx, e.ended}) })
}

type earlyTx struct {
	port.Tx
	ended func(idempotency.Record) idempotency.Record
}

func (t earlyTx) Records() idempotency.Repository { return earlyRecords{t.Tx.Records(), t.ended} }

// earlyRecords is late only where nothing is locked.
type earlyRecords struct {
	idempotency.Repository
	ended func(idempotency.Record) idempotency.Record
}

func (r earlyRecords) Reserve(
	ctx context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	stands, err := r.Repository.Reserve(ctx, n, lease)
	return r.ended(stands), err
}

func (r earlyRecords) Find(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	stands, err := r.Repository.Find(ctx, s)
	return r.ended(stands), err
}

func (r earlyRecords) Unresolved(ctx context.Context, _ bool, _ int) ([]idempotency.Record, error) {
	stands, err := r.Repository.Find(ctx, intent.Scope)
	return []idempotency.Record{r.ended(stands)}, err
}

// What prepare finds may be what another one has left who was faster: his outcome is the answer then, and it is no
// news of an order that nobody can explain.
func TestWhatWasFinishedMeanwhileIsAnsweredFromTheRecordWhateverIsFoundBehindIt(t *testing.T) {
	for name, found := range map[string]error{"a refusal": errRefused, "an accident": errAccident} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, d desk) {
				silent := operation{call: func(context.Context) error { return errOutside }}
				_, err := d.Execute(t.Context(), intent, silent.steps)
				assertUnknown(t, err)
				left := d.record(t)
				finished, err := d.Execute(t.Context(), intent, (&operation{}).steps)
				require.NoError(t, err)

				reads := 0
				late := early{d.work, func(r idempotency.Record) idempotency.Record {
					if reads++; reads == 1 {
						return left
					}
					return r
				}}
				there := idempotent.New(late, d.documents, d.seen, storetest.Times)
				answer, err := there.Execute(t.Context(), intent, func(context.Context, port.Tx) (idempotent.Next, error) {
					return idempotent.Next{}, found
				})
				require.NoError(t, err)
				assert.True(t, answer.Replayed)
				assert.Equal(t, finished.Outcome, answer.Outcome)
			})
		})
	}
}

// A holder in doubt keeps his token when he renews his lease. Nobody who has seen it over before that takes the record
// from him: neither a client's retry or an operator's word, nor the recovery, nor a release.
func TestAHolderWhoHasRenewedHisLeaseIsNotTakenForDeadByWhoHasReadTheRecordBefore(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, d desk, late port.UnitOfWork) error{
		"a retry": func(t *testing.T, d desk, late port.UnitOfWork) error {
			there := idempotent.New(late, d.documents, d.seen, storetest.Times)
			_, err := there.Execute(t.Context(), intent, (&operation{call: func(context.Context) error {
				assert.Fail(t, "it was executed")
				return nil
			}}).steps)
			return err
		},
		"the recovery": func(t *testing.T, _ desk, late port.UnitOfWork) error {
			recovery := idempotent.NewRecovery(late, time.Second, map[idempotency.Operation]idempotent.Resume{
				intent.Scope.Operation: func(context.Context, idempotency.Record) (idempotent.Answer, error) {
					assert.Fail(t, "it was tried")
					return idempotent.Answer{}, nil
				},
			})
			tried, err := recovery.Round(t.Context(), 10)
			assert.Empty(t, tried)
			return err
		},
		"a release": func(t *testing.T, _ desk, late port.UnitOfWork) error {
			_, err := (&oversight.Desk{Work: late}).Release(t.Context(), intent.Scope, "olga")
			require.ErrorIs(t, err, idempotency.ErrLeaseAlive)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, d desk) {
				var held idempotency.Record
				o := operation{call: func(ctx context.Context) error {
					var err error
					held, err = storetest.RecordIn(ctx, d.work, intent.Scope)
					require.NoError(t, err)
					reads := 0
					late := early{d.work, func(r idempotency.Record) idempotency.Record {
						if reads++; reads == 1 && r.Status == idempotency.InProgress { // later it reads what stands
							r.LeaseEnds = d.clock.Now()
						}
						return r
					}}
					if err := take(t, d, late); err != nil {
						require.ErrorIs(t, err, idempotency.ErrInProgress)
					}
					return nil
				}}
				_, err := d.Execute(t.Context(), intent, o.steps)
				require.NoError(t, err)
				assert.Equal(t, 1, o.calls, "he was never fenced off")
				assert.Equal(t, held.Token, d.record(t).Token)
			})
		})
	}
}
