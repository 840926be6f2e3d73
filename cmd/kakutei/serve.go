package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/domain/idempotency"
	"kakutei/domain/payment"
	"kakutei/infrastructure/audit"
	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/logging"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/live"
)

// serveConfig is everything that the service can be told.
type serveConfig struct {
	access  accessConfig
	tokens  tokenConfig
	limits  limitConfig
	store   storeConfig
	gateway gatewayConfig
	work    workConfig
	books   booksConfig
	log     logConfig
	traces  tracesConfig
	failing failpointConfig
}

func (c *serveConfig) variables() []variable {
	return slices.Concat(c.access.variables(), c.tokens.variables(), c.limits.variables(), c.store.variables(),
		c.gateway.variables(), c.work.variables(), c.books.variables(), c.log.variables(), c.traces.variables(),
		c.failing.variables())
}

func serveCommand() command {
	var c serveConfig
	return command{
		name:      "serve",
		does:      "run the service; SIGTERM or SIGINT ends it when what runs is finished, a second one at once",
		variables: c.variables(),
		run:       c.serve,
	}
}

// check looks at what only several variables together can have wrong.
func (c *serveConfig) check() error {
	if err := c.access.check(); err != nil {
		return err
	}
	if err := c.failing.check(c.access.auth); err != nil {
		return err
	}
	if err := c.tokens.check(c.access.auth); err != nil {
		return err
	}
	return c.work.check(c.gateway.timeout)
}

