// Package scenario reads scenarios aloud to a service: Gherkin in English and Japanese, one step library for both, run
// against a service that the runner has started itself or against any that is deployed. It speaks HTTP through the
// published client; what it may do to a service's inside comes from outside, as a port.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cucumber/godog"
	"github.com/google/uuid"
)

// Config is one run.
type Config struct {
	Against Against
	// Paths are files, or directories of them. None: the built-in features.
	Paths []string
	// Language has only the built-in features of that language run, and is what files are written in that do not say so
	// themselves. Empty: all, English.
	Language Language
	Tags     string // as Gherkin has it: "@crash && ~@slow"; empty: all
	Format   string // pretty, progress, junit or cucumber
	DryRun   bool   // the steps are looked up, not done
	Out      io.Writer
	// Told is where what is said about the run goes, apart from its report.
	Told io.Writer
}

// Formats are the reports.
var Formats = []string{"pretty", "progress", "junit", "cucumber"}

// ErrFailed is the end of a run in which a scenario failed.
var ErrFailed = errors.New("a scenario failed")

// errNothingRan is the end of a run that says nothing about the service.
var errNothingRan = errors.New("no scenario could be run here")

// Run runs the scenarios. Errors: ErrFailed; what is wrong with the files, or steps that nobody knows: then nothing has
// run.
func Run(ctx context.Context, c Config) error {
	read, err := c.read()
	if err != nil {
		return err
	}
	r := runner{config: c, phrases: phrases(), under: newTransport()}
	if err := r.knows(read); err != nil {
		fmt.Fprintln(c.Told, "0 scenarios ran.")
		return err
	}
	if c.DryRun {
		fmt.Fprintf(c.Told, "%d scenarios with %d steps could run.\n", read.scenarios(), read.steps())
		return nil
	}
	options := read.options
	report := &aloud{out: c.Out}
	options.Tags, options.Format, options.Output, options.Strict = c.Tags, c.Format, report, true
	options.DefaultContext, options.Concurrency, options.NoColors = ctx, 1, true
	status := godog.TestSuite{Name: "kakutei", ScenarioInitializer: r.begin, Options: &options}.Run()
	if err := report.Flush(); err != nil {
		return err
	}
	r.tally.tell(c.Told)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status != 0, r.tally.failed > 0:
		return ErrFailed
	case r.tally.notAtAll == r.tally.scenarios:
		return errNothingRan
	}
	return nil
}

// runner is one run under way.
type runner struct {
	config  Config
	phrases []phrase
	under   http.RoundTripper
	tally   tally
}

// newTransport is a transport whose connections are not kept: one that a crash has broken is nobody's.
func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.DisableKeepAlives, t.DisableCompression = true, true
	return t
}

// begin is called before each scenario.
func (r *runner) begin(s *godog.ScenarioContext) {
	w := &world{
		against: r.config.Against, under: r.under, run: strings.ReplaceAll(uuid.NewString(), "-", "")[:12],
		people: map[string]*person{},
	}
	var now *godog.Step
	s.StepContext().Before(func(ctx context.Context, step *godog.Step) (context.Context, error) {
		now = step
		return ctx, nil
	})
	s.StepContext().After(
		func(ctx context.Context, step *godog.Step, status godog.StepResultStatus, err error) (context.Context, error) {
			r.tally.step(status, step, err)
			return ctx, nil
		})
	s.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		r.tally.begin()
		return ctx, nil
	})
	s.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		r.tally.end(err)
		return ctx, w.leave(ctx)
	})
	for _, p := range r.phrases {
		s.Step(p.pattern, func(ctx context.Context) error {
			doc := ""
			if now.Argument != nil && now.Argument.DocString != nil {
				doc = now.Argument.DocString.Content
			}
			return w.explained(p.do(ctx, w, p.blanksOf(now.Text, doc)))
		})
	}
}

// leave takes away what the scenario has done to the service.
func (w *world) leave(ctx context.Context) error {
	if w.against.Inside == nil {
		return w.ended(ctx)
	}
	return errors.Join(w.against.Inside.Reset(), w.ended(ctx))
}

// explained makes a failing step's error show the last request and its answer, and a step that cannot be done here a
// skip.
func (w *world) explained(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotApplicable):
		return fmt.Errorf("%w (%w)", godog.ErrSkip, err)
	case w.last.method == "":
		return err
	default:
		return fmt.Errorf("%w\n\n%s", err, w.last)
	}
}
