package main

import (
	"context"
	"errors"

	"kakutei/interfaces/client"
)

// record has the service pay orders over a recorder, and makes pgbench's scripts of what it has sent. With one connection
// there is one order of what is sent, and with nothing that comes by from time to time nothing else.
func (b *bench) record(ctx context.Context) (confirm, replay script, err error) {
	d, err := b.postgres.database(ctx, "recorded")
	if err != nil {
		return confirm, replay, err
	}
	wire, through, err := newRecorder(d.url)
	if err != nil {
		return confirm, replay, err
	}
	i, err := b.serve(ctx, through, "KAKUTEI_DB_POOL=1", "KAKUTEI_RECOVERY_INTERVAL=0")
	if err != nil {
		return confirm, replay, err
	}
	defer func() { err = errors.Join(err, i.stop(), b.postgres.drop(ctx, d)); wire.close() }()
	var first, again []recording
	for range settledAfter + 2 {
		placed, err := i.shop.PlaceOrder(ctx, client.NewIntent(), cart)
		if err != nil {
			return confirm, replay, err
		}
		of := recording{order: placed.OrderID, key: string(client.NewIntent())}
		pay := func() error {
			_, err := i.shop.ConfirmPayment(ctx, client.Intent(of.key), of.order, money)
			return err
		}
		for _, all := range []*[]recording{&first, &again} {
			if of.exchanges, err = wire.during(pay, len(*all) >= settledAfter); err != nil {
				return confirm, replay, err
			}
			*all = append(*all, of)
		}
	}
	if confirm, err = d.script(ctx, first[settledAfter:]); err != nil {
		return confirm, replay, err
	}
	replay, err = d.script(ctx, again[settledAfter:])
	return confirm, replay, err
}

// settledAfter is how many payments a connection needs until it has prepared all that it sends.
const settledAfter = 3

// script makes one of two recordings on this database. The types of their arguments may be the schema's own (domains): then
// the type that such a one is made of counts.
func (d *database) script(ctx context.Context, two []recording) (script, error) {
	for _, r := range two {
		for _, e := range r.exchanges {
			for _, statement := range e {
				for i := range statement.args {
					a := &statement.args[i]
					base, err := d.number(ctx, `SELECT CAST(CASE typtype WHEN 'd' THEN typbasetype ELSE oid END AS bigint)
						FROM pg_type WHERE oid = $1`, a.typ)
					if err != nil {
						return script{}, err
					}
					a.typ = uint32(base) //nolint:gosec // as PostgreSQL numbers types
				}
			}
		}
	}
	return scriptOf(two[0], two[1])
}
