// Command kakutei-bench measures the service beside what the database and the edge alone would do, on a PostgreSQL server
// of its own. docs/performance.md says what is measured and how to read it; `make bench` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kakutei-bench:", err)
		os.Exit(1)
	}
}

// run measures; or is the no-op, as "noop"; or reads benchmarks and writes their table into a document, as "allocs".
func run(
	ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) error {
	switch {
	case len(args) == 1 && args[0] == "noop":
		return serveNoop(ctx, env("KAKUTEI_LISTEN"), stderr)
	case len(args) == 2 && args[0] == "allocs":
		return tabulate(args[1], stdin, stdout)
	case len(args) > 0:
		return fmt.Errorf("%q is not known: settings are variables (docs/performance.md)", args)
	}
	s, err := settingsOf(env)
	if err != nil {
		return err
	}
	for _, part := range s.parts {
		if err := measured(ctx, s, part, stdout, stderr); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

// parts are what can be measured. The second result is a picture, if there is one.
var parts = map[string]func(*bench, context.Context, settings) (section, string, error){
	"confirm": func(b *bench, ctx context.Context, s settings) (section, string, error) {
		c, err := b.confirmations(ctx)
		if err != nil {
			return section{}, "", err
		}
		of := b.section(s)
		of.Tables, of.Figures = c.tables(), c.figures()
		return of, c.chart(), nil
	},
	"growth": func(b *bench, ctx context.Context, s settings) (section, string, error) {
		g, err := b.growth(ctx, s.orders, s.records)
		of := b.section(s)
		of.Tables, of.Figures = g.tables(), map[string]any{"confirms": g.confirms, "replays": g.replays}
		return of, "", err
	},
	"storms": func(b *bench, ctx context.Context, s settings) (section, string, error) {
		all, err := b.storms(ctx)
		of := b.section(s)
		of.Tables = all.tables()
		return of, "", err
	},
	"scaleout": func(b *bench, ctx context.Context, s settings) (section, string, error) {
		all, err := b.scaling(ctx)
		of := b.section(s)
		of.Tables, of.Figures = all.tables(), map[string]any{"confirms": all.confirms, "replays": all.replays}
		return of, "", err
	},
}

// measured has a part measured on a server of its own, prints what came of it and puts it into the documents.
func measured(ctx context.Context, s settings, part string, stdout, stderr io.Writer) (err error) {
	begun := time.Now()
	b, err := open(ctx, s, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	version, err := b.postgres.version(ctx)
	if err != nil {
		return err
	}
	s.machine += ", PostgreSQL " + version + " with " + b.postgres.pages()
	of, drawn, err := parts[part](b, ctx, s)
	if err != nil {
		return err
	}
	of.markdown(stdout)
	b.tell("%s took %s", part, time.Since(begun).Round(time.Second))
	if drawn != "" {
		if err := os.WriteFile(filepath.Join(s.docs, picture), []byte(drawn), 0o644); err != nil {
			return err
		}
	}
	return publish(s.docs, part, of)
}

// tabulate writes the table of benchmarks that have run into the directory's page.
func tabulate(docs string, in io.Reader, stdout io.Writer) error {
	t, err := allocations(in)
	if err != nil {
		return err
	}
	of := section{
		At: time.Now().Format(time.DateOnly), Commit: commit(), Machine: machine(), Length: "Times are of a busy machine, bytes and allocations of any",
		Tables: []table{t},
	}
	of.markdown(stdout)
	return publish(docs, "allocs", of)
}
