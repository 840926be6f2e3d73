package memory

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// Deferring is a store that sends its writes as late as port.Tx allows, with the next read or with the commit, as one
// does that saves round trips over a network, and counts what those would be. A use case that works on it relies on no
// write's error.
type Deferring struct {
	*Store
	trips atomic.Int64
}

// NewDeferring defers the writes to a store.
func NewDeferring(s *Store) *Deferring { return &Deferring{Store: s} }

// RoundTrips is how often a store over a network would have been waited for until now: once per read, and once per end
// of a writing transaction.
func (d *Deferring) RoundTrips() int { return int(d.trips.Load()) }

// Do implements port.UnitOfWork.
func (d *Deferring) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	return d.Store.Do(ctx, wait, func(tx port.Tx) error {
		defer d.trips.Add(1)
		return d.run(tx, fn)
	})
}

// Read implements port.UnitOfWork.
func (d *Deferring) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	return d.Store.Read(ctx, func(tx port.Tx) error { return d.run(tx, fn) })
}

func (d *Deferring) run(tx port.Tx, fn func(tx port.Tx) error) error {
	late := &deferringTx{sent: tx, trips: &d.trips}
	if err := fn(late); err != nil {
		return err
	}
	late.send()
	return late.failed
}

type deferringTx struct {
	sent    port.Tx
	trips   *atomic.Int64
	pending []func() error // the writes to send
	begun   bool           // a statement has brought the time along
	failed  error          // of the first write that failed: after it every statement fails, as in PostgreSQL
	ahead   announced
}

// announced is an order that comes along with the reservation.
type announced struct {
	id            order.ID
	customer, key string
	came          bool
}

func (t *deferringTx) Now() time.Time {
	if !t.begun {
		_ = t.roundTrip() // a failure is told by the next statement that can
	}
	return t.sent.Now()
}

func (t *deferringTx) Orders() order.Repository { return deferringOrders{t, t.sent.Orders()} }

func (t *deferringTx) Records() idempotency.Repository { return deferringRecords{t, t.sent.Records()} }

func (t *deferringTx) Journal() journal.Repository { return deferringEntries{t, t.sent.Journal()} }

func (t *deferringTx) Audit() port.AuditLog { return deferringAuditLog{t, t.sent.Audit()} }

func (t *deferringTx) later(write func() error) error {
	t.pending = append(t.pending, write)
	return nil
}

func (t *deferringTx) roundTrip() error {
	t.begun = true
	t.trips.Add(1)
	t.send()
	return t.failed
}

func (t *deferringTx) send() {
	for _, write := range t.pending {
		if t.failed == nil {
			t.failed = write()
		}
	}
	t.pending = nil
}

type deferringOrders struct {
	t    *deferringTx
	sent order.Repository
}

func (r deferringOrders) Find(ctx context.Context, id order.ID, customer string) (*order.Order, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.Find(ctx, id, customer)
}

func (r deferringOrders) Lock(ctx context.Context, id order.ID, customer string) (*order.Order, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.Lock(ctx, id, customer)
}

func (r deferringOrders) LockIfOpen(
	ctx context.Context, id order.ID, customer, key string,
) (*order.Order, error) {
	if r.t.ahead == (announced{id, customer, key, true}) && len(r.t.pending) == 0 {
		return r.sent.LockIfOpen(ctx, id, customer, key)
	}
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.LockIfOpen(ctx, id, customer, key)
}

func (r deferringOrders) Announce(id order.ID, customer, key string) {
	r.t.ahead = announced{id: id, customer: customer, key: key}
}

func (r deferringOrders) Add(ctx context.Context, o *order.Order) error {
	asOfNow := order.Rehydrate(o.State())
	return r.t.later(func() error { return r.sent.Add(ctx, asOfNow) })
}

func (r deferringOrders) Save(ctx context.Context, o *order.Order) error {
	asOfNow := order.Rehydrate(o.State())
	return r.t.later(func() error { return r.sent.Save(ctx, asOfNow) })
}

func (r deferringOrders) FindAll(ctx context.Context, ids []order.ID) ([]*order.Order, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.FindAll(ctx, ids)
}

func (r deferringOrders) PaidAfter(ctx context.Context, m order.Mark, limit int) ([]*order.Order, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.PaidAfter(ctx, m, limit)
}

type deferringRecords struct {
	t    *deferringTx
	sent idempotency.Repository
}

func (r deferringRecords) Reserve(
	ctx context.Context, n idempotency.Reservation, lease time.Duration,
) (idempotency.Record, error) {
	if err := r.t.roundTrip(); err != nil {
		return idempotency.Record{}, err
	}
	r.t.ahead.came = true
	return r.sent.Reserve(ctx, n, lease)
}

func (r deferringRecords) Replace(ctx context.Context, old, next idempotency.Record) error {
	asOfNow := cloned(next)
	return r.t.later(func() error { return r.sent.Replace(ctx, old, asOfNow) })
}

func (r deferringRecords) Find(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	if err := r.t.roundTrip(); err != nil {
		return idempotency.Record{}, err
	}
	return r.sent.Find(ctx, s)
}

func (r deferringRecords) Lock(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	if err := r.t.roundTrip(); err != nil {
		return idempotency.Record{}, err
	}
	return r.sent.Lock(ctx, s)
}

func (r deferringRecords) Unresolved(ctx context.Context, due bool, limit int) ([]idempotency.Record, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.Unresolved(ctx, due, limit)
}

func (r deferringRecords) Sweep(ctx context.Context, limit int) (int, error) {
	if err := r.t.roundTrip(); err != nil {
		return 0, err
	}
	return r.sent.Sweep(ctx, limit)
}

type deferringEntries struct {
	t    *deferringTx
	sent journal.Repository
}

func (r deferringEntries) Post(ctx context.Context, e journal.Entry, stands func(journal.Entry)) error {
	asOfNow := withOwnLines(e)
	return r.t.later(func() error { return r.sent.Post(ctx, asOfNow, stands) })
}

func (r deferringEntries) Find(ctx context.Context, id journal.ID) (journal.Entry, error) {
	if err := r.t.roundTrip(); err != nil {
		return journal.Entry{}, err
	}
	return r.sent.Find(ctx, id)
}

func (r deferringEntries) FindByKeys(ctx context.Context, keys []journal.PostingKey) ([]journal.Entry, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.FindByKeys(ctx, keys)
}

type deferringAuditLog struct {
	t    *deferringTx
	sent port.AuditLog
}

func (r deferringAuditLog) Append(ctx context.Context, entries []port.AuditEntry) error {
	asOfNow := slices.Clone(entries)
	return r.t.later(func() error { return r.sent.Append(ctx, asOfNow) })
}

func (r deferringAuditLog) After(
	ctx context.Context, number int64, kind port.AuditKind, limit int,
) ([]port.AuditEntry, error) {
	if err := r.t.roundTrip(); err != nil {
		return nil, err
	}
	return r.sent.After(ctx, number, kind, limit)
}

func (r deferringAuditLog) Last(ctx context.Context) (int64, error) {
	if err := r.t.roundTrip(); err != nil {
		return 0, err
	}
	return r.sent.Last(ctx)
}

func (r deferringAuditLog) Sweep(ctx context.Context, before time.Time, limit int) (int, error) {
	if err := r.t.roundTrip(); err != nil {
		return 0, err
	}
	return r.sent.Sweep(ctx, before, limit)
}
