package httpapi_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

// Clients that go away at the worst moment, on every store.

// beforeTheStore runs a test on an empty store of each kind, and then looks that no session of the database was left in a
// transaction.
func beforeTheStore(t *testing.T, test func(t *testing.T, work port.UnitOfWork)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, inMemory(t))
	})
	for name, fresh := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := fresh(t)
			outside := d.SQL(t)
			test(t, patiently(t, d))
			if name == "PostgreSQL" {
				leavesNoTransaction(t, outside)
			}
		})
	}
}

func leavesNoTransaction(t *testing.T, database *sql.DB) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var idle int
		require.NoError(c, database.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state LIKE 'idle in transaction%'`).Scan(&idle))
		assert.Zero(c, idle, "sessions idle in transaction")
	}, 5*time.Second, 10*time.Millisecond)
}

// longestWait is the longest that a key may answer 409 to a client that has hung up and comes back.
const longestWait = 5 * time.Second

// comesToAnEnd repeats the request until it is answered 200. Meanwhile it may only be told to wait.
func (e edge) comesToAnEnd(ctx context.Context, r request) error {
	for began := time.Now(); ; {
		a, err := e.try(ctx, r)
		switch {
		case err != nil:
			return err
		case a.status == http.StatusOK:
			return nil
		case a.status != http.StatusConflict && a.status != http.StatusServiceUnavailable:
			return fmt.Errorf("answered %d: %s", a.status, a.body)
		case time.Since(began) > longestWait:
			return fmt.Errorf("after %s still %d: %s", longestWait, a.status, a.body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sendAndHangUp sends the request and closes the connection after a time, whatever has been answered.
func (e edge) sendAndHangUp(ctx context.Context, r request, after time.Duration) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte(r.whole())); err != nil {
		return err
	}
	time.Sleep(after)
	return nil
}

// C53: wherever the request is when its client hangs up, it comes to its end and is done once.
func TestClientsThatHangUpAtAnyMomentArePaidForOnce(t *testing.T) {
	const clients = 20
	beforeTheStore(t, func(t *testing.T, work port.UnitOfWork) {
		rounds := 4
		if strings.HasSuffix(t.Name(), "memory") { // where they cost least
			rounds = 10
		}
		e := open(t, work)
		slow := make([]storetest.Call, clients*rounds)
		for i := range slow {
			slow[i] = slowly(rand.N(20*time.Millisecond), storetest.Approving)
		}
		e.provider.Next(slow...)
		var all sync.WaitGroup
		for range clients {
			var orders []string
			for range rounds {
				orders = append(orders, e.place(t))
			}
			all.Go(func() {
				for _, id := range orders {
					r := confirming(id)
					assert.NoError(t, e.sendAndHangUp(t.Context(), r, rand.N(50*time.Millisecond)))
					assert.NoError(t, e.comesToAnEnd(t.Context(), r))
				}
			})
		}
		all.Wait()
		assert.Equal(t, clients*rounds, e.provider.Charges())
		assert.NotContains(t, e.log.String(), `"level":"ERROR"`)
	})
}

// C53, C62: the provider answers when every client has gone.
func TestWhatIsDecidedAfterItsClientsHaveGoneIsTheirAnswerLater(t *testing.T) {
	const clients = 20
	beforeTheStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work)
		requests, held := make([]request, clients), make([]*storetest.Held, clients)
		for i := range clients {
			requests[i] = confirming(e.place(t))
			var call storetest.Call
			held[i], call = storetest.Holding(storetest.Approving)
			e.provider.Next(call)
			w := e.dial(t)
			w.say(t, requests[i].whole())
			<-held[i].Reached
			require.NoError(t, w.Close())
		}
		for i, r := range requests {
			e.send(t, r).isProblem(t, http.StatusConflict, "idempotency_in_progress")
			held[i].Release()
		}
		for _, r := range requests {
			require.NoError(t, e.comesToAnEnd(t.Context(), r))
			assert.Equal(t, "true", e.send(t, r).header.Get("Idempotent-Replayed"))
			found := e.send(t, outcomeOf(r, "ConfirmPayment")).is(t, http.StatusOK)
			assert.InDelta(t, 1, found.member(t, "executions"), 0, "what its client has left came to its end by itself")
		}
		assert.Equal(t, clients, e.provider.Charges())
		e.send(t, confirming(e.place(t))).is(t, http.StatusOK)
	})
}

// C31: an upload that its client ends early reaches no store.
func TestAnUploadThatIsCutShortLeavesNoTrace(t *testing.T) {
	beforeTheStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work)
		id := e.place(t)
		r := confirming(id)
		for _, text := range []string{
			r.head("Content-Length: 200") + r.body,               // complete JSON, but less than was announced
			r.head("Content-Length: 200") + r.body[:10],          // in the middle of it
			r.head(chunkedHeader) + chunk(r.body),                // all but the last chunk
			r.head(chunkedHeader) + "50\r\n" + r.body,            // in the middle of a chunk
			r.head("Content-Length: 50", "Expect: 100-continue"), // invited, never sent
		} {
			ended := e.dial(t)
			ended.say(t, text)
			ended.endOfWriting(t)
			ended.hear(t) // 400, or the invitation
			gone := e.dial(t)
			gone.say(t, text)
			require.NoError(t, gone.Close())
		}
		e.send(t, outcomeOf(r, "ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
		assert.Equal(t, "PLACED", e.statusOf(t, id))
		assert.Zero(t, e.provider.Calls())
		assert.Empty(t, e.send(t, r).is(t, http.StatusOK).header.Get("Idempotent-Replayed"), "the key was not used")
	})
}

// C31: who has said all may stop speaking, and is still answered.
func TestAClientThatStopsSpeakingAfterItsRequestIsAnswered(t *testing.T) {
	beforeTheStore(t, func(t *testing.T, work port.UnitOfWork) {
		e := open(t, work)
		held, call := storetest.Holding(storetest.Approving)
		e.provider.Next(call)
		r := confirming(e.place(t))
		w := e.dial(t)
		w.say(t, r.whole())
		<-held.Reached
		w.endOfWriting(t)
		held.Release()
		first := w.hear(t).is(t, http.StatusOK)

		w = e.dial(t)
		w.say(t, r.whole())
		w.endOfWriting(t)
		w.hear(t).isReplayOf(t, first)
	})
}
