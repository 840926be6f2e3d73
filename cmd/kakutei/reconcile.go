package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kakutei/application/bookkeeping"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// findings is the exit code of a comparison that has found something.
const findings exitCode = 2

// maxUnresolved is how many unresolved charges are listed; the rest is counted.
const maxUnresolved = 10_000

// reconciliation compares a provider's charges with the store's orders and with these books.
func (c *booksConfig) reconciliation(store port.UnitOfWork, p paymentProvider) oversight.Reconciliation {
	return oversight.Reconciliation{
		Work: store, Provider: p,
		Invoice: func(paid order.State) journal.SourceDocument { return bookkeeping.Invoice(c.company, c.zone, paid) },
	}
}

func reconcileCommand() command {
	var (
		store  storeConfig
		from   gatewayConfig
		books  booksConfig
		log    logConfig
		window time.Duration
		asJSON bool
	)
	return command{
		name: "reconcile",
		does: "compare the provider's charges with orders and entries, a line per finding; exit 2 if there is one",
		variables: slices.Concat(store.variables(), from.variables(), books.variables(), log.variables(), []variable{
			{
				name: "since", initial: "24h", option: true, set: into(&window, positive),
				means: "how far to go back (24h)",
			},
			toggle("json", &asJSON, "print JSON"),
		}),
		run: func(ctx context.Context, p program) error {
			if err := from.lasting(); err != nil {
				return err
			}
			return withStore(ctx, p, &store, &log, func(s opened) error {
				provider, err := from.provider(s.book)
				if err != nil {
					return err
				}
				say := newStatement(p.stdout, asJSON)
				tally, err := books.reconciliation(s, provider).Run(ctx, window, say.tell)
				if err != nil {
					return err
				}
				say.end()
				fmt.Fprintf(p.stderr, "compared %d charges and %d payments since %s: %d findings, %d unresolved\n",
					tally.Charges, tally.PaidOrders, tally.Since.Format(time.RFC3339), tally.Total(), tally.Unresolved)
				if tally.Total() > 0 {
					return findings
				}
				return nil
			})
		},
	}
}

// lasting refuses a book that a command of its own would find empty.
func (c *gatewayConfig) lasting() error {
	if c.url == simulator && c.book == inMemory {
		return errors.New("KAKUTEI_SIMULATOR_BOOK: a book in memory: belongs to the process that serves it, " +
			"no other command can reach it")
	}
	return nil
}

// statement writes findings as they come and, when all have come, what is unresolved: a line each.
type statement struct {
	out        io.Writer
	asJSON     bool
	begun      bool // a finding was written
	unresolved []oversight.Finding
}

func newStatement(out io.Writer, asJSON bool) *statement {
	s := &statement{out: out, asJSON: asJSON}
	if asJSON {
		fmt.Fprint(out, `{"findings":[`)
	}
	return s
}

func (s *statement) tell(f oversight.Finding) error {
	if f.Kind != oversight.Unresolved {
		return s.line(f)
	}
	if len(s.unresolved) < maxUnresolved {
		s.unresolved = append(s.unresolved, f)
	}
	return nil
}

func (s *statement) line(f oversight.Finding) error {
	if !s.asJSON {
		charge := ""
		if f.ChargeID != "" {
			charge = " charge " + f.ChargeID
		}
		_, err := fmt.Fprintf(s.out, "%s order %s%s: %s\n", f.Kind, f.OrderID, charge, f.Detail)
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	separator := ","
	if !s.begun {
		separator = ""
	}
	s.begun = true
	_, err = fmt.Fprintf(s.out, "%s\n%s", separator, text)
	return err
}

// end lists apart what is unresolved.
func (s *statement) end() {
	if s.asJSON {
		fmt.Fprint(s.out, "\n],\"unresolved\":[")
		s.begun = false
	}
	for _, f := range s.unresolved {
		_ = s.line(f) // there is nobody else to tell
	}
	if s.asJSON {
		fmt.Fprint(s.out, "\n]}\n")
	}
}
