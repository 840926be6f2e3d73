package main

import (
	"fmt"
	"io"
	"net"
	"net/http"

	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/web"
)

// exampleToken is whose orders the examples place; empty where nobody can know a token.
func (c *accessConfig) exampleToken() string {
	if c.auth == demo {
		return "demo-alice"
	}
	return ""
}

// pages are those that are there beside the edge's own: in demo mode the shop.
func (c *accessConfig) pages() map[string]http.Handler {
	if c.auth != demo {
		return nil
	}
	return web.Shop(func(base string) (place, confirm string) { return httpapi.Examples(base, c.exampleToken()) })
}

// printTryout writes what somebody who has just started the service wants to know: where it is, and two lines to paste
// into a shell.
func printTryout(out io.Writer, at net.Addr, store, token string) {
	base := "http://" + reachable(at)
	place, confirm := httpapi.Examples(base, token)
	fmt.Fprintf(out, "Kakutei is serving.\n\n  page   %s/\n  store  %s\n\n", base, store)
	fmt.Fprint(out, "Paste these two lines into a shell, to place an order and to confirm its payment:\n\n")
	fmt.Fprintf(out, "%s\n%s\n\n", place, confirm)
	if token == "" {
		fmt.Fprint(out, "They need a token of yours in the place of YOUR-TOKEN.\n\n")
	}
}

// reachable is where a listener can be called from this machine: one on all interfaces is on loopback, too.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
}
