// Command kakutei confirms the payment of a shop's orders. It puts the layers together and gives them a command line;
// no rule of the shop is in here.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// Roots of trust for a machine that has none, as an empty container image: it can ask a provider over https all the
	// same. The machine's own come first.
	_ "golang.org/x/crypto/x509roots/fallback"
)

func main() {
	os.Exit(run(context.Background(), program{
		args: os.Args[1:], env: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		notify: func(c chan<- os.Signal) { signal.Notify(c, syscall.SIGTERM, syscall.SIGINT) },
	}))
}
