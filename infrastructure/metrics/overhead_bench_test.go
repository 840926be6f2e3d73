package metrics_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/metrics"
	"kakutei/infrastructure/storetest"
)

// nobody observes nothing.
type nobody struct{}

func (nobody) Observe(context.Context, port.Event) {}

// BenchmarkExecutor shows what measuring costs a run with a call, on the store that costs the least itself.
func BenchmarkExecutor(b *testing.B) {
	m := metrics.New("v1", "abc")
	for name, wrap := range map[string]func(port.UnitOfWork) (port.UnitOfWork, port.Observer){
		"without metrics": func(w port.UnitOfWork) (port.UnitOfWork, port.Observer) { return w, nobody{} },
		"with metrics":    func(w port.UnitOfWork) (port.UnitOfWork, port.Observer) { return m.Work(w), m },
	} {
		b.Run(name, func(b *testing.B) {
			work, observer := wrap(memory.New(time.Now))
			e := idempotent.New(work, storetest.Documents{}, observer, storetest.Times)
			finish := func(context.Context, port.Tx) (any, error) { return "done", nil }
			prepare := func(context.Context, port.Tx) (idempotent.Next, error) {
				return idempotent.Then(func(context.Context) (idempotent.Finish, error) { return finish, nil }), nil
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				_, err := e.Execute(b.Context(), idempotent.Intent{
					Scope:   idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: idempotency.Key("k" + strconv.Itoa(n))},
					Request: idempotency.Request("").With("order", "o"),
				}, prepare)
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
