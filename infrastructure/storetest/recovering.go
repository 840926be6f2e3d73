package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
)

// recovering is how payments that were left in progress come to their end, by the recovery and by operators.
var recovering = []check{
	{"two recoveries at once share fifty records and try none twice", func(t *testing.T, s Opened) {
		const records = 50
		for i := range records {
			left(t, s, idempotency.Key(fmt.Sprint(i)), idempotency.Record.Abandoned)
		}
		var mu sync.Mutex
		tries := map[idempotency.Key]int{}
		resume := func(_ context.Context, r idempotency.Record) (idempotent.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			tries[r.Key]++
			return idempotent.Answer{}, nil
		}
		recoverAtOnce(t, s, time.Hour, resume, resume)
		assert.Len(t, tries, records)
		for key, n := range tries {
			assert.Equal(t, 1, n, key)
		}
	}},
	{"hundreds of payments that were left are paid without their clients, each with one charge", func(t *testing.T, s Opened) {
		const orders = 201
		here, there, provider := twoShops(s)
		ids := make([]order.ID, orders)
		for i := range ids {
			ids[i] = placed(t, here)
			provider.Next([]Call{Losing(Approving), Unreachable, Losing(Unreachable)}[i%3])
			_, err := here.ConfirmPayment(t.Context(), Payment(ids[i], string(ids[i])))
			require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
		}
		recoverAtOnce(t, s, time.Hour, here.Resume, there.Resume)

		assert.Equal(t, orders, provider.Charges())
		for _, id := range ids {
			assert.Equal(t, order.Paid, orderIn(t, s.Beside, id).Status)
			assert.Equal(t, 1, provider.ChargesUnder(string(id)+":1"))
			if !s.OneAtATime { // there a completion may have waited in vain, and then it is tried again
				assert.Equal(t, 2, provider.CallsUnder(string(id)+":1"), "the client's and one recovery's")
			}
			answer, err := there.ConfirmPayment(t.Context(), Payment(id, string(id)))
			require.NoError(t, err)
			assert.True(t, answer.Replayed)
		}
	}},
	{"a holder that comes back after the recovery answers what that recorded", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		held, late := confirmHeld(t, here, Payment(id, "k"), Approving)
		leaseEnds(t, s, Payment(id, "k"))
		recoverAtOnce(t, s, time.Hour, there.Resume, there.Resume)
		held.Release()
		answered := <-late
		require.NoError(t, answered.err)
		assert.True(t, answered.answer.Replayed)
		assert.Equal(t, 1, provider.Charges())
		assert.Equal(t, 1, here.Seen.Count(port.LeaseLost))
	}},
	{"a record that cannot be read stops no other, and an operator sees it", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		poisoned := left(t, s, "poisoned", func(r idempotency.Record, now time.Time) idempotency.Record {
			r.Request, r.CreatedAt = "no request", instant(-time.Hour)
			return r.Abandoned(now)
		})
		id := placed(t, here)
		provider.Next(Unreachable)
		_, err := here.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
		tried, err := recoveryOf(there.Store, time.Hour, there.Resume).Round(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, tried, 2)
		require.ErrorIs(t, tried[0].Err, idempotency.ErrUnreadableRequest)
		require.NoError(t, tried[1].Err)
		assert.Equal(t, order.Paid, orderIn(t, s.Work, id).Status)

		list, err := (&oversight.Desk{Work: s.Beside}).Unresolved(t.Context())
		require.NoError(t, err)
		require.Len(t, list.Records, 1)
		assert.Equal(t, poisoned.Key, list.Records[0].IdempotencyKey)
		assert.Empty(t, list.Records[0].OrderID)
	}},
	{"whoever held a record when it was released can complete nothing", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		held, late := confirmHeld(t, here, Payment(id, "k"), Approving)
		leaseEnds(t, s, Payment(id, "k"))
		_, err := (&oversight.Desk{Work: there.Store}).Release(t.Context(), ScopeOf(Payment(id, "k")), "olga")
		require.NoError(t, err)
		held.Release()
		answered := <-late
		require.NoError(t, answered.err, "it starts over from the reservation, as any retry does")
		assert.Equal(t, 1, here.Seen.Count(port.LeaseLost))
		assert.Equal(t, 1, here.Seen.Count(port.Takeover))
		assert.Equal(t, 1, provider.Charges())
		assert.Len(t, auditedIn(t, s, port.AuditReleased), 1)
	}},
	{"a record that somebody is about to take is left to him", func(t *testing.T, s Opened) {
		old := left(t, s, "k", idempotency.Record.Abandoned)
		taker := reservation("k")
		release := hold(t, s.Work, func(tx port.Tx) error {
			if err := tx.Records().Replace(t.Context(), old, old.TakenBy(taker, tx.Now(), time.Minute)); err != nil {
				return err
			}
			_, err := tx.Records().Find(t.Context(), old.Scope) // whatever was deferred is sent by now
			return err
		})
		_, err := (&oversight.Desk{Work: s.Beside}).Release(t.Context(), old.Scope, "olga")
		told(t, err, s.busy(idempotency.ErrLeaseAlive))
		tried, err := recoveryOf(s.Beside, time.Hour, func(context.Context, idempotency.Record) (idempotent.Answer, error) {
			return idempotent.Answer{}, nil
		}).Round(t.Context(), 10)
		require.NoError(t, err)
		if s.OneAtATime {
			require.Len(t, tried, 1)
			require.ErrorIs(t, tried[0].Err, port.ErrUnavailable)
		} else {
			assert.Empty(t, tried)
		}
		release()
		stands, err := RecordIn(t.Context(), s.Beside, old.Scope)
		require.NoError(t, err)
		assert.Equal(t, taker.Token, stands.Token)
		assert.Empty(t, auditedIn(t, s, port.AuditReleased))
	}},
	{"of operators who say the same at once one is believed", func(t *testing.T, s Opened) {
		here, there, provider := twoShops(s)
		id := placed(t, here)
		provider.Next(Unreachable)
		_, err := here.ConfirmPayment(t.Context(), Payment(id, "k"))
		require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
		says := func(till *checkout.Till) error {
			_, err := till.Resolve(t.Context(), checkout.Resolution{
				Scope: ScopeOf(Payment(id, "k")), Charged: true, ChargeID: "ch_seen", Note: "rang them up", By: "olga",
			})
			return err
		}
		var ended [8]error
		atOnce(len(ended), func(i int) { ended[i] = says([]*checkout.Till{here.Till, there.Till}[i%2]) })
		believed := 0
		for _, err := range ended {
			if err == nil {
				believed++
			}
		}
		if believed == 0 { // a store that is busy lets nobody in
			require.True(t, s.OneAtATime)
			require.NoError(t, says(here.Till))
			believed++
		}
		assert.Equal(t, 1, believed)
		assert.Len(t, auditedIn(t, s, port.AuditResolved), 1)
		stands := orderIn(t, s.Beside, id)
		assert.Equal(t, order.Paid, stands.Status)
		assert.Equal(t, "ch_seen", stands.ChargeID)
		assert.Zero(t, provider.Charges())
	}},
	{"an operator and the client's retry at once come to one outcome", func(t *testing.T, s Opened) {
		for _, charged := range []bool{true, false} {
			here, there, provider := twoShops(s)
			id := placed(t, here)
			request := Payment(id, fmt.Sprint(charged))
			provider.Next(Unreachable)
			_, err := here.ConfirmPayment(t.Context(), request)
			require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
			word := checkout.Resolution{Scope: ScopeOf(request), Charged: charged, Note: "rang them up", By: "olga"}
			if charged {
				word.ChargeID = "ch_" + string(id)
			}
			atOnce(2, func(i int) {
				if i == 0 {
					_, _ = there.Resolve(t.Context(), word)
				} else {
					_, _ = here.ConfirmPayment(t.Context(), request)
				}
			})
			answer, err := there.ConfirmPayment(t.Context(), request)
			require.NoError(t, err)
			stands := orderIn(t, s.Beside, id)
			switch {
			case answer.Refusal != "":
				assert.Equal(t, order.Placed, stands.Status)
				assert.Zero(t, provider.Charges(), "nothing was charged, and nobody was told otherwise")
			case stands.ChargeID == word.ChargeID:
				assert.Zero(t, provider.Charges(), "the operator was first")
			default:
				assert.Equal(t, 1, provider.Charges(), "the client was first")
			}
		}
	}},
}

