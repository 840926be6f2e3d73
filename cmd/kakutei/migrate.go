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
			return withStore(ctx, p, &store, &log, func(opened) error {
				fmt.Fprintf(p.stdout, "the schema is up to date: %s\n", store.name())
				return nil
			})
		},
	}
}
