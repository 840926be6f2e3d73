package httpapi_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/payment"
	"kakutei/infrastructure/memory"
)

// What a check is worth shows in what it catches. Each double below breaks one rule of the design at a port, below or
// beside the executor, which itself stays as it is; the same clients and the same model must find out.

// brokenWork is a unit of work whose records are not what they should be.
type brokenWork struct {
	port.UnitOfWork
	records func(port.Tx) idempotency.Repository
}

// brokenly makes an instance with such records.
func brokenly(records func(port.Tx) idempotency.Repository) making {
	return func(w port.UnitOfWork, g payment.Gateway) (port.UnitOfWork, payment.Gateway) {
		return brokenWork{w, records}, g
	}
}

func (b brokenWork) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	return b.UnitOfWork.Do(ctx, wait, func(tx port.Tx) error { return fn(brokenTx{tx, b.records(tx)}) })
}

type brokenTx struct {
	port.Tx
	records idempotency.Repository
}

func (t brokenTx) Records() idempotency.Repository { return t.records }

// unfenced has a late holder write what it likes, whoever has the record by now.
type unfenced struct{ idempotency.Repository }

func (r unfenced) Replace(ctx context.Context, old, next idempotency.Record) error {
	stands, err := r.Find(ctx, old.Scope)
	if err != nil {
		return err
	}
	return r.Repository.Replace(ctx, stands, next)
}

// late learns only when its lease is over that there is no answer: nothing is wrong with that, but it takes a fence.
type late struct{ payment.Gateway }

func (g late) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	answer, err := g.Gateway.Charge(ctx, a)
	if err != nil {
		time.Sleep(hurried.Lease * 2)
	}
	return answer, err
}

// unreserved looks first and acts then: nothing is stored before the outcome is.
type unreserved struct {
	idempotency.Repository
	tx port.Tx
}

func (r unreserved) Reserve(
	ctx context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	stands, err := r.Find(ctx, n.Scope)
	if errors.Is(err, idempotency.ErrNotFound) {
		return n.Opened(r.tx.Now(), lease), nil
	}
	return stands, err
}

func (r unreserved) Replace(ctx context.Context, old, next idempotency.Record) error {
	opened := idempotency.Reservation{Scope: old.Scope, Request: old.Request, Token: old.Token}
	stands, err := r.Repository.Reserve(ctx, opened, 0)
	if err != nil {
		return err
	}
	return r.Repository.Replace(ctx, stands, next)
}

// rereading has the stored record pass through see before it is judged.
type rereading struct {
	idempotency.Repository
	see func(stands idempotency.Record, n idempotency.Reservation) idempotency.Record
}

func (r rereading) Reserve(
	ctx context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	stands, err := r.Repository.Reserve(ctx, n, lease)
	return r.see(stands, n), err
}

// anew names each charge anew, as if the gateway key followed from the execution.
type anew struct {
	payment.Gateway
	executions *atomic.Int64
}

func (g anew) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	a.Number = int(1000 + g.executions.Add(1))
	return g.Gateway.Charge(ctx, a)
}

// hasty takes a provider's silence for a no.
type hasty struct{ payment.Gateway }

func (g hasty) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	answer, err := g.Gateway.Charge(ctx, a)
	if err != nil {
		return payment.Decline{Code: "no_answer"}, nil //nolint:nilerr // this is what is broken
	}
	return answer, nil
}

var breakages = map[string]making{
	"no fence": func(w port.UnitOfWork, g payment.Gateway) (port.UnitOfWork, payment.Gateway) {
		records := func(tx port.Tx) idempotency.Repository { return unfenced{tx.Records()} }
		return brokenWork{w, records}, late{g}
	},
	"a look instead of a reservation": brokenly(func(tx port.Tx) idempotency.Repository {
		return unreserved{tx.Records(), tx}
	}),
	"no fingerprint check": brokenly(func(tx port.Tx) idempotency.Repository {
		return rereading{tx.Records(), func(stands idempotency.Record, n idempotency.Reservation) idempotency.Record {
			stands.Fingerprint = idempotency.FingerprintOf(n.Scope, n.Request)
			return stands
		}}
	}),
	"a replay that executes again": brokenly(func(tx port.Tx) idempotency.Repository {
		return rereading{tx.Records(), func(stands idempotency.Record, _ idempotency.Reservation) idempotency.Record {
			stands.ExpiresAt = time.Time{}
			return stands
		}}
	}),
	"a new gateway key for each execution": func(w port.UnitOfWork, g payment.Gateway) (port.UnitOfWork, payment.Gateway) {
		return w, anew{g, new(atomic.Int64)}
	},
	"an unknown outcome taken for a decline": func(w port.UnitOfWork, g payment.Gateway) (port.UnitOfWork, payment.Gateway) {
		return w, hasty{g}
	},
}

// enough histories to catch whatever is broken; most are caught by the first.
const enough = 40

// What a double needs besides being broken breaks nothing.
func TestALateProviderAloneBreaksNothing(t *testing.T) {
	t.Parallel()
	lately := func(w port.UnitOfWork, g payment.Gateway) (port.UnitOfWork, payment.Gateway) {
		return w, late{g}
	}
	for seed := range uint64(2) {
		store := memory.New(time.Now)
		h, err := instances(t, lately, store, store).record(t, seed)
		require.NoError(t, err)
		require.Equal(t, porcupine.Ok, h.check())
	}
}

func TestABrokenServiceHasHistoriesThatNoOrderExplains(t *testing.T) {
	for name, making := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(enough) {
				store := memory.New(time.Now)
				h, _ := instances(t, making, store, store).record(t, seed) // how it fails otherwise is not asked here
				if h.check() == porcupine.Illegal {
					t.Logf("caught by history %d", seed)
					return
				}
			}
			assert.Fail(t, "it was never caught")
		})
	}
}
