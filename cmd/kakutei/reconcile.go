package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"kakutei/application/bookkeeping"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/order"
)

// findings is the exit code of a comparison that has found something.
const findings exitCode = 2

// maxApart is how many unresolved charges, and unreadable rows, are listed; the rest is counted.
const maxApart = 10_000

// reconciliation compares a provider's charges with the store's orders and with these books.
func (c *booksConfig) reconciliation(store port.UnitOfWork, p paymentProvider, name string) oversight.Reconciliation {
	return oversight.Reconciliation{
		Work: store, Provider: p, Name: name,
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
				tally, err := books.reconciliation(s, provider, from.name()).Run(ctx, window, say.tell)
				if err != nil {
					say.end(err)
					return err
				}
				err = incomplete(tally, from.name())
				say.end(err)
				fmt.Fprintf(p.stderr, "compared %d charges and %d payments since %s: %d findings, %d unresolved\n",
					tally.Charges, tally.PaidOrders, tally.Since.Format(time.RFC3339), tally.Total(), tally.Unresolved)
				if err == nil && tally.Total() > 0 {
					return findings
				}
				return err
			})
		},
	}
}

// incomplete says what a comparison has left out, so that nobody takes the rest for a clean bill; nil when nothing.
func incomplete(t oversight.Tally, name string) error {
	var left []string
	for _, other := range slices.Sorted(maps.Keys(t.Elsewhere)) {
		left = append(left, fmt.Sprintf("%d payments were asked of %s, and KAKUTEI_GATEWAY is %s", t.Elsewhere[other], other, name))
	}
	if t.Unreadable > 0 {
		left = append(left, fmt.Sprintf("%d rows cannot be read", t.Unreadable))
	}
	if left == nil {
		return nil
	}
	return errors.New("not everything could be compared: " + strings.Join(left, "; "))
}

// lasting refuses a book that a command of its own would find empty.
func (c *gatewayConfig) lasting() error {
	if c.url == simulator && c.book == inMemory {
		return errors.New("KAKUTEI_SIMULATOR_BOOK: a book in memory: belongs to the process that serves it, " +
			"no other command can reach it")
	}
	return nil
}

// statement writes findings as they come and, when all have come, what is unresolved and what is unreadable: a line each.
// As JSON it is one document, whatever happens on the way.
type statement struct {
	out    io.Writer
	asJSON bool
	begun  bool // a line of the list was written
	apart  map[oversight.FindingKind][]oversight.Finding
}

func newStatement(out io.Writer, asJSON bool) *statement {
	s := &statement{out: out, asJSON: asJSON, apart: map[oversight.FindingKind][]oversight.Finding{}}
	if asJSON {
		fmt.Fprint(out, `{"findings":[`)
	}
	return s
}

func (s *statement) tell(f oversight.Finding) error {
	if f.Kind != oversight.Unresolved && f.Kind != oversight.Unreadable {
		return s.line(f)
	}
	if len(s.apart[f.Kind]) < maxApart {
		s.apart[f.Kind] = append(s.apart[f.Kind], f)
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

// end lists apart what is no finding, and says why the comparison is not whole if it is not.
func (s *statement) end(incomplete error) {
	s.list("unresolved", oversight.Unresolved)
	if incomplete != nil || len(s.apart[oversight.Unreadable]) > 0 {
		s.list("unreadable", oversight.Unreadable)
	}
	if !s.asJSON {
		return
	}
	fmt.Fprint(s.out, "\n]")
	if incomplete != nil {
		text, _ := json.Marshal(oneLine(incomplete)) // a text can always be written
		fmt.Fprintf(s.out, `,"error":%s`, text)
	}
	fmt.Fprint(s.out, "}\n")
}

func (s *statement) list(name string, kind oversight.FindingKind) {
	if s.asJSON {
		fmt.Fprintf(s.out, "\n],%q:[", name)
		s.begun = false
	}
	for _, f := range s.apart[kind] {
		_ = s.line(f) // there is nobody else to tell
	}
}
