package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPartReplacesItsOwnTableAndNothingElse(t *testing.T) {
	docs := t.TempDir()
	path := filepath.Join(docs, page)
	require.NoError(t, os.WriteFile(path, []byte("before\n<!-- bench a -->\nold\n<!-- end of a -->\nbetween\n"+
		"<!-- bench b -->\nkept\n<!-- end of b -->\nafter\n"), 0o600))
	for _, value := range []string{"1", "2"} {
		require.NoError(t, publish(docs, "a", section{At: "today", Tables: []table{{
			Title: "These:", Head: []string{"what", "much"}, Rows: [][]string{{"x", value}},
		}}}))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "before\n<!-- bench a -->\n\ntoday"), string(text))
	assert.Contains(t, string(text), "These:\n\n| what | much |\n| --- | ---: |\n| x | 2 |\n\n<!-- end of a -->\nbetween\n")
	assert.NotContains(t, string(text), "| x | 1 |")
	assert.Contains(t, string(text), "<!-- bench b -->\nkept\n<!-- end of b -->\nafter\n")

	require.ErrorContains(t, publish(docs, "c", section{}), "no marks of c")
	figuresText, err := os.ReadFile(filepath.Join(docs, figures))
	require.NoError(t, err)
	var all map[string]section
	require.NoError(t, json.Unmarshal(figuresText, &all))
	assert.Equal(t, [][]string{{"x", "2"}}, all["a"].Tables[0].Rows)
}

// The page that is checked in has a place for each part.
func TestThePageHasMarksForEachPart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	require.NoError(t, err)
	for part := range parts {
		_, err := between(string(text), part, "")
		require.NoError(t, err, part)
	}
	_, err = between(string(text), "allocs", "")
	require.NoError(t, err)
}

// measuredOnce are results that have every cell.
func measuredOnce() confirmations {
	c := confirmations{results: results{}}
	for i, what := range inOrder {
		for _, conns := range connections {
			for _, store := range []string{onPostgres, onSQLite, ""} {
				c.results.add(cell{store, what, conns}, sample{PerSecond: float64(100 * (i + 1) * conns), P50: 1 + float64(i)})
			}
		}
	}
	return c
}

func TestTheRatiosAreThoseThatTheTableNames(t *testing.T) {
	c := confirmations{results: results{}}
	add := func(store, what string, conns int, s sample) { c.results.add(cell{store, what, conns}, s) }
	add("", httpNoop, 32, sample{PerSecond: 40_000})
	add(onPostgres, pgbenchConfirmPipelined, 32, sample{PerSecond: 10_000})
	add(onPostgres, pgbenchReplayPipelined, 32, sample{PerSecond: 40_000})
	add(onPostgres, confirm, 32, sample{PerSecond: 4000, WAL: 1900})
	add(onPostgres, replay, 32, sample{PerSecond: 15_000})
	add(onPostgres, confirmElsewhere, 32, sample{PerSecond: 1, WAL: 1})
	add(onPostgres, confirmElsewhere, 1, sample{P50: 1})
	add(onPostgres, pgbenchConfirm, 1, sample{P50: 2})
	add(onPostgres, confirm, 1, sample{P50: 3})
	var got []string
	for _, row := range c.ratios().Rows {
		got = append(got, row[1])
	}
	assert.Equal(t, []string{"0.50", "0.75", "1.50", "1900", "0", "0"}, got)
}

func TestEachStoreHasItsRows(t *testing.T) {
	c := measuredOnce()
	all := c.tables()
	rows := map[string][]string{} // of 32 connections, by what and store
	for _, row := range all[len(all)-1].Rows {
		if row[2] == "32" {
			rows[row[0]+" on "+row[1]] = row
		}
	}
	for _, store := range []string{onPostgres, onSQLite} {
		for _, what := range []string{place, confirm, confirmElsewhere, replay} {
			row := rows[what+" on "+store]
			require.NotEmpty(t, row, what)
			assert.Equal(t, number("%.0f", c.results.middle(cell{store, what, 32}).PerSecond), row[3], what)
		}
	}
	assert.Len(t, all[len(all)-1].Rows, 3*3*len(inOrder))
}

func TestTheModelMultipliesOneConfirmation(t *testing.T) {
	c := measuredOnce()
	c.results[cell{onPostgres, confirm, 32}] = []sample{{ServiceCPU: 0.2, DatabaseCPU: 0.3, WAL: 2000}}
	for _, row := range c.cost().Rows {
		if strings.HasPrefix(row[0], "CPUs of PostgreSQL") {
			assert.Equal(t, []string{"0.0003", "0.03", "0.3", "3"}, row[1:])
		}
	}
}

