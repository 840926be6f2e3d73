package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
)

// scaling is what the part "scaleout" has found out: confirmations and replays by the number of instances.
type scaling struct {
	confirms, replays map[int][]sample // by round
}

// instances are how many of them share a PostgreSQL.
var instances = []int{1, 2, 4}

// scaling measures several instances on one server, the clients spread over them.
func (b *bench) scaling(ctx context.Context) (all scaling, err error) {
	all = scaling{confirms: map[int][]sample{}, replays: map[int][]sample{}}
	for round := range b.rounds {
		for i := range instances {
			n := instances[(i+round)%len(instances)]
			if err := b.scaled(ctx, &all, n, round); err != nil {
				return all, fmt.Errorf("%d instances, round %d: %w", n, round+1, err)
			}
		}
		b.tell("round %d of %d measured", round+1, b.rounds)
	}
	return all, nil
}

func (b *bench) scaled(ctx context.Context, all *scaling, n, round int) (err error) {
	s, err := b.branch(ctx, "scaled"+strconv.Itoa(n)+"_"+strconv.Itoa(round))
	if err != nil {
		return err
	}
	services := []*instance{s.service}
	for len(services) < n {
		i, err := b.serve(ctx, s.database.url)
		if err != nil {
			return err
		}
		services = append(services, i)
		if _, err := warm(ctx, i); err != nil {
			return err
		}
	}
	orders, err := s.stock(ctx, b.seconds)
	if err != nil {
		return err
	}
	var turn atomic.Int64
	next := func() *instance { return services[int(turn.Add(1))%n] }
	m := meters{services: services, database: s.database}
	err = settled(ctx, s.database, func() (int, error) {
		measured, r, err := b.measure(ctx, m, func() (ran, error) {
			return load(busiest, b.seconds, func() error { return orders.confirm(ctx, next().shop) })
		})
		all.confirms[n] = append(all.confirms[n], measured)
		return r.count, err
	})
	if err != nil {
		return err
	}
	if err := s.database.tidy(ctx); err != nil {
		return err
	}
	measured, _, err := b.measure(ctx, m, func() (ran, error) {
		return load(busiest, b.seconds, func() error { return orders.replay(ctx, next().shop) })
	})
	all.replays[n] = append(all.replays[n], measured)
	for _, i := range services[1:] {
		err = errors.Join(err, i.stop())
	}
	return errors.Join(err, s.close(ctx))
}
