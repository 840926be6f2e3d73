package lab

import (
	"embed"
	"strings"
)

// The sources are shown as they are compiled: what the page marks as wrong is what runs.
//
//go:embed nokey/nokey.go lookup/lookup.go nofingerprint/nofingerprint.go noactor/noactor.go apart/apart.go
//go:embed nofence/nofence.go newgatewaykey/newgatewaykey.go onlyrecord/onlyrecord.go
//go:embed onlyaggregate/onlyaggregate.go onlyconstraint/onlyconstraint.go
//go:embed inorder/inorder.go inattempt/inattempt.go ownstore/ownstore.go
var sources embed.FS

// wrongMark ends a line of a design that is wrong, with the reason behind it.
const wrongMark = "// WRONG:"

// Line is a line of a source.
type Line struct {
	Number int
	Text   string
	Wrong  bool
}

// Source is a package's code.
type Source []Line

func sourceOf(pkg string) (lines Source) {
	text, err := sources.ReadFile(pkg + "/" + pkg + ".go")
	if err != nil {
		panic(err) // it is compiled in
	}
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		lines = append(lines, Line{Number: n + 1, Text: line, Wrong: strings.Contains(line, wrongMark)})
	}
	return lines
}

// Source is the design's code.
func (d Design) Source() Source { return sourceOf(d.Name) }

// Source is the place's code.
func (p Place) Source() Source { return sourceOf(p.Name) }

// LinesOfCode counts what is neither blank nor a comment.
func (s Source) LinesOfCode() (n int) {
	for _, line := range s {
		if text := strings.TrimSpace(line.Text); text != "" && !strings.HasPrefix(text, "//") {
			n++
		}
	}
	return n
}
