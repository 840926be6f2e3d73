package pgproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// wire is one connection, of the client and to the server.
type wire struct {
	proxy          *Proxy
	client, server *net.TCPConn
	statements     map[string]string // prepared by the client, by name

	mu     sync.Mutex
	fault  Fault // what happens to the answer of the COMMIT that is under way
	struck chan struct{}
}

// reset drops both connections, without a farewell.
func (w *wire) reset() {
	for _, c := range []*net.TCPConn{w.client, w.server} {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// message is one of the protocol's: its type, 0 where it has none, and the whole of it.
type message struct {
	kind byte
	body []byte // behind the length
	raw  []byte
}

// readMessage reads one message. The very first of a client has no type.
func readMessage(from io.Reader, typed bool) (m message, err error) {
	head := make([]byte, 4, 5)
	if typed {
		head = head[:5]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return m, err
	}
	size := binary.BigEndian.Uint32(head[len(head)-4:])
	if size < 4 || size > 1<<26 {
		return m, errors.New("pgproxy: this is not PostgreSQL's protocol")
	}
	m.body = make([]byte, size-4)
	if _, err := io.ReadFull(from, m.body); err != nil {
		return m, err
	}
	if typed {
		m.kind = head[0]
	}
	m.raw = append(head, m.body...)
	return m, nil
}

// forward passes messages on in one direction, each after a look at it, until one side or the proxy has enough.
func (w *wire) forward(from, to *net.TCPConn, look func(message) error, untyped bool) {
	defer w.proxy.remove(w)
	defer w.reset()
	for {
		m, err := readMessage(from, !untyped)
		if err != nil {
			return
		}
		untyped = false
		w.proxy.gate()
		if err := look(m); err != nil {
			return
		}
		if err := w.pass(to, m.raw); err != nil {
			return
		}
	}
}

// pass writes a message in pieces, as slowly as the way is at that time.
func (w *wire) pass(to io.Writer, raw []byte) error {
	for len(raw) > 0 {
		n, pause := w.proxy.next(raw)
		if pause > 0 {
			time.Sleep(pause)
		}
		if _, err := to.Write(raw[:n]); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

// sent looks at what the client sends: whether it runs a COMMIT that is to be struck.
func (w *wire) sent(m message) error {
	if !w.commits(m) {
		return nil
	}
	fault, struck := w.proxy.strikes()
	if fault == LoseCommit {
		close(struck)
		return errStruck
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if fault != 0 {
		w.fault, w.struck = fault, struck
	}
	return nil
}

// commits tells whether the message has the server run COMMIT: as text, or prepared under a name before.
func (w *wire) commits(m message) bool {
	first, rest, _ := bytes.Cut(m.body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch m.kind {
	case 'Q': // Query: text
		return isCommit(string(first))
	case 'P': // Parse: name, text
		w.statements[string(first)] = string(second)
	case 'B': // Bind: portal, name
		return isCommit(w.statements[string(second)])
	}
	return false
}

func isCommit(sql string) bool { return strings.EqualFold(strings.TrimSpace(sql), "commit") }

// answered looks at what the server answers: whether it is the answer to a COMMIT that is to be struck. CommandComplete
// says that the commit was applied.
func (w *wire) answered(m message) error {
	if m.kind != 'C' || !bytes.Equal(m.body, []byte("COMMIT\x00")) {
		return nil
	}
	w.mu.Lock()
	fault, struck := w.fault, w.struck
	w.fault = 0
	w.mu.Unlock()
	if fault == 0 {
		return nil
	}
	if fault == LoseAnswerAndCut {
		w.proxy.Cut()
	}
	close(struck)
	if fault == HoldAnswer {
		discard(w.server) // until one side hangs up
	}
	return errStruck
}
