package checkout

import (
	"context"
	"encoding/json"
	"time"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// Order is one of the customer's orders. Error: order.ErrNotFound, for another customer's too.
func (t *Till) Order(ctx context.Context, id, customer string) (view OrderView, err error) {
	orderID, err := order.ParseID(id)
	if err != nil {
		return OrderView{}, err
	}
	err = t.Work.Read(ctx, func(tx port.Tx) error {
		o, err := tx.Orders().Find(ctx, orderID, customer)
		if err != nil {
			return err
		}
		view = viewOf(o)
		return nil
	})
	return view, err
}

// OutcomeView is what is known of a request, as published (docs/contract.md, Outcome look-up).
type OutcomeView struct {
	Operation      idempotency.Operation `json:"operation"`
	IdempotencyKey idempotency.Key       `json:"idempotencyKey"`
	Status         idempotency.Status    `json:"status"`
	Executions     int                   `json:"executions"`
	CreatedAt      time.Time             `json:"createdAt"`
	CompletedAt    *time.Time            `json:"completedAt,omitempty"`
	ExpiresAt      *time.Time            `json:"expiresAt,omitempty"`
	Response       json.RawMessage       `json:"response,omitempty"` // of a success, as it was sent
	Problem        json.RawMessage       `json:"problem,omitempty"`  // of a refusal, as it was sent

	// RetryIn is how long to wait before asking again, while the request is in progress.
	RetryIn time.Duration `json:"-"`
}

// Outcome answers "did my request go through?". Error: idempotency.ErrNotFound, also once the record has expired.
func (t *Till) Outcome(ctx context.Context, scope idempotency.Scope) (view OutcomeView, err error) {
	err = t.Work.Read(ctx, func(tx port.Tx) error {
		r, err := tx.Records().Find(ctx, scope)
		if err != nil {
			return err
		}
		if r.ExpiredAt(tx.Now()) {
			return idempotency.ErrNotFound
		}
		view = outcomeOf(r)
		if r.Status == idempotency.InProgress {
			view.RetryIn = r.RetryIn(tx.Now(), t.Lease)
		}
		return nil
	})
	return view, err
}

func outcomeOf(r idempotency.Record) OutcomeView {
	v := OutcomeView{
		Operation: r.Operation, IdempotencyKey: r.Key, Status: r.Status, Executions: r.Executions,
		CreatedAt: r.CreatedAt, CompletedAt: happened(r.CompletedAt), ExpiresAt: happened(r.ExpiresAt),
	}
	switch r.Status {
	case idempotency.Succeeded:
		v.Response = r.Outcome.Document
	case idempotency.Failed:
		v.Problem = r.Outcome.Document
	case idempotency.InProgress:
	}
	return v
}
