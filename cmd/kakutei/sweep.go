package main

import (
	"context"
	"fmt"

	"kakutei/application/idempotent"
)

func sweepCommand() command {
	var (
		store storeConfig
		log   logConfig
	)
	return command{
		name:      "sweep",
		does:      "delete finished, expired records once, print how many, and exit",
		variables: append(store.variables(), log.variables()...),
		run: func(ctx context.Context, p program) error {
			return withStore(ctx, p, &store, &log, func(s opened) error {
				n, err := idempotent.Sweep(ctx, s, s.pace())
				if err == nil {
					fmt.Fprintln(p.stdout, n)
				}
				return err
			})
		},
	}
}
