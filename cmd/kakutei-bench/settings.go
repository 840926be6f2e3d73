package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are what the bench is told. Makefile and .ci/bench give them.
type settings struct {
	parts    []string
	rounds   int
	seconds  time.Duration // of a cell
	docs     string        // where the documents are
	orders   int64         // of the part "growth"
	records  int64
	programs string // PostgreSQL's
	service  string // bin/kakutei
	commit   string
	machine  string
}

// settingsOf reads them from the environment. The error names the variable.
func settingsOf(env func(string) string) (s settings, err error) {
	s = settings{
		docs: cmp.Or(env("BENCH_DOCS"), "docs"), programs: env("KAKUTEI_BENCH_POSTGRES"),
		service: env("KAKUTEI_BENCH_SERVICE"), commit: commit(), machine: machine(),
	}
	for part := range strings.SplitSeq(cmp.Or(env("BENCH"), "confirm"), ",") {
		if _, known := parts[part]; !known {
			return s, fmt.Errorf("BENCH: there is no part %q; there are %s", part,
				strings.Join(slices.Sorted(maps.Keys(parts)), ", "))
		}
		s.parts = append(s.parts, part)
	}
	whole := func(name string, initial int64) int64 {
		n, parseErr := strconv.ParseInt(cmp.Or(env(name), strconv.FormatInt(initial, 10)), 10, 64)
		if parseErr != nil || n < 1 {
			err = errors.Join(err, fmt.Errorf("%s: %q is no whole number from 1", name, env(name)))
		}
		return n
	}
	s.rounds = int(whole("BENCH_ROUNDS", 3))
	s.seconds = time.Duration(whole("BENCH_SECONDS", 3)) * time.Second
	s.orders, s.records = whole("BENCH_ORDERS", 1_000_000), whole("BENCH_RECORDS", 5_000_000)
	if s.programs == "" || s.service == "" {
		err = errors.Join(err, errors.New("run it by `make bench`, which brings PostgreSQL and the service"))
	}
	return s, err
}

func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// machine is what the figures depend on.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile(proc + "/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d CPUs (%s), %s", runtime.NumCPU(), model, runtime.Version())
}
