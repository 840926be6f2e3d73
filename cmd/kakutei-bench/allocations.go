package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// allocations makes a table of what `go test -bench -benchmem` prints.
func allocations(in io.Reader) (table, error) {
	t := table{
		Title: "A run of `make allocs`:", Head: []string{"benchmark", "package", "ns", "bytes", "allocations"},
	}
	pkg := ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if name, is := strings.CutPrefix(line, "pkg: kakutei/"); is {
			pkg = name
		}
		if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") {
			return t, fmt.Errorf("a benchmark has failed: %s", line)
		}
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(words) < 8 {
			continue
		}
		of := map[string]string{}
		for i := 2; i+1 < len(words); i += 2 {
			of[words[i+1]] = words[i]
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(words[0], "Benchmark"), "-")
		t.Rows = append(t.Rows, []string{
			strings.ReplaceAll(strings.ReplaceAll(name, "_", " "), "/", ": "), "`" + pkg + "`", of["ns/op"], of["B/op"], of["allocs/op"],
		})
	}
	if len(t.Rows) == 0 {
		return t, fmt.Errorf("no benchmark has run")
	}
	return t, lines.Err()
}
