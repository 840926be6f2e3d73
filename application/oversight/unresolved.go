package oversight

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"kakutei/application/checkout"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// MaxUnresolved is how many unresolved records are listed at most.
const MaxUnresolved = 500

// UnresolvedList is what nobody works on and whose outcome nobody knows, oldest first, as published.
type UnresolvedList struct {
	Records []UnresolvedView `json:"records"`
}

// UnresolvedView is an unresolved record as published.
type UnresolvedView struct {
	Operation      idempotency.Operation `json:"operation"`
	Actor          string                `json:"actor"`
	IdempotencyKey idempotency.Key       `json:"idempotencyKey"`
	Executions     int                   `json:"executions"`
	CreatedAt      time.Time             `json:"createdAt"`
	LeaseExpiredAt time.Time             `json:"leaseExpiredAt"`
	OrderID        string                `json:"orderId,omitempty"`
}

// Unresolved lists the unresolved records, MaxUnresolved at most.
func (d *Desk) Unresolved(ctx context.Context) (list UnresolvedList, err error) {
	err = d.Work.Read(ctx, func(tx port.Tx) error {
		found, err := tx.Records().Unresolved(ctx, false, MaxUnresolved)
		list = UnresolvedList{Records: make([]UnresolvedView, 0, len(found))}
		for _, r := range found {
			list.Records = append(list.Records, unresolvedView(r))
		}
		return err
	})
	return list, err
}

// Backlog is how many records are unresolved, MaxUnresolved at most, and how long ago the oldest of them was made, by the
// store's clock; zero if there is none.
func (d *Desk) Backlog(ctx context.Context) (records int, oldest time.Duration, err error) {
	err = d.Work.Read(ctx, func(tx port.Tx) error {
		found, err := tx.Records().Unresolved(ctx, false, MaxUnresolved)
		records, oldest = len(found), 0
		if len(found) > 0 {
			oldest = tx.Now().Sub(found[0].CreatedAt)
		}
		return err
	})
	return records, oldest, err
}

func unresolvedView(r idempotency.Record) UnresolvedView {
	return UnresolvedView{
		Operation: r.Operation, Actor: r.Actor, IdempotencyKey: r.Key, Executions: r.Executions,
		CreatedAt: r.CreatedAt, LeaseExpiredAt: r.LeaseEnds, OrderID: checkout.OrderOf(r),
	}
}

// Release lets an operator fence off whoever may still hold an unresolved record; the recovery tries it at its next
// round. Money is not decided here. It is audited in its commit.
//
// Errors: idempotency.ErrNotFound when no such record is unresolved; idempotency.ErrLeaseAlive.
func (d *Desk) Release(ctx context.Context, s idempotency.Scope, by string) (view UnresolvedView, err error) {
	err = d.Work.Do(ctx, port.Fully, func(tx port.Tx) error {
		stored, err := tx.Records().Lock(ctx, s) // a holder in doubt may be about to renew his lease
		switch {
		case err != nil:
			return err
		case stored.Status != idempotency.InProgress:
			return idempotency.ErrNotFound
		case !stored.Unresolved(tx.Now()):
			return idempotency.ErrLeaseAlive.After(stored.LeaseEnds.Sub(tx.Now()))
		}
		released := stored.Released(idempotency.NewToken(), tx.Now())
		view = unresolvedView(released)
		entry := port.AuditEntry{
			EventID: uuid.NewString(), At: tx.Now(), Scope: s, Kind: port.AuditReleased, Detail: "released by " + by,
		}
		if err := tx.Audit().Append(ctx, []port.AuditEntry{entry}); err != nil {
			return err
		}
		return tx.Records().Replace(ctx, stored, released)
	})
	if errors.Is(err, idempotency.ErrLost) || errors.Is(err, idempotency.ErrInProgress) { // somebody else was faster
		err = idempotency.ErrLeaseAlive.Because(err)
	}
	return view, err
}
