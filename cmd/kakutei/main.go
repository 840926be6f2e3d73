// Command kakutei confirms the payment of a shop's orders. It puts the layers together and gives them a command line;
// no rule of the shop is in here.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(context.Background(), program{
		args: os.Args[1:], env: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		notify: func(c chan<- os.Signal) { signal.Notify(c, syscall.SIGTERM, syscall.SIGINT) },
	}))
}
