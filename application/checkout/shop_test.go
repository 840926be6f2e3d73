package checkout_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// shop is the use cases over a store in memory whose clock stands still.
type shop struct {
	storetest.Shop
	work  port.UnitOfWork // as anyone else has the store
	clock *storetest.Clock
}

// inBothShops runs a test on the store that writes at once and on the one that defers what it can.
func inBothShops(t *testing.T, test func(t *testing.T, s shop)) {
	t.Helper()
	t.Run("writes sent at once", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, shopOver(memory.New(clock.Now), clock))
	})
	t.Run("writes deferred", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, shopOver(memory.NewDeferring(memory.New(clock.Now)), clock))
	})
}

func shopOver(w port.UnitOfWork, clock *storetest.Clock) shop {
	return shop{Shop: storetest.OpenShop(w, storetest.NewProvider()), work: w, clock: clock}
}

// placed is an order of alice's over 1000 yen.
func (s shop) placed(t *testing.T) order.ID {
	t.Helper()
	id, err := s.Place(t.Context())
	require.NoError(t, err)
	return id
}

// paid is a placed order that was paid under the key.
func (s shop) paid(t *testing.T, key string) (order.ID, checkout.Receipt) {
	t.Helper()
	id := s.placed(t)
	answer, err := s.ConfirmPayment(t.Context(), storetest.Payment(id, key))
	require.NoError(t, err)
	return id, receipt(t, answer)
}

// state is the stored order.
func (s shop) state(t *testing.T, id order.ID) (found order.State) {
	t.Helper()
	require.NoError(t, s.work.Read(t.Context(), func(tx port.Tx) error {
		o, err := tx.Orders().Find(t.Context(), id, "alice")
		if err == nil {
			found = o.State()
		}
		return err
	}))
	return found
}

// record is what stands under a payment's key.
func (s shop) record(t *testing.T, c checkout.ConfirmPayment) idempotency.Record {
	t.Helper()
	r, err := storetest.RecordIn(t.Context(), s.work, storetest.ScopeOf(c))
	require.NoError(t, err)
	return r
}

func receipt(t *testing.T, a idempotent.Answer) (r checkout.Receipt) {
	t.Helper()
	require.Empty(t, a.Refusal, "%s", a.Document)
	require.NoError(t, json.Unmarshal(a.Document, &r))
	return r
}

func orderView(t *testing.T, a idempotent.Answer) (v checkout.OrderView) {
	t.Helper()
	require.Empty(t, a.Refusal, "%s", a.Document)
	require.NoError(t, json.Unmarshal(a.Document, &v))
	return v
}

// assertUnknown shows the one fault that neither promises nor denies a payment.
func assertUnknown(t *testing.T, err error) {
	t.Helper()
	f, ok := fault.From(err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, idempotency.ErrOutcomeUnknown.Code(), f.Code())
}
