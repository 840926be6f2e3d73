package main

import (
	"context"
	"os"
)

// watch turns SIGTERM and SIGINT into the ends of two contexts: at the first signal the service finishes what it has
// begun, at the second one it stops at once. The end of ctx counts as the first. end gives the watch up.
func watch(ctx context.Context, notify func(chan<- os.Signal)) (first, second context.Context, end func()) {
	arrived := make(chan os.Signal, 2)
	notify(arrived)
	first, finish := context.WithCancel(ctx)
	second, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-arrived:
			finish()
		case <-first.Done():
		}
		select {
		case <-arrived:
			stop()
		case <-second.Done():
		}
	}()
	return first, second, func() {
		finish()
		stop()
	}
}
