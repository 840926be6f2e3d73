// Package pgproxy is a wire between a service and a PostgreSQL server that fails as networks do, at chosen moments. It is
// for tests only, and reads the protocol just far enough to see a COMMIT go and its answer come.
package pgproxy

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections to one server until it is told otherwise.
type Proxy struct {
	server   string
	listener net.Listener

	mu      sync.Mutex
	wires   map[*wire]bool
	cut     bool          // no connection comes through
	passing chan struct{} // closed while bytes pass
	pause   time.Duration // before each piece
	piece   int           // bytes at most; 0: a message is one piece
	commits int           // until the planned fault
	fault   Fault
	struck  chan struct{} // closed when the planned fault has happened
}

// Fault is what happens to a COMMIT.
type Fault int

const (
	// LoseAnswer has the server commit and cuts the connection instead of the answer.
	LoseAnswer Fault = iota + 1
	// LoseCommit cuts the connection before the server sees the COMMIT.
	LoseCommit
	// HoldAnswer has the server commit and never forwards the answer, on a connection that stays open.
	HoldAnswer
	// LoseAnswerAndCut is LoseAnswer, and no connection comes through until Mend.
	LoseAnswerAndCut
)

// Between starts a proxy in front of the server of a postgres:// URL, and returns the URL by which it is reached. Both are
// gone when t ends. TLS would hide what passes: the URL says sslmode=disable.
func Between(t testing.TB, server string) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Query().Get("sslmode") != "disable" {
		t.Fatalf("pgproxy: the server's URL must name a host and say sslmode=disable")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgproxy: %v", err)
	}
	p := &Proxy{server: u.Host, listener: listener, wires: map[*wire]bool{}, passing: make(chan struct{})}
	close(p.passing)
	var running sync.WaitGroup
	running.Go(func() { p.serve(&running) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.Mend()
		p.Reset()
		running.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

// Strike plans a fault for the n-th COMMIT from now. The channel is closed when it has happened.
func (p *Proxy) Strike(n int, f Fault) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits, p.fault, p.struck = n, f, make(chan struct{})
	return p.struck
}

// Reset breaks every connection, as a peer that has been restarted does.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset()
}

func (p *Proxy) reset() {
	for w := range p.wires {
		w.reset()
	}
}

// Cut breaks every connection and lets none through until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.reset()
}

// Stall holds back every byte, both ways, until Mend. No connection breaks.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passing = make(chan struct{})
}

// Slow has every piece of a message, both ways, wait for a pause before it passes, until Mend. A pause alone is the latency
// of a long way, with small pieces it is a narrow one. A piece of 0 bytes is a whole message.
func (p *Proxy) Slow(pause time.Duration, piece int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause, p.piece = pause, piece
}

// Mend ends Cut, Stall and Slow.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.pause, p.piece = false, 0, 0
	select {
	case <-p.passing:
	default:
		close(p.passing)
	}
}

func (p *Proxy) serve(running *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w := &wire{proxy: p, client: client.(*net.TCPConn), server: server.(*net.TCPConn), statements: map[string]string{}}
		if !p.add(w) {
			w.reset()
			continue
		}
		running.Go(func() { w.forward(w.client, w.server, w.sent, true) })
		running.Go(func() { w.forward(w.server, w.client, w.answered, false) })
	}
}

func (p *Proxy) add(w *wire) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	p.wires[w] = true
	return true
}

func (p *Proxy) remove(w *wire) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wires, w)
}

// gate waits while nothing may pass.
func (p *Proxy) gate() {
	p.mu.Lock()
	passing := p.passing
	p.mu.Unlock()
	<-passing
}

// next is how much of a message passes at once, and what it waits for before.
func (p *Proxy) next(raw []byte) (int, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.piece == 0 {
		return len(raw), p.pause
	}
	return min(p.piece, len(raw)), p.pause
}

// strikes tells whether a COMMIT that goes to the server is the planned one, and what is to happen to it.
func (p *Proxy) strikes() (Fault, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.commits == 0 {
		return 0, nil
	}
	if p.commits--; p.commits > 0 {
		return 0, nil
	}
	return p.fault, p.struck
}

// errStruck ends a direction of a wire on purpose.
var errStruck = errors.New("pgproxy: struck")

// discard reads until the other side has enough.
func discard(from io.Reader) { _, _ = io.Copy(io.Discard, from) }
