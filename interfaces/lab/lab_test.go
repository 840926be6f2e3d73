package lab_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/interfaces/lab"
	"kakutei/interfaces/lab/world"
)

func inMemory(clock func() time.Time) port.UnitOfWork { return memory.New(clock) }

func stormOf(t *testing.T, name string) lab.Storm {
	t.Helper()
	for _, s := range lab.Storms {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "there is no storm "+name)
	return lab.Storm{}
}

func TestEachDesignFailsAsItIsDescribed(t *testing.T) {
	twice, refused := lab.ChargedTwice, lab.ChargedAndNo
	want := map[string]struct {
		charges int
		faults  []lab.Fault
	}{
		"nokey":          {2, []lab.Fault{twice}},
		"lookup":         {2, []lab.Fault{twice}},
		"nofingerprint":  {1, []lab.Fault{lab.PaidForNothing}},
		"noactor":        {1, []lab.Fault{lab.StrangerAllowed}},
		"apart":          {2, []lab.Fault{twice}},
		"nofence":        {2, []lab.Fault{twice}},
		"newgatewaykey":  {2, []lab.Fault{twice}},
		"onlyrecord":     {2, []lab.Fault{twice}},
		"onlyaggregate":  {2, []lab.Fault{twice, refused}},
		"onlyconstraint": {2, []lab.Fault{twice, refused}},
	}
	require.Len(t, lab.Designs, len(want))
	for _, d := range lab.Designs {
		run := d.Run(stormOf(t, d.Storm))
		assert.Equal(t, want[d.Name].charges, run.Charges, d.Name)
		assert.Equal(t, want[d.Name].faults, run.Faults, d.Name)
	}
}

func TestKakuteiStaysAtOneChargeInEachStorm(t *testing.T) {
	for name, open := range map[string]func(clock func() time.Time) port.UnitOfWork{
		"writes sent at once": inMemory,
		"writes deferred":     func(clock func() time.Time) port.UnitOfWork { return memory.NewDeferring(memory.New(clock)) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range lab.Storms {
				run, err := lab.New(open).Kakutei(s)
				require.NoError(t, err)
				assert.Equal(t, 1, run.Charges, s.Name)
				assert.Empty(t, run.Faults, s.Name)
			}
		})
	}
}

func TestAStormIsTheSameEachTime(t *testing.T) {
	l := lab.New(inMemory)
	for _, s := range lab.Storms {
		kakuteis, err := l.Kakutei(s)
		require.NoError(t, err)
		for range 5 {
			again, err := l.Kakutei(s)
			require.NoError(t, err)
			require.Equal(t, kakuteis, again)
			for _, d := range lab.Designs {
				first := d.Run(s)
				require.Equal(t, first, d.Run(s))
			}
		}
	}
}

// Who holds a key when its first holder comes back late: the late one finds its lease lost, and gives the winner's answer.
func TestTheLateHolderIsFencedOffAndAnswersFromTheRecord(t *testing.T) {
	run, err := lab.New(inMemory).Kakutei(stormOf(t, "slow_holder"))
	require.NoError(t, err)
	var answers []string
	fenced := false
	for _, e := range run.Timeline {
		if e.What == world.Answered {
			answers = append(answers, e.Detail)
		}
		fenced = fenced || e.Process == "A" && e.What == "kakutei_lease_lost"
	}
	assert.True(t, fenced)
	require.Len(t, answers, 2)
	assert.Equal(t, answers[0], answers[1])
}

// What a dead process still tries has no effect: its lease is not ended, it runs out.
func TestAProcessThatDiesLeavesItsLease(t *testing.T) {
	run, err := lab.New(inMemory).Kakutei(stormOf(t, "crash_after_charge"))
	require.NoError(t, err)
	telling := []world.Step{"kakutei_in_progress", world.TimePasses, "kakutei_takeover", world.Repeats}
	died := slices.IndexFunc(run.Timeline, func(e world.Event) bool { return e.What == world.Died })
	require.Positive(t, died)
	var after []world.Step
	for _, e := range run.Timeline[died:] {
		if slices.Contains(telling, e.What) {
			after = append(after, e.What)
		}
	}
	assert.Equal(t, telling, after)
}

func TestTheDocumentShowsWhatTheStormsComeTo(t *testing.T) {
	document, err := os.ReadFile("../../docs/lab.md")
	require.NoError(t, err)
	for _, table := range []string{stormTable(t), placeTable()} {
		assert.Contains(t, string(document), table)
	}
}