func TestTheChartIsAPictureWithALineForEachSeries(t *testing.T) {
	drawn := measuredOnce().chart()
	lines := 0
	for in := xml.NewDecoder(strings.NewReader(drawn)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if element, is := token.(xml.StartElement); is && element.Name.Local == "polyline" {
			lines++
		}
	}
	assert.Equal(t, 16, lines)
	assert.NotContains(t, drawn, confirmElsewhere)
	assert.NotContains(t, drawn, "NaN")
	assert.NotContains(t, drawn, "Inf")
}

func TestNoLabelStandsOnAnother(t *testing.T) {
	moved := spread([]label{{"b", "", 12}, {"a", "", 10}, {"c", "", 40}}, 15)
	assert.Equal(t, []label{{"a", "", 10}, {"b", "", 25}, {"c", "", 40}}, moved)
}

func TestThePartsHaveTables(t *testing.T) {
	s := []sample{{PerSecond: 10, P99: 2}}
	g := growth{
		confirms: map[string][]sample{empty: s, grown: {{PerSecond: 9, P99: 3}}},
		replays:  map[string][]sample{empty: s, grown: s},
		quiet:    sample{PerSecond: 10, P99: 1}, beside: sample{PerSecond: 9.5, P99: 1.5},
	}
	rows := g.tables()[0].Rows
	assert.Equal(t, "0.90", rows[0][1])
	assert.Equal(t, "1.50", rows[1][1])
	assert.Equal(t, "0.95", rows[4][1])

	all := storms{kinds: []string{alone, everyLull}, of: map[string][]storm{
		alone: {{first: []time.Duration{time.Millisecond}, bystanders: sample{PerSecond: 100}}},
		everyLull: {{
			first: []time.Duration{2 * time.Millisecond}, bystanders: sample{PerSecond: 80},
			answers: map[string]int{"409": 30, "200": 1},
		}},
	}}
	row := all.tables()[0].Rows[1]
	assert.Equal(t, "0.80", row[7])
	assert.Equal(t, "409: 30; 200: 1", row[len(row)-1])

	scaled := scaling{confirms: map[int][]sample{1: s, 2: {{PerSecond: 15}}, 4: s}, replays: map[int][]sample{1: s, 2: s, 4: s}}
	assert.Equal(t, "1.50", scaled.tables()[0].Rows[1][2])
}

func TestBenchmarksBecomeATable(t *testing.T) {
	made, err := allocations(strings.NewReader("goos: linux\npkg: kakutei/domain/idempotency\n" +
		"BenchmarkKey-2   \t32561149\t        38.04 ns/op\t       0 B/op\t       0 allocs/op\nPASS\n" +
		"pkg: kakutei/application/idempotent\n" +
		"BenchmarkExecutor/with_a_call-2 \t 93612\t 15696 ns/op\t 6731 B/op\t 59 allocs/op\n"))
	require.NoError(t, err)
	assert.Equal(t, [][]string{
		{"Key", "`domain/idempotency`", "38.04", "0", "0"},
		{"Executor: with a call", "`application/idempotent`", "15696", "6731", "59"},
	}, made.Rows)
	for _, bad := range []string{"", "BenchmarkKey-2 1 1 ns/op 1 B/op 1 allocs/op\nFAIL\n"} {
		_, err := allocations(strings.NewReader(bad))
		require.Error(t, err)
	}
}

func TestABadSettingIsNamed(t *testing.T) {
	env := func(set map[string]string) func(string) string {
		return func(name string) string {
			if value, is := set[name]; is {
				return value
			}
			return map[string]string{"KAKUTEI_BENCH_POSTGRES": "/pg", "KAKUTEI_BENCH_SERVICE": "/kakutei"}[name]
		}
	}
	s, err := settingsOf(env(map[string]string{"BENCH": "storms,growth", "BENCH_SECONDS": "7"}))
	require.NoError(t, err)
	assert.Equal(t, []string{"storms", "growth"}, s.parts)
	assert.Equal(t, 7*time.Second, s.seconds)
	assert.Equal(t, 3, s.rounds)
	for name, value := range map[string]string{
		"BENCH": "confirm,none", "BENCH_ROUNDS": "0", "BENCH_SECONDS": "x", "BENCH_ORDERS": "-1", "BENCH_RECORDS": "1.5",
	} {
		_, err := settingsOf(env(map[string]string{name: value}))
		require.ErrorContains(t, err, name)
	}
}
