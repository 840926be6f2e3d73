package pgproxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/gormstore/pgtest"
)

// table is an empty one, a connection to it through a proxy, and a way to count its rows that no proxy is in.
func table(t *testing.T) (p *pgproxy.Proxy, through *pgx.Conn, count func() int) {
	t.Helper()
	url := pgtest.Empty(t)
	direct := connected(t, url)
	_, err := direct.Exec(t.Context(), `CREATE TABLE numbers (n int)`)
	require.NoError(t, err)
	p, proxied := pgproxy.Between(t, url)
	return p, connected(t, proxied), func() (n int) {
		require.NoError(t, direct.QueryRow(t.Context(), `SELECT count(*) FROM numbers`).Scan(&n))
		return n
	}
}

func connected(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) }) // a broken one has nothing to say
	return c
}

// insert commits a row, all of it in one pipeline.
func insert(ctx context.Context, c *pgx.Conn) error {
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN`)
	batch.Queue(`INSERT INTO numbers VALUES (1)`)
	batch.Queue(`COMMIT`)
	return c.SendBatch(ctx, batch).Close()
}

func TestWhatIsNotStruckPasses(t *testing.T) {
	p, c, count := table(t)
	require.NoError(t, insert(t.Context(), c))
	struck := p.Strike(3, pgproxy.LoseCommit)
	require.NoError(t, insert(t.Context(), c))
	require.NoError(t, insert(t.Context(), c))
	assert.Equal(t, 3, count())
	require.Error(t, insert(t.Context(), c), "the third commit is struck")
	<-struck
	assert.Equal(t, 3, count())
}

func TestTheCommitWhoseAnswerIsLostIsApplied(t *testing.T) {
	for name, f := range map[string]pgproxy.Fault{
		"lost": pgproxy.LoseAnswer, "lost, and no way back": pgproxy.LoseAnswerAndCut, "held": pgproxy.HoldAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			p, c, count := table(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			struck := p.Strike(1, f)
			go func() {
				<-struck
				if f == pgproxy.HoldAnswer {
					cancel() // it would wait for ever
				}
			}()
			require.Error(t, insert(ctx, c))
			assert.Equal(t, 1, count())
		})
	}
}

func TestACommitThatIsTextIsSeenToo(t *testing.T) {
	p, c, count := table(t)
	p.Strike(1, pgproxy.LoseCommit)
	_, err := c.Exec(t.Context(), `BEGIN`)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), `INSERT INTO numbers VALUES (1)`)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), `commit`, pgx.QueryExecModeSimpleProtocol)
	require.Error(t, err)
	assert.Zero(t, count())
}

func TestNothingComesThroughACutUntilItIsMended(t *testing.T) {
	url := pgtest.Empty(t)
	p, proxied := pgproxy.Between(t, url)
	c := connected(t, proxied)
	p.Cut()
	require.Error(t, c.Ping(t.Context()))
	_, err := pgx.Connect(t.Context(), proxied)
	require.Error(t, err)
	p.Mend()
	c = connected(t, proxied)
	require.NoError(t, c.Ping(t.Context()))
	p.Reset()
	require.Error(t, c.Ping(t.Context()))
	require.NoError(t, connected(t, proxied).Ping(t.Context()), "a reset breaks only what is there")
}

func TestWhatIsStalledArrivesWhenItIsMended(t *testing.T) {
	p, c, count := table(t)
	p.Stall()
	done := make(chan error, 1)
	go func() { done <- insert(t.Context(), c) }()
	select {
	case err := <-done:
		require.Fail(t, "it passed", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Mend()
	require.NoError(t, <-done)
	assert.Equal(t, 1, count())
}

func TestWhatIsSlowedArrivesWholeAndLate(t *testing.T) {
	for name, pieces := range map[string]int{"by the message": 0, "by a few bytes": 16} {
		t.Run(name, func(t *testing.T) {
			p, c, count := table(t)
			p.Slow(time.Millisecond, pieces)
			began := time.Now()
			require.NoError(t, insert(t.Context(), c))
			assert.Greater(t, time.Since(began), 10*time.Millisecond, "a transaction has more messages than that")
			assert.Equal(t, 1, count())
			p.Mend()
			require.NoError(t, insert(t.Context(), c))
			assert.Equal(t, 2, count())
		})
	}
}
