package scenario

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cucumber/godog"
)

// tally counts what became of a run.
type tally struct {
	scenarios, failed int
	partly, notAtAll  int            // passed as far as could be seen; could not be done here
	steps, skipped    int            // steps that were done; those that are not applicable
	reasons           map[string]int // of what is not applicable, with the number of steps

	now *current
}

// current is the scenario that runs.
type current struct {
	scenario *godog.Scenario
	passed   int // steps
	skipped  bool
	acted    bool // it was skipped after something was demanded of it
}

func (t *tally) begin(s *godog.Scenario) {
	t.scenarios++
	t.now = &current{scenario: s}
}

// step counts one that has ended.
func (t *tally) step(status godog.StepResultStatus, s *godog.Step, err error) {
	switch status {
	case godog.StepPassed:
		t.steps++
		t.now.passed++
		t.now.acted = t.now.acted || s.Type == "Outcome"
	case godog.StepSkipped:
		if errors.Is(err, ErrNotApplicable) {
			t.now.skipped = true
			t.because(err)
		}
		if t.now.skipped {
			t.skipped++
		}
	default:
		t.steps++
	}
}

// because counts why a step could not be done.
func (t *tally) because(err error) {
	if t.reasons == nil {
		t.reasons = map[string]int{}
	}
	reason := "of the service"
	var n notApplicable
	if errors.As(err, &n) {
		reason = n.why
	}
	t.reasons[reason]++
}

func (t *tally) end(err error) {
	switch {
	case err != nil && !errors.Is(err, godog.ErrSkip):
		t.failed++
	case t.now.skipped && t.now.acted:
		t.partly++
	case t.now.skipped:
		t.notAtAll++
	}
}

// tell says how many ran and what could not be done.
func (t *tally) tell(out io.Writer) {
	ran := t.scenarios - t.notAtAll
	fmt.Fprintf(out, "%d scenarios ran: %d passed, %d failed; %d steps.\n", ran, ran-t.failed, t.failed, t.steps)
	if t.skipped == 0 {
		return
	}
	fmt.Fprintf(out, "Not applicable here: %d scenarios, and the end of %d that passed as far as it can be seen from outside; "+
		"%d steps in all.\n", t.notAtAll, t.partly, t.skipped)
	for _, reason := range slices.Sorted(maps.Keys(t.reasons)) {
		fmt.Fprintf(out, "  %d ended because %s\n", t.reasons[reason], reason)
	}
}
