package main

import (
	"context"
	"errors"
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
			if err := store.lasting(); err != nil {
				return err
			}
			s, err := store.open(ctx, log.logger(p.stderr), p.patience)
			if err != nil {
				return err
			}
			n, err := idempotent.Sweep(ctx, s)
			if err := errors.Join(err, s.Close()); err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, n)
			return nil
		},
	}
}
