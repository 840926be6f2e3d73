package client_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/client"
)

// These tests run against the real service, in a bubble's time.

// inBubble runs a test in a synctest bubble.
func inBubble(test func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func TestAnOrderFromItsPlacingToItsReceipt(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop())
		placed := place(t, c)
		assert.Equal(t, client.StatusPlaced, placed.Status)
		assert.Equal(t, int64(1000), placed.Amount)
		assert.Equal(t, "JPY", placed.Currency)
		assert.Equal(t, "alice", placed.CustomerID)
		assert.Equal(t, tea.Lines, placed.Lines)
		assert.False(t, placed.PlacedAt.IsZero())
		assert.True(t, placed.PaidAt.IsZero())
		assert.Equal(t, http.StatusCreated, placed.Answer.Status)
		assert.Equal(t, "/api/orders/"+placed.OrderID, placed.Answer.Header.Get("Location"))

		paid, err := c.ConfirmPayment(t.Context(), "pay-1", placed.OrderID, payment)
		require.NoError(t, err)
		assert.Equal(t, client.StatusPaid, paid.Status)
		assert.Equal(t, int64(1000), paid.Amount)
		assert.Equal(t, 1, paid.Answer.Tries)
		assert.False(t, paid.Answer.Replayed())
		assert.NotEmpty(t, paid.Answer.RequestID())

		again, err := c.ConfirmPayment(t.Context(), "pay-1", placed.OrderID, payment)
		require.NoError(t, err)
		assert.True(t, again.Answer.Replayed())
		assert.Equal(t, paid.Answer.Body, again.Answer.Body, "byte for byte")
		assert.NotEqual(t, paid.Answer.RequestID(), again.Answer.RequestID())

		read, err := c.Order(t.Context(), placed.OrderID)
		require.NoError(t, err)
		assert.Equal(t, client.StatusPaid, read.Status)
		assert.Equal(t, paid.PaidAt, read.PaidAt)
		assert.Equal(t, paid.PaymentID, read.PaymentID)
	})(t)
}

func TestAnOrderIsCancelled(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop())
		cancelled, err := c.CancelOrder(t.Context(), client.NewIntent(), place(t, c).OrderID, "気が変わった")
		require.NoError(t, err)
		assert.Equal(t, client.StatusCancelled, cancelled.Status)
		assert.Equal(t, "気が変わった", cancelled.CancelReason)
		assert.False(t, cancelled.CancelledAt.IsZero())

		plain, err := c.CancelOrder(t.Context(), client.NewIntent(), place(t, c).OrderID, "")
		require.NoError(t, err)
		assert.Empty(t, plain.CancelReason)

		_, err = c.ConfirmPayment(t.Context(), client.NewIntent(), cancelled.OrderID, payment)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, client.CodeInvalidState, refused.Code)
		assert.Equal(t, client.NewKey, refused.Retry)
		assert.Equal(t, client.StatusCancelled, refused.OrderStatus)
	})(t)
}

func TestWhatTheServiceRefusesIsToldWithItsMembers(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop())
		id := place(t, c).OrderID
		declined := payment
		declined.Method = storetest.DeclinedMethod
		_, err := c.ConfirmPayment(t.Context(), "declined", id, declined)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, client.CodePaymentDeclined, refused.Code)
		assert.Equal(t, "card_declined", refused.DeclineCode)
		assert.Equal(t, client.NewKey, refused.Retry)
		assert.Equal(t, http.StatusPaymentRequired, refused.Answer.Status)
		assert.Contains(t, err.Error(), "payment_declined")

		_, err = c.ConfirmPayment(t.Context(), "declined", id, payment)
		assert.Equal(t, client.CodeKeyReused, client.CodeOf(err), "the key belongs to the other method")
		_, err = c.ConfirmPayment(t.Context(), "more", id, client.Payment{Amount: 2000, Currency: "JPY"})
		assert.Equal(t, client.CodeAmountMismatch, client.CodeOf(err))

		_, err = c.PlaceOrder(t.Context(), "none", client.NewOrder{Currency: "JPY", Lines: []client.Line{{SKU: "a"}}})
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, client.CodeInvalidRequest, refused.Code)
		assert.Equal(t, client.AfterFix, refused.Retry)
		require.NotEmpty(t, refused.Parts)
		assert.Equal(t, "/lines/0/name", refused.Parts[0].Pointer)

		_, err = c.As("demo-bob").Order(t.Context(), id)
		assert.Equal(t, client.CodeOrderNotFound, client.CodeOf(err))
		_, err = c.As("").Order(t.Context(), id)
		assert.Equal(t, client.CodeUnauthenticated, client.CodeOf(err))
		_, err = c.Order(t.Context(), "../orders/x?y#z")
		assert.Equal(t, client.CodeOrderNotFound, client.CodeOf(err), "an id is one segment of the path")
	})(t)
}

