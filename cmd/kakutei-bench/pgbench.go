package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pgbench runs scripts by PostgreSQL's own load generator.
type pgbench struct {
	server *postgres
	dir    string
	runs   int
}

// ran is what a load generator has measured.
type ran struct {
	count int     // all that was done
	rate  float64 // per second
	times []time.Duration
	load  time.Duration // CPU time of the load generator
}

// run runs a script: so many times in all, over so many connections, as "-t" or for a time, as "-T".
func (p *pgbench) run(
	ctx context.Context, d *database, s script, text string, conns int, length ...string,
) (r ran, err error) {
	p.runs++
	prefix := filepath.Join(p.dir, fmt.Sprintf("pgbench-%d", p.runs))
	if err := os.WriteFile(prefix+".sql", []byte(text), 0o600); err != nil {
		return r, err
	}
	arguments := append([]string{
		"-h", "127.0.0.1", "-p", p.server.port, "-U", "postgres", "-n", "-M", "prepared", "-f", prefix + ".sql",
		"-c", strconv.Itoa(conns), "-j", strconv.Itoa(min(conns, runtime.NumCPU())),
		"--log", "--log-prefix=" + prefix, "-D", "i=-1", "-D", "clients=" + strconv.Itoa(conns),
	}, length...)
	arguments = append(append(arguments, s.defines()...), d.name)
	cmd := exec.CommandContext(ctx, filepath.Join(p.server.programs, "pgbench"), arguments...)
	cmd.Env = []string{"LC_ALL=C", "PGSSLMODE=disable"}
	told, err := cmd.CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("pgbench: %w: %s", err, told)
	}
	if failed := failures.FindSubmatch(told); failed == nil || string(failed[1]) != "0" {
		return r, fmt.Errorf("pgbench has failed transactions: %s", told)
	}
	all, err := readLogs(prefix + ".[0-9]*")
	if err != nil {
		return r, err
	}
	r.load = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.count = len(all)
	r.rate, r.times = steady(all, conns)
	return r, nil
}

var failures = regexp.MustCompile(`number of failed transactions: (\d+)`)

// transaction is a line of pgbench's log.
type transaction struct {
	client int
	ended  time.Duration // Unix time
	took   time.Duration
}

func readLogs(pattern string) (all []transaction, err error) {
	logs, err := filepath.Glob(pattern)
	for _, log := range logs {
		lines, readErr := os.ReadFile(log)
		if err = errors.Join(err, readErr, os.Remove(log)); err != nil {
			return nil, err
		}
		found, err := transactionsIn(string(lines))
		if err != nil {
			return nil, fmt.Errorf("pgbench's log: %w", err)
		}
		all = append(all, found...)
	}
	return all, err
}

// transactionsIn reads pgbench's log: client, number, microseconds that it took, script, and when it ended, in seconds and
// microseconds.
func transactionsIn(log string) (all []transaction, err error) {
	for line := range strings.Lines(log) {
		var t transaction
		var number, took, script, seconds, micros int64
		if _, err := fmt.Sscan(line, &t.client, &number, &took, &script, &seconds, &micros); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		t.took = time.Duration(took) * time.Microsecond
		t.ended = time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond
		all = append(all, t)
	}
	return all, nil
}

// unsteady is how many transactions a new connection needs until PostgreSQL plans its statements no more: it makes five
// plans for each, and then decides for one that fits all.
const unsteady = 10

// steady is how many transactions ended in a second, and how long each took, while every client was at work and its
// connection no longer new.
func steady(all []transaction, clients int) (perSecond float64, times []time.Duration) {
	ends := make([][]time.Duration, clients)
	for _, t := range all {
		ends[t.client] = append(ends[t.client], t.ended)
	}
	var from, until time.Duration
	for i, of := range ends {
		slices.Sort(of)
		if len(of) <= unsteady {
			return 0, nil
		}
		from = max(from, of[unsteady-1])
		if last := of[len(of)-1]; i == 0 || last < until {
			until = last
		}
	}
	for _, t := range all {
		if t.ended > from && t.ended <= until {
			times = append(times, t.took)
		}
	}
	if until <= from {
		return 0, nil
	}
	return float64(len(times)) / (until - from).Seconds(), times
}