// serve runs the service until it is asked to stop.
func (c *serveConfig) serve(ctx context.Context, p program) error {
	if err := c.check(); err != nil {
		return err
	}
	sight, log, err := c.traces.open(ctx, c.log.logger(p.stderr))
	if err != nil {
		return err
	}
	ctx, cut, end := watch(ctx, p.notify)
	defer end()
	store, err := c.store.open(ctx, log, p.patience)
	if err != nil {
		if ctx.Err() != nil { // asked to stop before anything had begun
			return nil
		}
		return err
	}
	p.share(store, log)
	s, err := c.assemble(ctx, store, sight, log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return s.run(ctx, cut, func() {
		v, commit := built()
		log.Info("serving", "address", s.listener.Addr().String(), "store", c.store.name(), "version", v, "commit", commit)
		printTryout(p.stdout, s.listener.Addr(), c.store.name(), c.access.exampleToken())
	})
}

// parts are the use cases over their adapters.
type parts struct {
	till     *checkout.Till
	ledger   *bookkeeping.Ledger
	desk     *oversight.Desk
	compared oversight.Reconciliation
	auditing *audit.Writer
	feed     *live.Feed // of what happens, for the page; nil outside of demo mode
	times    idempotent.Config
}

// parts puts the inner layers together.
func (c *serveConfig) parts(store opened, sight sight, log *slog.Logger) (parts, error) {
	var feed *live.Feed
	if c.access.auth == demo {
		feed = live.NewFeed(time.Now)
		store.book = gateway.Telling{Book: store.book, Tell: feed.Booked}
	}
	provider, err := c.gateway.provider(store.book)
	if err != nil {
		return parts{}, err
	}
	provider = c.failing.at.gateway(sight.provider(provider), log)
	times := idempotent.Config{
		Lease: c.work.lease, Retention: c.work.retention,
		CallTimeout: c.gateway.timeout, LockTimeout: c.store.lockTimeout, Now: time.Now,
	}
	auditing := audit.NewWriter(store, log, time.Now)
	observers := sight.observers(logging.NewObserver(log), auditing)
	if feed != nil {
		observers = append(observers, feed)
	}
	return parts{
		till: &checkout.Till{
			Executor: idempotent.New(
				c.failing.at.work(store, checkout.OpConfirmPayment, log), httpapi.Documents{}, observers, times),
			Work: store, Gateway: provider, Provider: c.gateway.name(), Observer: observers,
			KeyRetention: c.gateway.keyRetention, Lease: c.work.lease,
			Books: checkout.Books{Company: c.books.company, Zone: c.books.zone},
		},
		ledger:   &bookkeeping.Ledger{Work: store, Observer: observers, Deadline: times.Deadline()},
		desk:     &oversight.Desk{Work: store},
		compared: c.books.reconciliation(store, provider, c.gateway.name()),
		auditing: auditing, feed: feed, times: times,
	}, nil
}

// assemble puts the layers together, from the store to the open port.
func (c *serveConfig) assemble(ctx context.Context, plain opened, sight sight, log *slog.Logger) (*service, error) {
	store := sight.store(plain)
	inner, err := c.parts(store, sight, log)
	if err != nil {
		return nil, err
	}
	sight.standing(plain, inner)
	return c.around(ctx, inner, store, sight, log)
}

// around puts the outer layers around the inner ones.
func (c *serveConfig) around(
	ctx context.Context, inner parts, store opened, sight sight, log *slog.Logger,
) (*service, error) {
	callers, err := c.callers(ctx, log)
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Config{ //nolint:contextcheck // each request brings its own
		Till: inner.till, Ledger: inner.ledger, Desk: inner.desk, Ready: store.Ready,
		Auth: callers, ExampleToken: c.access.exampleToken(), AnyHost: c.access.anyHost(), Logger: log,
		Live: inner.feed, Pages: c.access.pages(log),
		Origins: c.limits.origins, MaxInFlight: c.limits.inFlight, Crowded: store.crowded, RateLimit: c.limits.rate,
		Deadline: inner.times.Deadline(), Lease: c.work.lease, Retention: c.work.retention,
		Metrics: sight.metrics.Handler(), Answered: sight.answered, TraceID: sight.traces.TraceID,
	})
	if c.failing.at != "" {
		log.Warn("A FAILPOINT IS SET: this process kills itself in a payment", "failpoint", string(c.failing.at))
	}
	listener, err := net.Listen("tcp", c.access.listen)
	if err != nil {
		return nil, fmt.Errorf("KAKUTEI_LISTEN: %w", err)
	}
	sweeping := sweeper{
		work: store, pace: store.pace(), interval: c.work.sweepInterval, auditFor: c.work.auditFor, log: log,
		told: sight.metrics.Swept,
	}
	recovery := idempotent.NewRecovery(store, c.work.recoverEvery, map[idempotency.Operation]idempotent.Resume{
		checkout.OpConfirmPayment: sight.traces.Resume(c.failing.at.resume(inner.till.Resume)),
	})
	finishing := recovering{recovery: recovery, interval: c.work.recoverEvery, log: log, told: sight.metrics.Recovered}
	comparing := comparing{reconciliation: inner.compared, interval: c.work.compareEvery, log: log, told: sight.metrics.Compared}
	return &service{
		server: sight.server(api, c.access.listen), listener: listener,
		background: []func(context.Context){sweeping.run, finishing.run, comparing.run, callers.keep},
		last:       inner.auditing.Run, dropped: inner.auditing.Drop, lastly: sight.traces.End,
		store: store, unready: api.Drain, grace: c.work.grace, log: log,
	}, nil
}

// paymentProvider is who takes the money and can account for it.
type paymentProvider interface {
	payment.Gateway
	payment.Statement
}

// name is what an attempt remembers of whom it was asked: the built-in provider, by where its book is, or one over
// HTTP, wherever it is.
func (c *gatewayConfig) name() string {
	if c.url != simulator {
		return "gateway"
	}
	if c.book == inMemory {
		return simulator + " with a book in " + inMemory
	}
	return simulator
}

// provider is the one at the URL, or the built-in simulator over a book.
func (c *gatewayConfig) provider(stored gateway.Book) (paymentProvider, error) {
	switch {
	case c.url != simulator:
		return gateway.NewHTTP(gateway.HTTPConfig{BaseURL: c.url, Token: c.token, Timeout: c.timeout})
	case c.book == inMemory:
		return gateway.NewSimulator(gateway.NewMemoryBook(), time.Now), nil
	default:
		return gateway.NewSimulator(stored, time.Now), nil
	}
}
