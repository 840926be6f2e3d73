package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// rules are docs/operations/alerts.yml.
type rules struct {
	Groups []struct {
		Rules []struct {
			Record, Alert, Expr string
			Labels, Annotations map[string]string
		}
	}
}

// rulesTest is docs/operations/alerts_test.yml, as far as it is looked at here.
type rulesTest struct {
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []struct{} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(operations + name)
	require.NoError(t, err)
	if strings.HasSuffix(name, ".json") {
		require.NoError(t, json.Unmarshal(text, into))
		return
	}
	require.NoError(t, yaml.Unmarshal(text, into))
}

// promtool runs Prometheus's own tool in the directory of the documents.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool := exec.CommandContext(t.Context(), "../../.ci/promtool", args...)
	tool.Dir = operations
	said, err := tool.CombinedOutput()
	require.NoError(t, err, string(said))
}

func TestPrometheusAcceptsTheRulesAndEachAlertFiresWhereItShould(t *testing.T) {
	var alerts rules
	read(t, "alerts.yml", &alerts)
	promtool(t, "check", "rules", "alerts.yml")

	var made rulesTest
	read(t, "alerts_test.yml", &made)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range made.Tests {
		for _, c := range test.AlertRuleTest {
			if len(c.ExpAlerts) > 0 {
				fires[c.Alertname] = true
			} else {
				quiet[c.Alertname] = true
			}
		}
	}
	want := map[string]bool{}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			want[rule.Alert] = true
			assert.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["action"], rule.Alert)
		}
	}
	assert.Equal(t, want, fires, "a series on which it fires")
	assert.Equal(t, want, quiet, "a series on which it does not")
	promtool(t, "test", "rules", "alerts_test.yml")
}

// named are the metrics that an expression names, recording rules among them. What Prometheus itself tells is left out.
func named(expression string) []string {
	var names []string
	for _, name := range regexp.MustCompile(`kakutei[a-zA-Z0-9_:]*`).FindAllString(withoutTexts(expression), -1) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// withoutTexts is the expression without the values that labels are compared with.
func withoutTexts(expression string) string {
	return regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expression, `""`)
}

// known are the names that an expression may have: of the table, of its histograms' series, and of recording rules.
func known(t *testing.T, alerts rules) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for name, m := range tableOfMetrics(t) {
		if m.kind != "histogram" {
			names[name] = true
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			names[name+suffix] = true
		}
	}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				names[rule.Record] = true
			}
		}
	}
	return names
}

// labelled are the labels that an expression compares or groups by.
func labelled(expression string) (labels []string) {
	for _, found := range regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*""`).FindAllStringSubmatch(withoutTexts(expression), -1) {
		labels = append(labels, found[1])
	}
	for _, found := range regexp.MustCompile(`\b(?:by|ignoring)\s*\(([^)]*)\)`).FindAllStringSubmatch(expression, -1) {
		labels = append(labels, strings.Split(strings.ReplaceAll(found[1], " ", ""), ",")...)
	}
	return labels
}

// amiss are the names and labels in an expression that nothing has.
func amiss(t *testing.T, alerts rules, expression string) (wrong []string) {
	t.Helper()
	all, labels := known(t, alerts), map[string]bool{"le": true, "job": true, "instance": true}
	for _, m := range tableOfMetrics(t) {
		for l := range strings.SplitSeq(m.labels, ",") {
			labels[l] = true
		}
	}
	for _, name := range named(expression) {
		if !all[name] {
			wrong = append(wrong, name)
		}
	}
	for _, label := range labelled(expression) {
		if !labels[label] {
			wrong = append(wrong, label)
		}
	}
	return wrong
}

func TestRulesUseMetricsThatExist(t *testing.T) {
	var alerts rules
	read(t, "alerts.yml", &alerts)
	used := map[string]bool{}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			where := rule.Alert + rule.Record
			assert.Empty(t, amiss(t, alerts, rule.Expr), where)
			assert.True(t, len(named(rule.Expr)) > 0 || strings.Contains(rule.Expr, `up{job="kakutei"}`), where)
			for _, name := range named(rule.Expr) {
				used[name] = true
			}
		}
	}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			assert.True(t, rule.Record == "" || used[rule.Record], "nobody needs %s", rule.Record)
		}
	}
}

func TestTheDashboardShowsMetricsThatExist(t *testing.T) {
	var alerts rules
	read(t, "alerts.yml", &alerts)
	var board struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, RefID string }
		}
	}
	read(t, "dashboard.json", &board)
	assert.NotEmpty(t, board.UID)
	shown, places := map[string]bool{}, map[[2]int]bool{}
	for i, panel := range board.Panels {
		assert.Equal(t, i+1, panel.ID, "ids are different")
		place := [2]int{panel.GridPos.X, panel.GridPos.Y}
		assert.False(t, places[place], "%s covers another panel", panel.Title)
		places[place] = true
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			require.NotEmpty(t, named(target.Expr), panel.Title)
			assert.Empty(t, amiss(t, alerts, target.Expr), panel.Title)
			for _, name := range named(target.Expr) {
				shown[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
			}
		}
	}
	assert.Greater(t, len(shown), 15, slices.Sorted(maps.Keys(shown)))
}

// section is a part of the run-book: whom it is for, by its heading, and what it says.
var section = regexp.MustCompile(`(?m)^### (\w+)\n`)

