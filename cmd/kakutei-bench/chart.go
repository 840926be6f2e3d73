package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// series is one line of a chart: a value for each of the places on the horizontal axis.
type series struct {
	name   string
	colour string
	dashes bool
	values []float64
}

// The picture's measures, in its own units. Colours are such that they can be seen on white and on black.
const (
	chartWidth, chartHeight = 860, 640
	panelLeft, panelRight   = 64, 620
	grey                    = "#7a7a7a"
)

// chart draws throughput and latency against connections.
func (c confirmations) chart() string {
	lines := []struct {
		name, colour string
		dashes       bool
		of           cell
	}{
		{"no-op", grey, true, cell{What: httpNoop}},
		{"replay, PostgreSQL", "#2f81d6", false, cell{Store: onPostgres, What: replay}},
		{"place, PostgreSQL", "#8a63d2", false, cell{Store: onPostgres, What: place}},
		{"confirm, PostgreSQL", "#d1495b", false, cell{Store: onPostgres, What: confirm}},
		{"pgbench confirm, pipelined", "#d1495b", true, cell{Store: onPostgres, What: pgbenchConfirmPipelined}},
		{"pgbench replay, pipelined", "#2f81d6", true, cell{Store: onPostgres, What: pgbenchReplayPipelined}},
		{"confirm, SQLite", "#c98a1b", false, cell{Store: onSQLite, What: confirm}},
		{"replay, SQLite", "#3c9d5b", false, cell{Store: onSQLite, What: replay}},
	}
	of := func(figure func(sample) float64) (all []series) {
		for _, l := range lines {
			s := series{name: l.name, colour: l.colour, dashes: l.dashes}
			for _, conns := range connections {
				l.of.Conns = conns
				s.values = append(s.values, figure(c.results.middle(l.of)))
			}
			all = append(all, s)
		}
		return all
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="%s">`+"\n",
		chartWidth, chartHeight, grey)
	panel(&b, 30, 290, "requests per second", of(func(s sample) float64 { return s.PerSecond }))
	panel(&b, 350, 610, "median time, milliseconds", of(func(s sample) float64 { return s.P50 }))
	b.WriteString("</svg>\n")
	return b.String()
}

// panel draws lines over the numbers of connections, on a logarithmic scale, between two heights.
func panel(b *strings.Builder, top, bottom float64, title string, all []series) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, v := range s.values {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low > high {
		return
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if from == to {
		to++
	}
	y := func(v float64) float64 { return bottom - (math.Log10(v)-from)/(to-from)*(bottom-top) }
	x := func(i int) float64 {
		return panelLeft + float64(i)*(panelRight-panelLeft)/float64(max(1, len(connections)-1))
	}
	fmt.Fprintf(b, `<text x="%d" y="%.0f" font-weight="bold">%s</text>`+"\n", panelLeft, top-12, html.EscapeString(title))
	for e := from; e <= to; e++ {
		at := y(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.35"/>`+"\n", panelLeft, panelRight, at, at, grey)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", panelLeft-8, at+4, math.Pow(10, e))
	}
	for i, conns := range connections {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", x(i), bottom+18, conns)
	}
	var names []label
	for _, s := range all {
		var points []string
		for i, v := range s.values {
			if v > 0 {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), y(v)))
			}
		}
		if last := s.values[len(s.values)-1]; len(points) < len(s.values) || last <= 0 {
			continue
		}
		dashes := ""
		if s.dashes {
			dashes = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(points, " "), s.colour, dashes)
		names = append(names, label{s.name, s.colour, y(s.values[len(s.values)-1])})
	}
	for _, l := range spread(names, 15) {
		fmt.Fprintf(b, `<text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", panelRight+10, l.at+4, l.colour, html.EscapeString(l.text))
	}
	fmt.Fprintf(b, `<text x="%d" y="%.1f">connections</text>`+"\n", panelRight+16, bottom+18)
}

// label stands at the end of a line.
type label struct {
	text, colour string
	at           float64
}

// spread moves labels down so that none stands on another.
func spread(all []label, apart float64) []label {
	slices.SortStableFunc(all, func(a, b label) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	for i := 1; i < len(all); i++ {
		all[i].at = max(all[i].at, all[i-1].at+apart)
	}
	return all
}
