package main

import (
	"net"
	"net/http"
	"sync"
)

// newcomers are the connections that have not sent a request yet, as browsers and load balancers keep them ready.
// http.Server.Shutdown waits five seconds for each of them, as if a request were running there.
type newcomers struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

// watch has the server's newcomers closed as soon as it stops listening.
func (n *newcomers) watch(server *http.Server) {
	n.conns = map[net.Conn]bool{}
	server.ConnState = n.note
	server.RegisterOnShutdown(n.close)
}

func (n *newcomers) note(conn net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state == http.StateNew {
		n.conns[conn] = true
		return
	}
	delete(n.conns, conn)
}

func (n *newcomers) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.conns {
		_ = conn.Close() // nothing was asked, nobody is told
	}
}