// stormTable is design by storm: the charges, with a mark where something is wrong.
func stormTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| design |")
	for _, s := range lab.Storms {
		fmt.Fprintf(&b, " %s |", s.Name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(lab.Storms)))
	line := func(name, home string, run func(s lab.Storm) lab.Run) {
		fmt.Fprintf(&b, "\n| %s |", name)
		for _, s := range lab.Storms {
			r := run(s)
			cell := fmt.Sprint(r.Charges)
			if len(r.Faults) > 0 {
				cell += " ✗"
			}
			if s.Name == home {
				cell = "**" + cell + "**"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
	}
	for _, d := range lab.Designs {
		line(fmt.Sprintf("[%s](../interfaces/lab/%s/%s.go)", d.Name, d.Name, d.Name), d.Storm, d.Run)
	}
	line("Kakutei", "", func(s lab.Storm) lab.Run {
		run, err := lab.New(inMemory).Kakutei(s)
		require.NoError(t, err)
		return run
	})
	return b.String() + "\n"
}

// placeTable is place by situation, with what it costs.
func placeTable() string {
	var b strings.Builder
	b.WriteString("| place |")
	for _, s := range lab.Situations {
		fmt.Fprintf(&b, " %s |", s.Name)
	}
	b.WriteString(" ten_thousand_keys | bytes of the order | rows beside it | rows after the sweep | lines of code |")
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(lab.Situations)+5))
	mark := map[bool]string{true: "held", false: "✗"}
	for i, p := range lab.Places {
		fmt.Fprintf(&b, "\n| [%s](../interfaces/lab/%s/%s.go) |", p.Name, p.Name, p.Name)
		for _, s := range lab.Situations {
			fmt.Fprintf(&b, " %s |", mark[p.Run(s).Held])
		}
		g := lab.Grown()[i]
		fmt.Fprintf(&b, " %s | %d → %d | %d | %d | %d |", mark[g.Held()],
			g.Before.OrderBytes, g.After.OrderBytes, g.After.Rows, g.Swept.Rows, p.Source().LinesOfCode())
	}
	return b.String() + "\n"
}

func TestWhatEachPlaceForAKeyHoldsIn(t *testing.T) {
	want := map[string][]bool{
		"inorder":   {true, true, false, false},
		"inattempt": {true, true, true, false},
		"ownstore":  {true, true, true, true},
	}
	for _, p := range lab.Places {
		var held []bool
		for _, s := range lab.Situations {
			run := p.Run(s)
			held = append(held, run.Held)
			assert.LessOrEqual(t, run.Charges, 1, "%s, %s", p.Name, s.Name)
		}
		assert.Equal(t, want[p.Name], held, p.Name)
	}
}

// One charge in each storm, whatever the place answers: all three name the charge by order and attempt.
func TestNoPlaceChargesTwice(t *testing.T) {
	for _, p := range lab.Places {
		for _, s := range lab.Storms {
			assert.NotContains(t, p.Storm(s).Faults, lab.ChargedTwice, "%s, %s", p.Name, s.Name)
		}
	}
}

func TestADesignIsShortAndShowsItsWrongLines(t *testing.T) {
	for _, d := range lab.Designs {
		source, wrong := d.Source(), 0
		assert.Less(t, len(source), 80, d.Name)
		assert.Equal(t, "package "+d.Name, packageLine(source))
		for _, line := range source {
			if line.Wrong {
				wrong++
			}
		}
		assert.NotZero(t, wrong, d.Name)
	}
}

func TestAPlaceHasNoLineThatIsMarkedAsWrong(t *testing.T) {
	for _, p := range lab.Places {
		for _, line := range p.Source() {
			assert.False(t, line.Wrong, "%s:%d", p.Name, line.Number)
		}
	}
}

func packageLine(source lab.Source) string {
	for _, line := range source {
		if strings.HasPrefix(line.Text, "package ") {
			return line.Text
		}
	}
	return ""
}

func TestEachDesignNamesAPublicReportOfItsFault(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range lab.Designs {
		assert.Regexp(t, `^https://github\.com/[^/]+/[^/]+/(issues|pull)/\d+$`, d.Report, d.Name)
		assert.NotEmpty(t, d.Where, d.Name)
		assert.False(t, seen[d.Report], "%s is another design's", d.Report)
		seen[d.Report] = true
	}
}
