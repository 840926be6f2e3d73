package world_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/lab/world"
)

var (
	tea = world.Order{ID: "1", Name: "order-1", Customer: "alice", Total: 1000, Status: world.Placed}
	pay = world.Request{Actor: "alice", Key: "k", Order: "1", Amount: 1000}
)

// serving is a world whose design charges under one gateway key and answers with the charge.
func serving(t *testing.T, gatewayKey string) *world.World {
	t.Helper()
	w := world.New(tea)
	t.Cleanup(w.Close)
	w.Serve(func(p *world.Process, _ world.Request) world.Answer {
		return world.Answer{Status: 200, Body: p.Charge(gatewayKey)}
	})
	return w
}

func TestAProcessWaitsWhereItIsHeld(t *testing.T) {
	w := serving(t, "")
	a := w.Send(pay)
	assert.Zero(t, w.Provider.Charges("1"), "sent, and not begun")
	a.Until(world.Asking)
	assert.Zero(t, w.Provider.Charges("1"))
	a.Until(world.Taken)
	assert.Equal(t, 1, w.Provider.Charges("1"))
	assert.Empty(t, w.Told())
	assert.Equal(t, "ch_1", a.Finish().Body)
	assert.Len(t, w.Told(), 1)
}

func TestAProcessThatDoesNotComeToAPointRunsToItsEnd(t *testing.T) {
	w := serving(t, "")
	a := w.Send(pay)
	a.Until(world.Worked)
	assert.Equal(t, 200, a.Finish().Status)
}

func TestADeadProcessDoesNothingMore(t *testing.T) {
	w := serving(t, "")
	a := w.Send(pay)
	a.Until(world.Asking)
	a.Kill()
	assert.True(t, a.Dead())
	assert.Zero(t, a.Finish())
	assert.Zero(t, w.Provider.Charges("1"))
	assert.Empty(t, w.Told())
}

func TestALostAnswerIsToldToNobody(t *testing.T) {
	w := serving(t, "")
	w.Send(pay).FinishUnheard()
	assert.Equal(t, 1, w.Provider.Charges("1"))
	assert.Empty(t, w.Told())
}

func TestAPanicOfADesignComesToWhoeverLetItRun(t *testing.T) {
	w := world.New(tea)
	defer w.Close()
	w.Serve(func(*world.Process, world.Request) world.Answer { panic("a bug") })
	a := w.Send(pay)
	require.PanicsWithValue(t, "a bug", func() { a.Finish() })
}

func TestTheProviderChargesOncePerKeyAndEachTimeWithoutOne(t *testing.T) {
	for key, want := range map[string]int{"": 2, "1:1": 1} {
		w := serving(t, key)
		first, second := w.Send(pay).Finish(), w.Send(pay).Finish()
		assert.Equal(t, want, w.Provider.Charges("1"))
		assert.Equal(t, want == 1, first == second)
	}
}

func TestTimePassesWhenItIsLet(t *testing.T) {
	w := serving(t, "")
	before := w.Now()
	w.Pass(time.Minute)
	assert.Equal(t, time.Minute, w.Now().Sub(before))
}
