package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

func helpCommand() command {
	return command{
		name: "help",
		does: "explain the commands and the settings",
		run: func(_ context.Context, p program) error {
			printHelp(p.stdout, commands())
			return nil
		},
	}
}

// printHelp writes a line per command, which begins with its name, and a line per variable.
func printHelp(out io.Writer, all []command) {
	fmt.Fprint(out, "Kakutei confirms the payment of a shop's orders at most once per Idempotency-Key.\n\n"+
		"Usage: kakutei COMMAND [FLAGS]\n\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%s\n", c.name, c.does)
		for _, v := range c.variables {
			if v.option {
				fmt.Fprintf(table, "  --%s\t%s\n", v.flag(), v.means)
			}
		}
	}
	_ = table.Flush()

	fmt.Fprint(out, "\nSettings come from the environment; an empty value is the default. Flags override them: "+
		"--database-url\nis KAKUTEI_DATABASE_URL. Secrets have no flags. "+
		"Durations are written like 500ms, 10s or 24h.\n\n")
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "VARIABLE\tDEFAULT\tMEANING\n")
	explained := map[string]bool{}
	for _, c := range all {
		for _, v := range c.variables {
			if !v.option && !explained[v.name] {
				explained[v.name] = true
				fmt.Fprintf(table, "%s\t%s\t%s\n", v.name, initialText(v), v.means+note(v))
			}
		}
	}
	_ = table.Flush()
}

func initialText(v variable) string {
	if v.initial == "" {
		return "(empty)"
	}
	return v.initial
}

func note(v variable) string {
	if !v.flagged() {
		return " (no flag)"
	}
	return ""
}
