package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many a second has in /proc (USER_HZ).
const ticks = 100

// proc is where the system shows its processes.
const proc = "/proc"

// stat is what the system says of a process.
type stat struct {
	parent int
	cpu    time.Duration // of it, and of those of its children that have ended
}

// readStat reads a line of /proc/PID/stat. The second field, the program's name, may hold spaces and brackets.
func readStat(line []byte) (stat, error) {
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("a process is told in %d fields", len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return stat{}, err
	}
	s := stat{parent: parent}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return stat{}, err
		}
		s.cpu += time.Duration(n) * time.Second / ticks
	}
	return s, nil
}

// cpuOf is the CPU time of a process and of all that descend from it.
func cpuOf(root int) (time.Duration, error) {
	files, err := filepath.Glob(proc + "/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	all := make(map[int]stat, len(files))
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return 0, err
		}
		if all[pid], err = readStat(line); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	if _, lives := all[root]; !lives {
		return 0, fmt.Errorf("process %d has ended", root)
	}
	return treeOf(all, root), nil
}

func treeOf(all map[int]stat, root int) (sum time.Duration) {
	for pid, s := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == root {
				sum += s.cpu
				break
			}
		}
	}
	return sum
}

// cpuOfMachine is the CPU time that everything on the machine has used.
func cpuOfMachine() (time.Duration, error) {
	text, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return 0, err
	}
	return readMachine(string(text))
}

// readMachine sums up user, nice, system, irq, softirq and steal; idle and waiting for the disk is no work.
func readMachine(text string) (sum time.Duration, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("%s/stat begins with %q", proc, line)
	}
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * time.Second / ticks
	}
	return sum, nil
}
