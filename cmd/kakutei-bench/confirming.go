package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"kakutei/interfaces/client"
)

// What is measured, as the table names it.
const (
	onPostgres = "PostgreSQL"
	onSQLite   = "SQLite"

	pgbenchConfirm          = "pgbench: confirm, a round trip per statement"
	pgbenchConfirmPipelined = "pgbench: confirm, pipelined"
	pgbenchReplay           = "pgbench: replay, a round trip per statement"
	pgbenchReplayPipelined  = "pgbench: replay, pipelined"
	httpNoop                = "HTTP no-op"
	place                   = "place"
	confirm                 = "confirm"
	confirmElsewhere        = "confirm, placed elsewhere"
	replay                  = "replay"
)

// inOrder are the table's rows of a store.
var inOrder = []string{
	pgbenchConfirm, pgbenchConfirmPipelined, pgbenchReplay, pgbenchReplayPipelined, httpNoop, place, confirm,
	confirmElsewhere, replay,
}

// confirmations is what the part "confirm" has found out.
type confirmations struct {
	results results
	confirm script
	replay  script
}

// confirmations measures what a confirmation costs beside what the database and the edge alone would.
func (b *bench) confirmations(ctx context.Context) (c confirmations, err error) {
	c.results = results{}
	if c.confirm, c.replay, err = b.record(ctx); err != nil {
		return c, fmt.Errorf("record the statements: %w", err)
	}
	b.tell("a confirmation is %d statements in %d round trips, its replay %d in %d", c.confirm.statements(),
		c.confirm.roundTrips(), c.replay.statements(), c.replay.roundTrips())
	edge, err := b.launch(ctx, []string{b.self, "noop"})
	if err != nil {
		return c, err
	}
	rates := map[string]float64{}
	for round := range b.rounds {
		if err := b.confirmRound(ctx, &c, edge, rates, round); err != nil {
			return c, errors.Join(fmt.Errorf("round %d: %w", round+1, err), edge.stop())
		}
	}
	return c, edge.stop()
}

// confirmRound measures each cell once, each round in another order, on new databases.
func (b *bench) confirmRound(
	ctx context.Context, c *confirmations, edge *instance, rates map[string]float64, round int,
) (err error) {
	d, err := b.postgres.database(ctx, "round"+strconv.Itoa(round))
	if err != nil {
		return err
	}
	onServer, err := b.serve(ctx, d.url)
	if err != nil {
		return err
	}
	path := filepath.Join(b.dir, fmt.Sprintf("round%d.db", round))
	onFile, err := b.serve(ctx, "sqlite:"+path)
	if err != nil {
		return err
	}
	atServer, atFile := &source{store: d}, &source{store: file{path}}
	if atServer.like, err = warm(ctx, onServer); err != nil {
		return err
	}
	if atFile.like, err = warm(ctx, onFile); err != nil {
		return err
	}
	g := grinder{bench: b, confirmations: c, database: d, source: atServer, rates: rates}
	server := shopper{b, c, onServer, d, atServer, onPostgres}
	lite := shopper{b, c, onFile, file{path}, atFile, onSQLite}
	groups := []func(conns int) error{
		func(conns int) error { return g.grind(ctx, conns) },
		func(conns int) error { return b.noop(ctx, c, edge, conns) },
		func(conns int) error { return server.shop(ctx, conns) },
		func(conns int) error { return lite.shop(ctx, conns) },
	}
	for _, conns := range connections {
		for i := range groups {
			if err := groups[(i+round)%len(groups)](conns); err != nil {
				return err
			}
		}
		b.tell("round %d of %d: %d connections measured", round+1, b.rounds, conns)
	}
	return errors.Join(onServer.stop(), onFile.stop(), b.postgres.drop(ctx, d))
}

// warming is how many confirmations are not measured: each connection has prepared its statements then.
const warming = 1000

// warm has a service pay some orders. The result is one that waits for its payment.
func warm(ctx context.Context, i *instance) (like string, err error) {
	var s stock
	for range warming {
		if err := s.place(ctx, i.shop); err != nil {
			return "", err
		}
	}
	for _, do := range []func(context.Context, *client.Client) error{s.confirm, s.replay} {
		if _, err := load(32, time.Second, func() error { return do(ctx, i.shop) }); err != nil {
			return "", err
		}
	}
	placed, err := i.shop.PlaceOrder(ctx, client.NewIntent(), cart)
	return placed.OrderID, err
}

// shopper measures a service on its store.
type shopper struct {
	*bench
	*confirmations
	service *instance
	store   counted
	source  *source
	name    string // of the store
}

