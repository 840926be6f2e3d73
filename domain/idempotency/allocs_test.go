package idempotency_test

import (
	"testing"

	"kakutei/domain/idempotency"
)

// The benchmarks of `make allocs`.

func BenchmarkKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := idempotency.NewKey("8e03978e-40d5-43dd-bc93-6894a57f9324"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	scope := idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "8e03978e-40d5-43dd-bc93-6894a57f9324"}
	b.ReportAllocs()
	for b.Loop() {
		request := idempotency.Request("").With("order", "01930000-0000-7000-8000-000000000000").
			With("amount", "1000").With("currency", "JPY")
		if idempotency.FingerprintOf(scope, request) == "" {
			b.Fatal("there is none")
		}
	}
}
