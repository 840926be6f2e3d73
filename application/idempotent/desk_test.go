package idempotent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// desk is an executor over a store in memory whose clock stands still.
type desk struct {
	*idempotent.Executor
	store     *storetest.Unreliable // as the executor has it
	work      port.UnitOfWork       // behind it, as anyone else has it
	clock     *storetest.Clock
	seen      *storetest.Seen
	documents *documents
}

// onBothStores runs a test on the store that writes at once and on the one that defers what it can.
func onBothStores(t *testing.T, test func(t *testing.T, d desk)) {
	t.Helper()
	t.Run("writes sent at once", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, deskOver(memory.New(clock.Now), clock, storetest.Times))
	})
	t.Run("writes deferred", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, deskOver(memory.NewDeferring(memory.New(clock.Now)), clock, storetest.Times))
	})
}

func deskOver(w port.UnitOfWork, clock *storetest.Clock, times idempotent.Config) desk {
	d := desk{
		store: storetest.NewUnreliable(w), work: w, clock: clock, seen: &storetest.Seen{}, documents: &documents{},
	}
	d.Executor = idempotent.New(d.store, d.documents, d.seen, times)
	return d
}

// beside is another instance of the service on the same database.
func (d desk) beside() desk { return deskOver(d.work, d.clock, storetest.Times) }

// documents counts what it writes, and fails when it is told to.
type documents struct {
	storetest.Documents
	written int
	broken  error
}

func (d *documents) Result(view any) ([]byte, error) {
	d.written++
	if d.broken != nil {
		return nil, d.broken
	}
	return d.Documents.Result(view)
}

func (d *documents) Problem(refusal *fault.Fault) ([]byte, error) {
	d.written++
	if d.broken != nil {
		return nil, d.broken
	}
	return d.Documents.Problem(refusal)
}

// intent is the request of all tests that name no other.
var intent = idempotent.Intent{
	Scope:   idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "k"},
	Request: idempotency.Request("").With("amount", "1000"),
}

// otherIntent comes under the same key.
var otherIntent = idempotent.Intent{Scope: intent.Scope, Request: idempotency.Request("").With("amount", "2000")}

// operation is a use case with a call to the outside. A step that is nil succeeds.
type operation struct {
	prepare func(ctx context.Context, tx port.Tx) error
	call    func(ctx context.Context) error
	finish  func(ctx context.Context, tx port.Tx) (any, error)
	calls   int
}

// steps are the operation as the executor runs it. Its result is how often it has called.
func (o *operation) steps(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
	if o.prepare != nil {
		if err := o.prepare(ctx, tx); err != nil {
			return idempotent.Next{}, err
		}
	}
	return idempotent.Then(func(ctx context.Context) (idempotent.Finish, error) {
		o.calls++
		if o.call != nil {
			if err := o.call(ctx); err != nil {
				return nil, err
			}
		}
		return o.end, nil
	}), nil
}

func (o *operation) end(ctx context.Context, tx port.Tx) (any, error) {
	if o.finish != nil {
		return o.finish(ctx, tx)
	}
	return map[string]int{"calls": o.calls}, nil
}

// knowing is an operation that knows its result without a call.
func knowing(view any) idempotent.Prepare {
	return func(context.Context, port.Tx) (idempotent.Next, error) { return idempotent.Result(view), nil }
}

// failing is an operation whose first step fails after it has written.
func failing(o *order.Order, err error) idempotent.Prepare {
	return func(ctx context.Context, tx port.Tx) (idempotent.Next, error) {
		if err := tx.Orders().Add(ctx, o); err != nil {
			return idempotent.Next{}, err
		}
		return idempotent.Next{}, err
	}
}

// never is an operation that must not be executed.
func never(t *testing.T) idempotent.Prepare {
	return func(context.Context, port.Tx) (idempotent.Next, error) {
		assert.Fail(t, "the operation was executed")
		return idempotent.Result(nil), nil
	}
}

// record is what stands under the intent's key.
func (d desk) record(t *testing.T) idempotency.Record {
	t.Helper()
	stands, err := storetest.RecordIn(t.Context(), d.work, intent.Scope)
	require.NoError(t, err)
	return stands
}

func (d desk) assertNoRecord(t *testing.T) {
	t.Helper()
	_, err := storetest.RecordIn(t.Context(), d.work, intent.Scope)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}

// has tells whether the order is stored.
func (d desk) has(t *testing.T, o *order.Order) bool {
	t.Helper()
	err := d.work.Read(t.Context(), func(tx port.Tx) error {
		_, err := tx.Orders().Find(t.Context(), o.State().ID, "alice")
		return err
	})
	if !errors.Is(err, order.ErrNotFound) {
		require.NoError(t, err)
	}
	return err == nil
}

// anOrder is not stored yet.
func anOrder(t *testing.T) *order.Order {
	t.Helper()
	cart, err := order.NewCart(money.JPY, []order.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}})
	require.NoError(t, err)
	return order.Place("alice", cart, time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC))
}
