package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"text/tabwriter"
)

// Count is how many results have a verdict; failures of extensions are counted apart.
func Count(results []Result) (passed, failed, missed, notApplicable int) {
	for _, r := range results {
		switch {
		case r.Verdict == Passed:
			passed++
		case r.Verdict == NotApplicable:
			notApplicable++
		case r.Fails():
			failed++
		default:
			missed++
		}
	}
	return passed, failed, missed, notApplicable
}

// WriteTable writes a line per check, and below it why those failed that did.
func WriteTable(out io.Writer, name string, results []Result) error {
	fmt.Fprintf(out, "%s, against draft-ietf-httpapi-idempotency-key-header-07\n\n", name)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "CHECK\tLEVEL\tSECTION\tVERDICT\tDEMAND\n")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Level, r.Section, r.Verdict, r.Asks)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, r := range results {
		if r.Detail != "" {
			fmt.Fprintf(out, "%s, %s: %s\n", r.ID, r.Verdict, r.Detail)
		}
	}
	passed, failed, missed, notApplicable := Count(results)
	_, err := fmt.Fprintf(out, "\n%d checks: %d passed, %d failed, %d extensions missing, %d not applicable.\n",
		len(results), passed, failed, missed, notApplicable)
	return err
}

// The report as test runners have it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr"`
		Failure *junitNote `xml:"failure,omitempty"`
		Skipped *junitNote `xml:"skipped,omitempty"`
	}
	junitNote struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the results as JUnit XML. A missing extension is skipped there, not failed.
func WriteJUnit(out io.Writer, name string, results []Result) error {
	_, failed, missed, notApplicable := Count(results)
	suite := junitSuite{Name: name, Tests: len(results), Failures: failed, Skipped: missed + notApplicable}
	for _, r := range results {
		c := junitCase{Name: r.ID + ": " + r.Asks, Class: fmt.Sprintf("draft-07.%s §%s", r.Level, r.Section)}
		note := &junitNote{Message: r.Asks, Text: r.Detail}
		switch {
		case r.Fails():
			c.Failure = note
		case r.Verdict != Passed:
			c.Skipped = note
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
