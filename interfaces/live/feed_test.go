package live_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/interfaces/live"
)

var now = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)

func feed() *live.Feed { return live.NewFeed(func() time.Time { return now }) }

// reserved is what is told when the actor's payment of the order has its record.
func reserved(actor, orderID string) port.Event {
	scope := idempotency.Scope{Operation: "ConfirmPayment", Actor: actor, Key: "k"}
	n := idempotency.Reservation{
		Scope: scope, Request: idempotency.Request("").With("order", orderID), Token: idempotency.NewToken(),
	}
	return port.Event{What: port.Reserved, Scope: scope, Executions: 1, Record: n.Opened(now, time.Minute)}
}

func looking(t *testing.T, f *live.Feed, actor string) *live.Stream {
	t.Helper()
	s, err := f.Look(actor)
	require.NoError(t, err)
	return s
}

// waiting are the moments that a stream has for its onlooker.
func waiting(s *live.Stream) (all []live.Moment) {
	for len(s.Moments()) > 0 {
		all = append(all, <-s.Moments())
	}
	return all
}

func TestAnOnlookerSeesWhatHappensToTheActorsRecordsOnly(t *testing.T) {
	f := feed()
	s := looking(t, f, "alice")
	f.Observe(t.Context(), reserved("bob", "b-1"))
	f.Observe(t.Context(), reserved("alice", "a-1"))
	seen := waiting(s)
	require.Len(t, seen, 1)
	assert.Equal(t, "a-1", seen[0].OrderID)
	assert.Equal(t, port.Reserved, seen[0].Event.What)
	assert.Equal(t, now, seen[0].At)
}

func TestAnOnlookerSeesTheBookOfTheActorsOrdersOnly(t *testing.T) {
	f := feed()
	s := looking(t, f, "alice")
	f.Observe(t.Context(), reserved("alice", "a-1"))
	f.Observe(t.Context(), reserved("bob", "b-1"))
	waiting(s)
	f.Booked("b-1")
	f.Booked("a-1")
	seen := waiting(s)
	require.Len(t, seen, 1)
	assert.Equal(t, live.Moment{At: now, OrderID: "a-1"}, seen[0])
}

func TestWhileNobodyLooksAnEventCostsNothing(t *testing.T) {
	f := feed()
	e := reserved("alice", "a-1")
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		f.Observe(ctx, e)
		f.Booked("a-1")
	}))
	looking(t, f, "alice").End()
	assert.Zero(t, testing.AllocsPerRun(100, func() { f.Observe(ctx, e) }), "the onlooker has gone")
}

func TestAnOnlookerWhoIsTooSlowIsDroppedAndNobodyWaits(t *testing.T) {
	f := feed()
	slow, other := looking(t, f, "alice"), looking(t, f, "bob")
	for range 1000 {
		f.Observe(t.Context(), reserved("alice", "a-1"))
	}
	f.Observe(t.Context(), reserved("bob", "b-1"))
	seen := 0
	for range slow.Moments() { // it ends
		seen++
	}
	assert.Positive(t, seen, "what was waiting is still shown, without a gap")
	assert.Less(t, seen, 1000)
	assert.Len(t, waiting(other), 1, "the others go on")
	slow.End()
}

func TestOnlySoManyCanLook(t *testing.T) {
	f := feed()
	var all []*live.Stream
	for range live.MaxStreams {
		all = append(all, looking(t, f, "alice"))
	}
	_, err := f.Look("bob")
	require.ErrorIs(t, err, live.ErrFull)
	all[0].End()
	all[0].End()
	looking(t, f, "bob")
}

func TestAStreamRemembersOnlySoManyOrders(t *testing.T) {
	f := feed()
	s := looking(t, f, "alice")
	for n := range 10_000 {
		f.Observe(t.Context(), reserved("alice", time.Duration(n).String()))
		waiting(s)
	}
	assert.Less(t, live.OrdersOf(s), 1000)
}

func TestWhenTheServiceEndsSoDoTheStreams(t *testing.T) {
	f := feed()
	s := looking(t, f, "alice")
	f.Observe(t.Context(), reserved("alice", "a-1"))
	f.Close()
	<-s.Moments()
	_, open := <-s.Moments()
	assert.False(t, open)
	_, err := f.Look("alice")
	require.ErrorIs(t, err, live.ErrClosed)
	f.Close()
	s.End()
}

func TestAViewTellsWhetherTheGatewayGaveAnAnswer(t *testing.T) {
	e := reserved("alice", "a-1")
	e.What, e.Err = port.Called, errors.New("lost")
	view := live.Moment{At: now, Event: e, OrderID: "a-1"}.View()
	assert.True(t, view.Unanswered)
	require.NotNil(t, view.Record)
	assert.Equal(t, idempotency.InProgress, view.Record.Status)
	assert.Equal(t, now.Add(time.Minute), *view.Record.LeaseEnds)
	e.Record = idempotency.Record{}
	assert.Nil(t, live.Moment{At: now, Event: e}.View().Record, "nobody can tell")
}
