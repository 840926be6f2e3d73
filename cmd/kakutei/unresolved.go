package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"text/tabwriter"

	"kakutei/application/checkout"
	"kakutei/application/oversight"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/interfaces/httpapi"
)

// scopeConfig names a record on the command line.
type scopeConfig struct{ operation, actor, key, by string }

func (c *scopeConfig) variables() []variable {
	return []variable{
		option("operation", &c.operation, "the record's operation: ConfirmPayment"),
		option("actor", &c.actor, "the record's actor"),
		option("key", &c.key, "the record's idempotency key"),
		option("by", &c.by, "who says so, for the audit log; default: the system's user"),
	}
}

func (c *scopeConfig) scope() (idempotency.Scope, error) {
	switch "" {
	case c.operation:
		return idempotency.Scope{}, errors.New("--operation is required")
	case c.actor:
		return idempotency.Scope{}, errors.New("--actor is required")
	case c.key:
		return idempotency.Scope{}, errors.New("--key is required")
	}
	return idempotency.Scope{
		Operation: idempotency.Operation(c.operation), Actor: c.actor, Key: idempotency.Key(c.key),
	}, nil
}

// operator is who the audit log names.
func (c *scopeConfig) operator() string {
	if u, err := user.Current(); c.by == "" && err == nil {
		return u.Username
	}
	return cmp.Or(c.by, "unknown")
}

func stuckCommand() command {
	var (
		store  storeConfig
		log    logConfig
		asJSON bool
	)
	return command{
		name:      "stuck",
		does:      "list the records in progress whose lease is over, oldest first (--json: as the route answers)",
		variables: append(append(store.variables(), log.variables()...), toggle("json", &asJSON, "print JSON")),
		run: func(ctx context.Context, p program) error {
			return withStore(ctx, p, &store, &log, func(s opened) error {
				list, err := (&oversight.Desk{Work: s}).Unresolved(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return printAnswer(p, list)
				}
				return printUnresolved(p, list)
			})
		},
	}
}

func printUnresolved(p program, list oversight.UnresolvedList) error {
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATION\tACTOR\tKEY\tEXECUTIONS\tCREATED\tLEASE EXPIRED\tORDER")
	for _, r := range list.Records {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.Operation, r.Actor, r.IdempotencyKey, r.Executions,
			r.CreatedAt.Format("2006-01-02T15:04:05Z"), r.LeaseExpiredAt.Format("2006-01-02T15:04:05Z"), r.OrderID)
	}
	return table.Flush()
}

func releaseCommand() command {
	var (
		store storeConfig
		log   logConfig
		named scopeConfig
	)
	return command{
		name:      "release",
		does:      "fence off whoever holds an unresolved record; the recovery tries it at its next round",
		variables: append(append(store.variables(), log.variables()...), named.variables()...),
		run: func(ctx context.Context, p program) error {
			scope, err := named.scope()
			if err != nil {
				return err
			}
			return withStore(ctx, p, &store, &log, func(s opened) error {
				view, err := (&oversight.Desk{Work: s}).Release(ctx, scope, named.operator())
				if err != nil {
					return err
				}
				return printAnswer(p, view)
			})
		},
	}
}

func resolveCommand() command {
	var (
		serve                   serveConfig
		named                   scopeConfig
		outcome, chargeID, note string
	)
	variables := append(serve.variables(), named.variables()...)
	variables = append(variables,
		option("outcome", &outcome, "what was found out at the provider: charged or not_charged"),
		option("charge-id", &chargeID, "the provider's id of the charge, with charged"),
		option("note", &note, "how it was found out"),
	)
	return command{
		name:      "resolve",
		does:      "take what a person found out at the provider as the provider's answer",
		variables: variables,
		run: func(ctx context.Context, p program) error {
			scope, err := named.scope()
			if err != nil {
				return err
			}
			said, err := httpapi.NewResolution(scope, outcome, chargeID, note)
			if err != nil {
				return asOptions(err)
			}
			said.By = named.operator()
			if err := errors.Join(serve.check(), serve.gateway.lasting()); err != nil {
				return err
			}
			return withStore(ctx, p, &serve.store, &serve.log, func(s opened) error {
				inner, err := serve.parts(s, unseen(), serve.log.logger(p.stderr))
				if err != nil {
					return err
				}
				view, err := inner.resolve(ctx, said)
				if err != nil {
					return asOptions(err)
				}
				return printAnswer(p, view)
			})
		},
	}
}

// printAnswer prints what the route would answer, byte for byte, as a line.
func printAnswer(p program, view any) error {
	document, err := httpapi.Documents{}.Result(view)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s\n", document)
	return nil
}

// asOptions names what is wrong with an operator's word as the command line does.
func asOptions(err error) error {
	options := map[string]string{"outcome": "--outcome", "chargeId": "--charge-id", "note": "--note"}
	f, isFault := fault.From(err)
	if !isFault || len(f.Violations()) == 0 {
		return err
	}
	var all []string
	for _, v := range f.Violations() {
		all = append(all, options[v.Field]+" "+v.Detail)
	}
	return errors.New(strings.Join(all, "; "))
}

// resolve has what it meets on its way audited before it returns.
func (p parts) resolve(ctx context.Context, said checkout.Resolution) (checkout.OutcomeView, error) {
	view, err := p.till.Resolve(ctx, said)
	over, end := context.WithCancel(ctx)
	end()
	p.auditing.Run(over) // it writes what waits, and returns
	return view, err
}
