package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// table is what people read.
type table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// section is what came of one part of the bench, with where and when.
type section struct {
	At      string   `json:"at"`
	Commit  string   `json:"commit"`
	Machine string   `json:"machine"`
	Length  string   `json:"length"` // rounds, and seconds of a cell
	Tables  []table  `json:"tables"`
	Notes   []string `json:"notes,omitempty"`
	Figures any      `json:"figures,omitempty"`
}

// markdown writes the section as the document has it.
func (s section) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s, commit %s. %s. %s.\n", s.At, s.Commit, s.Machine, s.Length)
	for _, t := range s.Tables {
		fmt.Fprintf(w, "\n%s\n\n", t.Title)
		t.markdown(w)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(w, "\n%s\n", note)
	}
}

func (t table) markdown(w io.Writer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.Head)
	rule := make([]string, len(t.Head))
	for i := range rule {
		rule[i] = "---"
		if i > 0 {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, row := range t.Rows {
		line(row)
	}
}

// The documents, in the directory for them.
const (
	page    = "performance.md"
	figures = "performance.json"
	picture = "performance.svg"
)

// publish puts a section into the documents: the figures, and the page between the part's two marks.
func publish(docs, part string, s section) error {
	path := filepath.Join(docs, figures)
	all := map[string]json.RawMessage{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if all[part], err = json.Marshal(s); err != nil {
		return err
	}
	whole, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(whole, '\n'), 0o644); err != nil {
		return err
	}
	var b strings.Builder
	s.markdown(&b)
	return within(filepath.Join(docs, page), part, b.String())
}

// within replaces what stands between the marks of a part. Error: there are none.
func within(path, part, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := between(string(old), part, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}

func between(document, part, text string) (string, error) {
	begin, end := "<!-- bench "+part+" -->\n", "<!-- end of "+part+" -->"
	before, rest, begins := strings.Cut(document, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return "", fmt.Errorf("it has no marks of %s", part)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}

// section begins one.
func (b *bench) section(s settings) section {
	var others string
	if len(b.others) > 0 {
		others = fmt.Sprintf("; processes that are none of the bench's used %.2f CPUs meanwhile (median)", median(b.others))
	}
	return section{
		At: time.Now().Format(time.DateOnly), Commit: s.commit, Machine: s.machine,
		Length: fmt.Sprintf("Medians of %d rounds, cells of %s%s", b.rounds, b.seconds, others),
	}
}

func number(format string, value float64) string {
	if value != value { // there is none
		return "–"
	}
	return fmt.Sprintf(format, value)
}

// row is how a sample stands in a table.
func (s sample) row(before ...string) []string {
	return append(before, number("%.0f", s.PerSecond), number("%.2f", s.P50), number("%.2f", s.P99),
		number("%.3f", s.ServiceCPU), number("%.3f", s.DatabaseCPU), number("%.3f", s.LoadCPU), number("%.0f", s.WAL))
}

var sampleHead = []string{
	"per s", "p50 ms", "p99 ms", "CPU ms: service", "PostgreSQL", "load generator", "WAL bytes",
}

func (c confirmations) tables() []table {
	main := table{Title: "Each cell:", Head: append([]string{"what", "store", "connections"}, sampleHead...)}
	for _, store := range []string{onPostgres, "", onSQLite} {
		for _, what := range inOrder {
			for _, conns := range connections {
				of := cell{store, what, conns}
				if len(c.results[of]) > 0 {
					main.Rows = append(main.Rows, c.results.middle(of).row(what, store, fmt.Sprint(conns)))
				}
			}
		}
	}
	return []table{c.ratios(), c.cost(), main}
}

// ratios are what the service is judged by.
func (c confirmations) ratios() table {
	at := func(what string, conns int) cell {
		if what == httpNoop {
			return cell{"", what, conns}
		}
		return cell{onPostgres, what, conns}
	}
	ofLimit := func(s ...sample) float64 { return s[0].PerSecond / limit(s[1].PerSecond, s[2].PerSecond) }
	return table{
		Title: "Ratios, each taken within a round. L = 1 / (1/no-op + 1/pgbench pipelined):",
		Head:  []string{"ratio", "measured", "wanted"},
		Rows: [][]string{
			{"confirm / L, 32 connections", number("%.2f", c.results.ratio(ofLimit,
				at(confirm, 32), at(httpNoop, 32), at(pgbenchConfirmPipelined, 32))), "≥ 0.60"},
			{"replay / L, 32 connections", number("%.2f", c.results.ratio(ofLimit,
				at(replay, 32), at(httpNoop, 32), at(pgbenchReplayPipelined, 32))), "≥ 0.60"},
			{"p50 of confirm / p50 of pgbench's, a round trip per statement, 1 connection", number("%.2f", c.results.ratio(
				func(s ...sample) float64 { return s[0].P50 / s[1].P50 }, at(confirm, 1), at(pgbenchConfirm, 1))), "≤ 2.0"},
			{"WAL bytes per confirm, 32 connections", number("%.0f", c.results.middle(at(confirm, 32)).WAL), "≤ 2000"},
			{"round trips per confirm", fmt.Sprint(c.confirm.roundTrips()), "≤ 4"},
			{"round trips per replay", fmt.Sprint(c.replay.roundTrips()), "1"},
		},
	}
}

// loads are those of the model, in confirmations per second.
var loads = []float64{100, 1000, 10_000}

// cost is the model: what so many confirmations per second take, by what one took here.
func (c confirmations) cost() table {
	one, quick := c.results.middle(cell{onPostgres, confirm, 32}), c.results.middle(cell{onPostgres, confirm, 1})
	row := func(what, format string, each float64) []string {
		cells := []string{what, number(format, each)}
		for _, load := range loads {
			cells = append(cells, number(format, each*load))
		}
		return cells
	}
	t := table{
		Title: "The model, by what a confirmation took here (CPU and WAL at 32 connections, its time at one):",
		Head:  []string{"", "one confirmation"},
		Rows: [][]string{
			row("statements", "%.0f", float64(c.confirm.statements())),
			row("round trips", "%.0f", float64(c.confirm.roundTrips())),
			row("commits", "%.0f", float64(c.confirm.commits())),
			row("CPUs of the service (seconds for one)", "%.3g", one.ServiceCPU/1000),
			row("CPUs of PostgreSQL (seconds for one)", "%.3g", one.DatabaseCPU/1000),
			row("WAL, MB (per second)", "%.3g", one.WAL/1e6),
			row("requests at work (seconds for one)", "%.3g", quick.P50/1000),
		},
	}
	for _, load := range loads {
		t.Head = append(t.Head, fmt.Sprintf("%.0f per s", load))
	}
	return t
}

// commits is how often the script commits.
func (s script) commits() (n int) {
	for _, e := range s.exchanges {
		for _, one := range e {
			if strings.EqualFold(one.sql, "commit") {
				n++
			}
		}
	}
	return n
}

// list is how the results stand in the figures.
func (r results) list() (all []map[string]any) {
	for c, samples := range r {
		all = append(all, map[string]any{"store": c.Store, "what": c.What, "connections": c.Conns, "rounds": samples})
	}
	return all
}

func (c confirmations) figures() any {
	return map[string]any{"cells": c.results.list(), "confirm": c.confirm.sql(), "replay": c.replay.sql()}
}

// sql are the statements by round trips.
func (s script) sql() (all [][]string) {
	for _, e := range s.exchanges {
		var texts []string
		for _, one := range e {
			texts = append(texts, strings.Join(strings.Fields(one.sql), " "))
		}
		all = append(all, texts)
	}
	return all
}

func (g growth) tables() []table {
	per := func(of map[string][]sample, figure func(sample) float64) string {
		both := results{cell{What: empty}: of[empty], cell{What: grown}: of[grown]}
		return number("%.2f", both.ratio(func(s ...sample) float64 { return figure(s[1]) / figure(s[0]) },
			cell{What: empty}, cell{What: grown}))
	}
	perSecond := func(s sample) float64 { return s.PerSecond }
	p99 := func(s sample) float64 { return s.P99 }
	ratios := table{
		Title: fmt.Sprintf("With %d paid orders, their entries and %d records, against an empty database in the same server:",
			g.orders, g.records),
		Head: []string{"ratio", "measured", "wanted"},
		Rows: [][]string{
			{"confirms per s", per(g.confirms, perSecond), "≥ 0.90"},
			{"p99 of confirms", per(g.confirms, p99), ""},
			{"replays per s", per(g.replays, perSecond), "≥ 0.90"},
			{"p99 of replays", per(g.replays, p99), ""},
			{
				fmt.Sprintf("confirms per s beside a sweep of %d records (%.0f s), against without", g.expired, g.swept.Seconds()),
				number("%.2f", g.beside.PerSecond/g.quiet.PerSecond), "> 0.90",
			},
			{"p99 beside it, against without", number("%.2f", g.beside.P99/g.quiet.P99), "≤ 2"},
			{
				"answers beside it that took longer than twice the p99 without, in a hundred", number("%.3f", 100*g.above), "0",
			},
			{"the same without it", number("%.3f", 100*g.aboveWithout), ""},
			{"the longest, ms", number("%.0f", milliseconds(g.longest)), ""},
		},
	}
	cells := table{Title: "The cells, at 32 connections:", Head: append([]string{"what", "database"}, sampleHead...)}
	for _, of := range []struct {
		what string
		by   map[string][]sample
	}{{confirm, g.confirms}, {replay, g.replays}} {
		for _, name := range []string{empty, grown} {
			cells.Rows = append(cells.Rows, results{{}: of.by[name]}.middle(cell{}).row(of.what, name))
		}
	}
	cells.Rows = append(cells.Rows, g.quiet.row("confirm, without the sweep", grown), g.beside.row("confirm, beside it", grown))
	disk := table{Title: "On the disk, bytes per row:", Head: []string{"table", "rows", "row", "its indexes", "both"}}
	for _, s := range g.bytes {
		disk.Rows = append(disk.Rows, []string{
			s.table, fmt.Sprint(s.rows), number("%.0f", s.heap), number("%.0f", s.others), number("%.0f", s.heap+s.others),
		})
	}
	hot := table{Title: "Updates by confirmations:", Head: []string{"table", "updates", "HOT", "share"}}
	for _, u := range g.hot {
		hot.Rows = append(hot.Rows, []string{
			u.table, fmt.Sprint(u.all), fmt.Sprint(u.hot), number("%.2f", float64(u.hot)/float64(u.all)),
		})
	}
	return []table{ratios, cells, disk, hot}
}

func (all storms) tables() []table {
	t := table{
		Title: fmt.Sprintf("%d clients with one key at the same moment, beside %d clients who pay orders of their own:",
			rush, bystanders),
		Head: []string{
			"", "storms", "first answer p50 ms", "p99 ms", "duplicates p50 ms", "p99 ms", "others per s", "of undisturbed",
			"others' p99 ms", "others refused", "duplicates were told",
		},
	}
	for _, kind := range all.kinds {
		var first, duplicates []time.Duration
		told, refused := map[string]int{}, 0
		var others, ratio, p99 []float64
		for round, s := range all.of[kind] {
			first, duplicates = append(first, s.first...), append(duplicates, s.duplicates...)
			for answer, n := range s.answers {
				told[answer] += n
			}
			others = append(others, s.bystanders.PerSecond)
			refused += s.refused
			p99 = append(p99, s.bystanders.P99)
			ratio = append(ratio, s.bystanders.PerSecond/all.of[alone][round].bystanders.PerSecond)
		}
		t.Rows = append(t.Rows, []string{
			kind, fmt.Sprint(len(first)),
			number("%.1f", milliseconds(percentile(first, 50))), number("%.1f", milliseconds(percentile(first, 99))),
			number("%.1f", milliseconds(percentile(duplicates, 50))), number("%.1f", milliseconds(percentile(duplicates, 99))),
			number("%.0f", median(others)), number("%.2f", median(ratio)), number("%.1f", median(p99)), fmt.Sprint(refused), counts(told),
		})
	}
	return []table{t}
}

func (s scaling) tables() []table {
	t := table{
		Title: "32 clients spread over the instances, all on this machine with PostgreSQL and the load generator:",
		Head:  append([]string{"what", "instances", "against one"}, sampleHead...),
	}
	for _, of := range []struct {
		what string
		by   map[int][]sample
	}{{confirm, s.confirms}, {replay, s.replays}} {
		r := results{}
		for _, n := range instances {
			r[cell{Conns: n}] = of.by[n]
			against := r.ratio(func(s ...sample) float64 { return s[0].PerSecond / s[1].PerSecond }, cell{Conns: n}, cell{Conns: 1})
			t.Rows = append(t.Rows, r.middle(cell{Conns: n}).row(of.what, fmt.Sprint(n), number("%.2f", against)))
		}
	}
	return []table{t}
}

// counts tells how often each was, the most frequent first.
func counts(all map[string]int) string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s: %d", name, all[name])
	}
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, "; ")
}
