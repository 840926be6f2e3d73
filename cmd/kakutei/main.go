// Command kakutei confirms the payment of a shop's orders. It puts the layers together and gives them a command line;
// no rule of the shop is in here.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	// Roots of trust for a machine that has none, as an empty container image: it can ask a provider over https all the
	// same. The machine's own come first.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// heapGrowth is how much the heap may grow before it is collected, in percent of what is alive. That is a few megabytes:
// with Go's own 100 the collector would run dozens of times a second. GOGC overrides it, GOMEMLIMIT holds beside it.
const heapGrowth = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	os.Exit(run(context.Background(), program{
		args: os.Args[1:], env: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		notify:     func(c chan<- os.Signal) { signal.Notify(c, syscall.SIGTERM, syscall.SIGINT) },
		processors: runtime.GOMAXPROCS,
	}))
}