// shop pays orders that the service has never seen; then it places orders, pays those, and asks for their payments again.
func (s *shopper) shop(ctx context.Context, conns int) error {
	pay := func(what string, orders *stock) error {
		return settled(ctx, s.store, func() (int, error) { return s.cell(ctx, what, conns, orders.confirm) })
	}
	var elsewhere, here stock
	if err := s.source.fill(ctx, &elsewhere, s.seconds); err != nil {
		return err
	}
	if err := pay(confirmElsewhere, &elsewhere); err != nil {
		return err
	}
	placed, err := s.cell(ctx, place, conns, here.place)
	if err != nil {
		return err
	}
	// A payment takes two commits and a placing one: as many again will do.
	if err := here.latest(ctx, s.service.shop, min(2*placed, remembered)); err != nil {
		return err
	}
	if err := pay(confirm, &here); err != nil {
		return err
	}
	return settled(ctx, s.store, func() (int, error) {
		_, err := s.cell(ctx, replay, conns, here.replay)
		return 0, err
	})
}

// cell measures one thing that clients do.
func (s *shopper) cell(
	ctx context.Context, what string, conns int, do func(context.Context, *client.Client) error,
) (int, error) {
	d, _ := s.store.(*database)
	if d != nil {
		if err := d.tidy(ctx); err != nil {
			return 0, err
		}
	}
	m := meters{services: []*instance{s.service}, database: d}
	measured, r, err := s.measure(ctx, m, func() (ran, error) {
		return load(conns, s.seconds, func() error { return do(ctx, s.service.shop) })
	})
	if err != nil {
		return 0, fmt.Errorf("%s on %s over %d connections: %w", what, s.name, conns, err)
	}
	s.results.add(cell{s.name, what, conns}, measured)
	return r.count, nil
}

func (b *bench) noop(ctx context.Context, c *confirmations, edge *instance, conns int) error {
	measured, _, err := b.measure(ctx, meters{services: []*instance{edge}}, func() (ran, error) {
		return load(conns, b.seconds, func() error { return ask(ctx, edge.shop) })
	})
	c.results.add(cell{"", httpNoop, conns}, measured)
	return err
}

// grinder measures what the database does alone, with the statements that the service sends.
type grinder struct {
	*bench
	*confirmations
	database *database
	source   *source
	rates    map[string]float64 // by cell, from the last round
}

// grind measures confirmations and their replays, each with a round trip per statement and pipelined.
func (g *grinder) grind(ctx context.Context, conns int) error {
	for _, way := range []struct {
		confirm, replay string
		pipelined       bool
	}{{pgbenchConfirm, pgbenchReplay, false}, {pgbenchConfirmPipelined, pgbenchReplayPipelined, true}} {
		name := fmt.Sprint(way.confirm, conns)
		if g.rates[name] == 0 { // a short run tells how many orders a cell will take
			r, _, err := g.pay(ctx, conns, 2*unsteady+400/conns, way.pipelined, nil)
			if err != nil {
				return err
			}
			g.rates[name] = r.rate
		}
		each := unsteady + max(5*unsteady, int(g.rates[name]*g.seconds.Seconds())/conns)
		m := meters{database: g.database}
		r, first, err := g.pay(ctx, conns, each, way.pipelined, func(run func() (ran, error)) (ran, error) {
			measured, r, err := g.measure(ctx, m, run)
			g.results.add(cell{onPostgres, way.confirm, conns}, measured)
			return r, err
		})
		if err != nil {
			return err
		}
		g.rates[name] = r.rate
		if err := g.database.tidy(ctx); err != nil {
			return err
		}
		next := fmt.Sprintf(":first + mod(:i * :clients + :client_id, %d)", r.count)
		measured, _, err := g.measure(ctx, m, func() (ran, error) {
			return g.pgbench.run(ctx, g.database, g.replay, g.replay.text(next, way.pipelined), conns,
				"-T", strconv.Itoa(max(1, int(g.seconds.Seconds()))), "-D", fmt.Sprint("first=", first))
		})
		if err != nil {
			return err
		}
		g.results.add(cell{onPostgres, way.replay, conns}, measured)
	}
	return nil
}

// pay has pgbench pay new orders, so many on each connection.
func (g *grinder) pay(
	ctx context.Context, conns, each int, pipelined bool, around func(run func() (ran, error)) (ran, error),
) (r ran, first int64, err error) {
	if first, err = g.source.insert(ctx, int64(conns*each)); err != nil {
		return r, first, err
	}
	if err := g.database.tidy(ctx); err != nil {
		return r, first, err
	}
	run := func() (ran, error) {
		return g.pgbench.run(ctx, g.database, g.confirm, g.confirm.text(":first + :i * :clients + :client_id", pipelined),
			conns, "-t", strconv.Itoa(each), "-D", fmt.Sprint("first=", first))
	}
	err = settled(ctx, g.database, func() (int, error) {
		var err error
		if around == nil {
			r, err = run()
		} else {
			r, err = around(run)
		}
		return r.count, err
	})
	return r, first, err
}
