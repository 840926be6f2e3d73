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

// BenchmarkConfirmsBesideASweep reports what a sweep of expired records costs the payments beside it, as ratios to
// payments without one: of the payments in a second, and of the time that the median and the 99th in a hundred take. The
// sweep runs every other second, so that what else the machine does falls on both alike.
func BenchmarkConfirmsBesideASweep(b *testing.B) {
	const (
		expired = 200_000
		turns   = 15
		turn    = time.Second
	)
	for name, database := range gormtest.All {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				db := database(b)
				work := db.Open(b, 8)
				shop := storetest.OpenShop(work, storetest.NewProvider())
				db.Exec(b, expiredBy[name], expired)
				confirms(b, shop, func() { time.Sleep(2 * time.Second) }) // warm
				var quiet, beside measured
				swept := 0
				for range turns {
					quiet.add(confirms(b, shop, func() { time.Sleep(turn) }))
					beside.add(confirms(b, shop, func() {
						ctx, over := context.WithTimeout(b.Context(), turn)
						defer over()
						n, err := idempotent.Sweep(ctx, work, idempotent.Pace{Batch: work.SweepBatch(), Now: time.Now})
						swept += n
						require.Error(b, ctx.Err(), "swept too soon: %v", err)
					}))
				}
				b.ReportMetric(beside.rate()/quiet.rate(), "rate-ratio")
				b.ReportMetric(float64(beside.at(50))/float64(quiet.at(50)), "median-ratio")
				b.ReportMetric(float64(beside.at(99))/float64(quiet.at(99)), "p99-ratio")
				b.ReportMetric(float64(quiet.at(99))/float64(time.Millisecond), "quiet-p99-ms")
				b.ReportMetric(quiet.rate(), "quiet-confirms/s")
				b.ReportMetric(float64(swept)/beside.lasted.Seconds(), "swept/s")
			}
		})
	}
}

// measured is how payments went while something else did.
type measured struct {
	lasted time.Duration
	times  []time.Duration
}

func (m measured) rate() float64 { return float64(len(m.times)) / m.lasted.Seconds() } // in a second

func (m measured) at(percent int) time.Duration { return m.times[len(m.times)*percent/100] }

func (m *measured) add(other measured) {
	m.lasted += other.lasted
	m.times = append(m.times, other.times...)
	slices.Sort(m.times)
}

// confirms has four customers pay one order after the other while something goes on.
func confirms(b *testing.B, shop storetest.Shop, during func()) (m measured) {
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
					b.Error(err)
					return
				}
				asked := time.Now()
				if _, err := shop.ConfirmPayment(context.WithoutCancel(ctx), storetest.Payment(id, string(id))); err != nil {
					b.Error(err)
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
	m.lasted = time.Since(begun)
	return m
}
