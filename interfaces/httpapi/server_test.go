package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/httpapi"
)

func TestTheServerWaitsForNobodyForEver(t *testing.T) {
	server := onMemory(t).server.HTTPServer("127.0.0.1:8080")
	assert.Equal(t, "127.0.0.1:8080", server.Addr)
	assert.Positive(t, server.ReadHeaderTimeout)
	assert.Positive(t, server.ReadTimeout)
	assert.Positive(t, server.IdleTimeout)
	assert.Greater(t, server.WriteTimeout, server.ReadTimeout+storetest.Times.Deadline()+storetest.Times.LockTimeout,
		"an answer is written after the body and the work, each with its own limit")
	assert.NotNil(t, server.ErrorLog)
	assert.LessOrEqual(t, server.MaxHeaderBytes, 64<<10)
}

// probe is a store's readiness as the test has it.
type probe struct {
	asked atomic.Int32
	fails atomic.Bool
}

func (p *probe) ready(ctx context.Context) error {
	p.asked.Add(1)
	if deadline, has := ctx.Deadline(); !has || time.Until(deadline) > 2*time.Second {
		return errors.New("the question has no limit of two seconds")
	}
	if p.fails.Load() {
		return errors.New("migration 3 is missing at 10.0.0.7")
	}
	return nil
}

func (p *probe) setting(c *httpapi.Config) { c.Ready = p.ready }

func TestReadinessIsTheStores(t *testing.T) {
	var p probe
	p.fails.Store(true)
	e := onMemory(t, p.setting)
	a := e.send(t, get("/readyz")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	assert.NotContains(t, a.body, "10.0.0.7")
	assert.NotEmpty(t, a.header.Get("Retry-After"))
	assert.Equal(t, http.StatusOK, e.send(t, get("/healthz")).status, "the process is alive all the same")
	assert.Contains(t, e.log.String(), "migration 3 is missing")

	p.fails.Store(false)
	started := time.Now()
	isReady := func() bool { return e.send(t, get("/readyz")).status == http.StatusOK }
	require.Eventually(t, isReady, 10*time.Second, 10*time.Millisecond)
	assert.Less(t, time.Since(started), 2*time.Second, "an answer is at most two seconds old")
}

func TestReadinessIsNotAskedForEveryProbe(t *testing.T) {
	var p probe
	e := onMemory(t, p.setting)
	for range 50 {
		e.send(t, get("/readyz")).is(t, http.StatusOK)
	}
	assert.LessOrEqual(t, p.asked.Load(), int32(10), "fifty probes take a moment")
	assert.Positive(t, p.asked.Load())
}

func TestDrainingIsNotReadyAtOnceButServes(t *testing.T) {
	var p probe
	e := onMemory(t, p.setting)
	e.send(t, get("/readyz")).is(t, http.StatusOK)
	e.server.Drain()
	e.send(t, get("/readyz")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	e.send(t, get("/healthz")).is(t, http.StatusOK)
	e.send(t, placing()).is(t, http.StatusCreated)
}

func TestDrainingDoesNotWaitForAStoreThatHangs(t *testing.T) {
	reached, hangs := make(chan struct{}), make(chan struct{})
	e := onMemory(t, func(c *httpapi.Config) {
		c.Ready = func(context.Context) error {
			close(reached)
			<-hangs
			return nil
		}
	})
	first := make(chan answer, 1)
	go func() {
		a, err := e.try(t.Context(), get("/readyz"))
		assert.NoError(t, err)
		first <- a
	}()
	<-reached
	e.server.Drain()
	e.send(t, get("/readyz")).isProblem(t, http.StatusServiceUnavailable, "unavailable")
	close(hangs)
	(<-first).isProblem(t, http.StatusServiceUnavailable, "unavailable")
}
