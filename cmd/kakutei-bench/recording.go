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
	for range 5 {
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
	if confirm, err = scriptOf(first[3], first[4]); err != nil {
		return confirm, replay, err
	}
	replay, err = scriptOf(again[3], again[4])
	return confirm, replay, err
}

// settledAfter is how many payments a connection needs until it has prepared all that it sends.
const settledAfter = 3