func TestAnAnswerThatIsLostIsGotByTheSameKeyAndTheMoneyIsTakenOnce(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		var observed tries
		c, w := onWire(t, s, client.WithObserver(observed.observe))
		id := place(t, c).OrderID
		w.losing(3)
		paid, err := c.ConfirmPayment(t.Context(), client.NewIntent(), id, payment)
		require.NoError(t, err)
		assert.Equal(t, 4, paid.Answer.Tries)
		assert.True(t, paid.Answer.Replayed())
		assert.Equal(t, 1, s.provider.Charges())
		for _, try := range observed.told()[1:4] {
			require.ErrorIs(t, try.Err, errLost)
		}
	})(t)
}

func TestAProviderThatGivesNoAnswerIsAskedAgainAsOftenAsItTakes(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		c, _ := onWire(t, s)
		id := place(t, c).OrderID
		s.provider.Next(storetest.Losing(storetest.Approving), storetest.Unreachable, storetest.Unreachable)
		paid, err := c.ConfirmPayment(t.Context(), client.NewIntent(), id, payment)
		require.NoError(t, err)
		assert.Equal(t, 4, paid.Answer.Tries)
		assert.Equal(t, 1, s.provider.Charges())
	})(t)
}

// The waits that the service advises double, from one second: 1 + 2 + 4 with four tries.
func TestTheServicesWaitsAreWaited(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		c, _ := onWire(t, s)
		id := place(t, c).OrderID
		s.provider.Next(storetest.Unreachable, storetest.Unreachable, storetest.Unreachable)
		began := time.Now()
		_, err := c.ConfirmPayment(t.Context(), client.NewIntent(), id, payment)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(began), 7*time.Second)
		assert.LessOrEqual(t, time.Since(began), 9*time.Second, "the jitter of three waits: 250, 500 and 1000 ms at most")
	})(t)
}

// A holder that has died keeps its lease, and who asks meanwhile is told to wait as long as it has lasted so far (ADR
// 0013). Whoever follows the advice is there when it is over.
func TestTheDefaultBudgetOutlivesTheLeaseOfAHolderThatHasDied(t *testing.T) {
	inBubble(func(t *testing.T) {
		lease := storetest.Times.Lease
		for range 50 { // whatever the jitter
			began := time.Now()
			c := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				lasted := time.Since(began)
				if lasted >= lease {
					_, _ = w.Write([]byte(receipt))
					return
				}
				wait := max(min(lasted, lease-lasted), time.Second)
				w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(`{"code":"idempotency_in_progress","retry":"same-key"}`))
			}))
			require.NoError(t, confirm(t.Context(), c))
			assert.Less(t, time.Since(began), 2*lease)
		}
	})(t)
}

func TestACallThatGivesUpDoesNotStopAnotherUnderTheSameKey(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		c, _ := onWire(t, s)
		id := place(t, c).OrderID
		held, call := storetest.Holding(storetest.Approving)
		s.provider.Next(call)
		defer held.Release()
		intent := client.NewIntent()
		first := make(chan error, 1)
		go func() {
			impatient, err := c.With(client.WithTries(1), client.WithTryTimeout(time.Second))
			if err == nil {
				_, err = impatient.ConfirmPayment(t.Context(), intent, id, payment)
			}
			first <- err
		}()
		<-held.Reached
		paid, err := c.ConfirmPayment(t.Context(), intent, id, payment)
		require.NoError(t, err)
		assert.Greater(t, paid.Answer.Tries, 2)
		var unknown *client.UnknownOutcome
		require.ErrorAs(t, <-first, &unknown)
		require.ErrorIs(t, unknown, client.ErrTries)
		assert.Equal(t, 1, s.provider.Charges())
	})(t)
}

// A queue that delivers twice, a worker that was started beside another: all of them mean one payment.
func TestManyAtOnceWithOneIntentPayOnceAndHaveTheSameAnswer(t *testing.T) {
	inBubble(func(t *testing.T) {
		s := openShop()
		c, w := onWire(t, s)
		id := place(t, c).OrderID
		w.losing(5)
		bodies := make([][]byte, 64)
		var all sync.WaitGroup
		for i := range bodies {
			all.Go(func() {
				paid, err := c.ConfirmPayment(t.Context(), "k", id, payment)
				assert.NoError(t, err)
				bodies[i] = paid.Answer.Body
			})
		}
		all.Wait()
		for _, body := range bodies {
			require.Equal(t, bodies[0], body)
		}
		assert.Equal(t, 1, s.provider.Charges())
	})(t)
}
