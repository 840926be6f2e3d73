package gormstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

// expiredBy is how a database is filled with finished records that are past their retention.
var expiredBy = map[string]string{
	"PostgreSQL": `INSERT INTO idempotency_records (operation, actor, idempotency_key, fingerprint, token, status, executions,
		created_at, lease_expires_at, completed_at, expires_at, document)
		SELECT 'ConfirmPayment', 'bob', gen_random_uuid(), 'v1:', gen_random_uuid(), 'SUCCEEDED', 1,
			now() - interval '3 days', now() - interval '3 days', now() - interval '3 days', now() - interval '2 days',
			convert_to(repeat('x', 200), 'UTF8')
		FROM generate_series(1, $1) AS n`,
	"SQLite": `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $1)
		INSERT INTO idempotency_records (operation, actor, idempotency_key, fingerprint, token, status, executions,
		created_at, lease_expires_at, completed_at, expires_at, document)
		SELECT 'ConfirmPayment', 'bob', lower(hex(randomblob(16))), 'v1:', 't', 'SUCCEEDED', 1, 1, 1, 1, 1, CAST(printf('%.200c', 'x') AS blob)
		FROM s`,
}

// BenchmarkConfirmsBesideASweep reports what a sweep of 200,000 expired records costs the payments beside it, as ratios
// to payments without one: of the payments in a second, and of the time that the median and the 99th in a hundred take.
func BenchmarkConfirmsBesideASweep(b *testing.B) {
	const expired = 200_000
	for name, database := range gormtest.All {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				db := database(b)
				work := db.Open(b, 8)
				shop := storetest.OpenShop(work, storetest.NewProvider())
				db.Exec(b, expiredBy[name], expired)
				confirms(b, shop, 0, func() { time.Sleep(2 * time.Second) }) // warm
				quiet := confirms(b, shop, 1, func() { time.Sleep(10 * time.Second) })
				var swept int
				var took time.Duration
				beside := confirms(b, shop, 2, func() {
					begun := time.Now()
					var err error
					swept, err = idempotent.Sweep(context.WithoutCancel(b.Context()), work, idempotent.Pace{Batch: work.SweepBatch(), Now: time.Now})
					took = time.Since(begun)
					require.NoError(b, err)
				})
				require.Equal(b, expired, swept)
				b.ReportMetric(beside.rate/quiet.rate, "rate-ratio")
				b.ReportMetric(float64(beside.at(50))/float64(quiet.at(50)), "median-ratio")
				b.ReportMetric(float64(beside.at(99))/float64(quiet.at(99)), "p99-ratio")
				b.ReportMetric(quiet.rate, "quiet-confirms/s")
				b.ReportMetric(took.Seconds(), "sweep-s")
			}
		})
	}
}

// measured is how payments went while something else did.
type measured struct {
	rate  float64 // in a second
	times []time.Duration
}

func (m measured) at(percent int) time.Duration { return m.times[len(m.times)*percent/100] }

// confirms has four customers pay one order after the other while something goes on.
func confirms(b *testing.B, shop storetest.Shop, phase int, during func()) (m measured) {
	b.Helper()
	ctx, over := context.WithCancel(b.Context())
	var mu sync.Mutex
	var paying sync.WaitGroup
	begun := time.Now()
	for range 4 {
		paying.Go(func() {
			for ctx.Err() == nil {
				id, err := shop.Place(context.WithoutCancel(ctx))
				if err != nil {
					b.Errorf("phase %d: %v", phase, err)
					return
				}
				asked := time.Now()
				if _, err := shop.ConfirmPayment(context.WithoutCancel(ctx), storetest.Payment(id, string(id))); err != nil {
					b.Errorf("phase %d: %v", phase, err)
					return
				}
				mu.Lock()
				m.times = append(m.times, time.Since(asked))
				mu.Unlock()
			}
		})
	}
	during()
	over()
	paying.Wait()
	m.rate = float64(len(m.times)) / time.Since(begun).Seconds()
	slices.Sort(m.times)
	return m
}
