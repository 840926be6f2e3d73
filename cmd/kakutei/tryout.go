package main

import (
	"fmt"
	"io"
	"net"
)

// printTryout writes what somebody who has just started the service wants to know: where it is, and two lines to paste
// into a shell. The first places an order and keeps its id for the second, which confirms its payment. Pasted again,
// the first one places another order; the second one is a retry and gets the same answer.
func printTryout(out io.Writer, at net.Addr, store string) {
	base := "http://" + reachable(at)
	const headers = `-H 'Authorization: Bearer demo-alice' -H 'Content-Type: application/json'`
	fmt.Fprintf(out, "Kakutei is serving.\n\n  page   %s/\n  store  %s\n\n", base, store)
	fmt.Fprint(out, "Paste these two lines into a shell, to place an order and to confirm its payment:\n\n")
	fmt.Fprintf(out, `ORDER=$(curl -sS %s/api/orders %s -H "Idempotency-Key: place-$(date +%%s%%N)" `+
		`-d '{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}' `+
		`| sed -n 's/.*"orderId":"\([^"]*\)".*/\1/p'); echo "order $ORDER"`+"\n", base, headers)
	fmt.Fprintf(out, `curl -sS %s/api/orders/$ORDER/confirm-payment %s -H "Idempotency-Key: pay-$ORDER" `+
		`-d '{"amount":1000,"currency":"JPY"}'; echo`+"\n\n", base, headers)
}

// reachable is where a listener can be called from this machine: one on all interfaces is on loopback, too.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
}
