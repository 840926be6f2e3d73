package idempotent_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

// BenchmarkExecutor is one of `make allocs`: what an execution costs on the store that costs the least itself.
func BenchmarkExecutor(b *testing.B) {
	request := idempotency.Request("").With("order", "01930000-0000-7000-8000-000000000000").With("amount", "1000")
	intent := func(n int) idempotent.Intent {
		return idempotent.Intent{
			Scope:   idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: idempotency.Key("k" + strconv.Itoa(n))},
			Request: request,
		}
	}
	finish := func(context.Context, port.Tx) (any, error) { return "done", nil }
	for name, prepare := range map[string]idempotent.Prepare{
		"with a call": func(context.Context, port.Tx) (idempotent.Next, error) {
			return idempotent.Then(func(context.Context) (idempotent.Finish, error) { return finish, nil }), nil
		},
		"without": func(context.Context, port.Tx) (idempotent.Next, error) { return idempotent.Result("done"), nil },
	} {
		b.Run(name, func(b *testing.B) {
			e := idempotent.New(memory.New(time.Now), storetest.Documents{}, port.Observers{}, storetest.Times)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := e.Execute(b.Context(), intent(n), prepare); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+", replay", func(b *testing.B) {
			e := idempotent.New(memory.New(time.Now), storetest.Documents{}, port.Observers{}, storetest.Times)
			_, err := e.Execute(b.Context(), intent(0), prepare)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if a, err := e.Execute(b.Context(), intent(0), prepare); err != nil || !a.Replayed {
					b.Fatal(a, err)
				}
			}
		})
	}
}
