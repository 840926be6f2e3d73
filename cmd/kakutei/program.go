package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// program is what one run is called with and its ways to the outside. Nothing else reaches for os, so the end-to-end
// tests run the whole program within their own process.
type program struct {
	args           []string                 // without the program's name
	env            func(name string) string // empty when the variable is not set
	stdin          io.Reader
	stdout, stderr io.Writer
	// notify has SIGTERM and SIGINT sent to the channel instead of ending the process.
	notify func(chan<- os.Signal)
	// processors has the program use no more than so many, and returns how many it has used; 0 changes nothing.
	processors func(int) int
	// patience is how long a store that is away is waited for; zero means defaultPatience.
	patience time.Duration
}

// defaultPatience is how long a store that is away is waited for at start.
const defaultPatience = 30 * time.Second

// run is one call of the program. It returns the exit code: 0, or 1 after one line on stderr that says what is wrong, or
// the command's own.
func run(ctx context.Context, p program) int {
	if p.patience == 0 {
		p.patience = defaultPatience
	}
	err := execute(ctx, p, commands())
	var own exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return int(own)
	default:
		fmt.Fprintln(p.stderr, "kakutei: "+oneLine(err))
		return 1
	}
}

// exitCode is the end of a command that has done its work and said what came of it, and that a script shall tell from
// both success and failure.
type exitCode int

// Error is for nobody to read.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// oneLine is the error's text, which drivers like to spread over several lines.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}
