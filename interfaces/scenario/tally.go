package scenario

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v34"
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
	skipped bool
	acted   bool // something was demanded of it before it was skipped
}

func (t *tally) begin() {
	t.scenarios++
	t.now = new(current)
}

// step counts one that has ended.
func (t *tally) step(status godog.StepResultStatus, s *godog.Step, err error) {
	if status == godog.StepSkipped {
		if errors.Is(err, ErrNotApplicable) {
			t.now.skipped = true
			t.because(err)
		}
		if t.now.skipped {
			t.skipped++
		}
		return
	}
	t.steps++
	t.now.acted = t.now.acted || s.Type == messages.PickleStepType_OUTCOME
}

// because counts why a step could not be done.
func (t *tally) because(err error) {
	if t.reasons == nil {
		t.reasons = map[string]int{}
	}
	var n notApplicable
	if errors.As(err, &n) {
		t.reasons[n.why]++
	}
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
