package main

import (
	"context"
	"fmt"
)

func migrateCommand() command {
	var (
		store storeConfig
		log   logConfig
	)
	return command{
		name:      "migrate",
		does:      "bring the store's schema up to date and exit",
		variables: append(store.variables(), log.variables()...),
		run: func(ctx context.Context, p program) error {
			if err := store.lasting(); err != nil {
				return err
			}
			s, err := store.open(ctx, log.logger(p.stderr), p.patience)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "the schema is up to date: %s\n", store.name())
			return s.Close()
		},
	}
}