// recoveryOf tries this operation's records.
func recoveryOf(w port.UnitOfWork, interval time.Duration, resume idempotent.Resume) *idempotent.Recovery {
	return idempotent.NewRecovery(w, interval, map[idempotency.Operation]idempotent.Resume{operation: resume})
}

// recoverAtOnce has two recoveries work at the same time until nothing is due. Where writers wait for the whole store,
// such a wait can run out: then an operator releases the record.
func recoverAtOnce(t *testing.T, s Opened, interval time.Duration, here, there idempotent.Resume) {
	t.Helper()
	for range 20 {
		var tried [2][]idempotent.Tried
		var failed [2]error
		atOnce(2, func(i int) {
			recovery := recoveryOf(s.either(i), interval, []idempotent.Resume{here, there}[i])
			tried[i], failed[i] = recovery.Round(t.Context(), 1000)
		})
		again := false
		for i := range tried {
			require.NoError(t, failed[i])
			for _, one := range tried[i] {
				if one.Err == nil {
					continue
				}
				require.True(t, s.OneAtATime, "%v", one.Err)
				require.ErrorIs(t, one.Err, port.ErrUnavailable)
				again = true
				_, err := (&oversight.Desk{Work: s.Work}).Release(t.Context(), one.Record.Scope, "olga")
				if !errors.Is(err, idempotency.ErrNotFound) { // the other one has settled it meanwhile
					require.NoError(t, err)
				}
			}
		}
		if !again {
			return
		}
	}
	require.Fail(t, "the recoveries do not come to an end")
}

func auditedIn(t *testing.T, s Opened, kind port.AuditKind) (entries []port.AuditEntry) {
	t.Helper()
	require.NoError(t, s.Beside.Read(t.Context(), func(tx port.Tx) (err error) {
		entries, err = tx.Audit().After(t.Context(), 0, kind, 100)
		return err
	}))
	return entries
}