// runBook is the last chapter of docs/operations/README.md by its sections.
func runBook(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(operations + "README.md")
	require.NoError(t, err)
	_, chapter, found := strings.Cut(string(page), "\n## Run-book\n")
	require.True(t, found)
	sections := map[string]string{}
	at := section.FindAllStringSubmatchIndex(chapter, -1)
	for i, heading := range at {
		end := len(chapter)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name := chapter[heading[2]:heading[3]]
		assert.NotContains(t, sections, name, "there are two of it")
		sections[name] = chapter[heading[1]:end]
	}
	return sections
}

// Whoever is woken finds at once what is meant, and a section is for an alert that there is.
func TestEachAlertHasItsSectionInTheRunBookAndLeadsThere(t *testing.T) {
	var alerts rules
	read(t, "alerts.yml", &alerts)
	sections, named := runBook(t), map[string]bool{}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			named[rule.Alert] = true
			// A page has the heading's letters in lower case as its anchor.
			assert.Equal(t, "docs/operations/README.md#"+strings.ToLower(rule.Alert), rule.Annotations["runbook"], rule.Alert)
			says := strings.TrimSpace(sections[rule.Alert])
			assert.Regexp(t, `^\*[^*]`, says, "%s: what it means", rule.Alert)
			assert.Regexp(t, `\n\n\*\*Look:\*\*\s+\S(?s:.*)\n\n\*\*Do:\*\*\s+\S`, says, "%s: how to look, and then what to do", rule.Alert)
		}
	}
	for name := range sections {
		assert.True(t, named[name], "the run-book has a section %s, and no alert is called so", name)
	}
}

// A link within a page that leads nowhere is found by whoever is in a hurry.
func TestEveryLinkWithinTheOperationsPageLeadsToAHeading(t *testing.T) {
	page, err := os.ReadFile(operations + "README.md")
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(page), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(string(page), -1)
	for _, link := range links {
		assert.True(t, anchors[link[1]], "#%s", link[1])
	}
	assert.Greater(t, len(links), 20)
}

// A check over texts is itself checked: it must see a name that is wrong.
func TestAWrongNameOrLabelInAnExpressionIsSeen(t *testing.T) {
	var alerts rules
	for expression, wrong := range map[string][]string{
		`rate(kakutei_outcome_total[5m]) > 0`:                                                     {"kakutei_outcome_total"},
		`kakutei_step_duration_seconds > 1`:                                                       {"kakutei_step_duration_seconds"},
		`kakutei:nothing:ratio5m > 1`:                                                             {"kakutei:nothing:ratio5m"},
		`sum by (outcome, actor) (kakutei_outcomes_total)`:                                        {"actor"},
		`kakutei_outcomes_total{key="k"}`:                                                         {"key"},
		`sum by (operation) (rate(kakutei_outcomes_total{outcome=~"executed|kakutei_none"}[5m]))`: nil,
	} {
		assert.Equal(t, wrong, amiss(t, alerts, expression), expression)
	}
}
