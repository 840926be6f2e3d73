package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kakutei/domain/order"
)

// orders implements order.Repository. Whoever writes holds all rows: locking is reading.
type orders struct{ t *tx }

func (r orders) Find(_ context.Context, id order.ID, customer string) (*order.Order, error) {
	s, ok := r.t.orderOf(id)
	if !ok || s.Customer != customer {
		return nil, order.ErrNotFound
	}
	return order.Rehydrate(s), nil
}

func (r orders) Lock(ctx context.Context, id order.ID, customer string) (*order.Order, error) {
	if r.t.readOnly {
		return nil, errReadOnly
	}
	return r.Find(ctx, id, customer)
}

func (r orders) LockIfOpen(ctx context.Context, id order.ID, customer, _ string) (*order.Order, error) {
	return r.Lock(ctx, id, customer)
}

func (orders) Announce(order.ID, string, string) {}

func (r orders) Add(_ context.Context, o *order.Order) error {
	s := o.State()
	if _, taken := r.t.orderOf(s.ID); taken {
		return r.t.fail(fmt.Errorf("memory: order %s exists already", s.ID))
	}
	return r.write(s)
}

func (r orders) Save(_ context.Context, o *order.Order) error {
	s := o.State()
	if stored, ok := r.t.orderOf(s.ID); !ok || stored.Version != s.Version {
		return r.t.fail(errConflict)
	}
	return r.write(s)
}

func (r orders) FindAll(_ context.Context, ids []order.ID) ([]*order.Order, error) {
	var found []*order.Order
	for _, id := range ids {
		if s, ok := r.t.orderOf(id); ok {
			found = append(found, order.Rehydrate(s))
		}
	}
	return found, nil
}

func (r orders) PaidAfter(_ context.Context, m order.Mark, limit int) ([]*order.Order, error) {
	var behind []order.State
	for _, s := range r.t.allOrders() {
		if s.Status == order.Paid && m.Before(s.Mark()) {
			behind = append(behind, s)
		}
	}
	slices.SortFunc(behind, func(a, b order.State) int {
		return cmp.Or(a.PaidAt.Compare(b.PaidAt), cmp.Compare(a.ID, b.ID))
	})
	var page []*order.Order
	for _, s := range behind[:min(limit, len(behind))] {
		page = append(page, order.Rehydrate(s))
	}
	return page, nil
}

func (r orders) write(s order.State) error {
	if r.t.readOnly {
		return errReadOnly
	}
	if err := checkPaid(s); err != nil {
		return r.t.fail(err)
	}
	if s.PaymentID != "" {
		if other, taken := r.paidBy(s); taken {
			return r.t.fail(fmt.Errorf("%w: memory: order %s has payment %s or charge %s already",
				order.ErrChargeTaken, other, s.PaymentID, s.ChargeID))
		}
	}
	s.Version++
	r.t.writeOrder(s)
	return nil
}

// paidBy finds another order that has the payment or the charge.
func (r orders) paidBy(s order.State) (other order.ID, taken bool) {
	for id, written := range r.t.orders {
		if id != s.ID && (written.PaymentID == s.PaymentID || written.ChargeID == s.ChargeID) {
			return id, true
		}
	}
	r.t.store.mu.RLock()
	defer r.t.store.mu.RUnlock()
	if id, ok := r.t.store.committed.payments[s.PaymentID]; ok && id != s.ID {
		return id, true
	}
	id, ok := r.t.store.committed.charges[s.ChargeID]
	return id, ok && id != s.ID
}
