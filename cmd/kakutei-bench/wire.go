package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// argument is a value that was sent with a statement, as text.
type argument struct {
	typ  uint32 // PostgreSQL's number of its type
	null bool
	text string
}

// sent is a statement as it was sent.
type sent struct {
	sql  string
	args []argument
}

// exchange is what was sent before an answer was waited for: a round trip.
type exchange []sent

// recorder is a wire between a service and its PostgreSQL that writes down what the service sends.
type recorder struct {
	server   string
	listener net.Listener
	running  sync.WaitGroup

	mu        sync.Mutex
	conns     []net.Conn
	recording bool
	exchanges []exchange
	err       error
}

// newRecorder stands before the server of a URL. The second result is the URL that the service is given.
func newRecorder(database string) (*recorder, string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	r := &recorder{server: u.Host, listener: listener}
	u.Host = listener.Addr().String()
	r.running.Go(r.serve)
	return r, u.String(), nil
}

// close cuts every connection.
func (r *recorder) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// during is what was sent while do ran, if it is wanted.
func (r *recorder) during(do func() error, wanted bool) ([]exchange, error) {
	r.mu.Lock()
	r.recording, r.exchanges = wanted, nil
	r.mu.Unlock()
	err := do()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording = false
	return r.exchanges, errors.Join(err, r.err)
}

func (r *recorder) serve() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, server)
		r.mu.Unlock()
		c := &conversation{recorder: r, statements: map[string]*prepared{}}
		r.running.Go(func() { c.ends(c.forward(client, server), client, server) })
		r.running.Go(func() { c.ends(c.back(server, client), client, server) })
	}
}

// prepared is a statement that a connection has prepared.
type prepared struct {
	sql   string
	types []uint32
}

// conversation is one connection.
type conversation struct {
	*recorder
	statements map[string]*prepared
	described  []string // statements of which the server is yet to say the types; empty where an exchange ends
	bound      sent
	under      exchange
	preparing  bool // something was prepared in this exchange
}

// ends closes both ends. How a connection ends is no error, unless it is what was sent.
func (c *conversation) ends(err error, both ...net.Conn) {
	for _, conn := range both {
		_ = conn.Close()
	}
	var gone net.Error
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &gone) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
}

// forward passes on what the service sends, each message after a look at it.
func (c *conversation) forward(from io.Reader, to io.Writer) error {
	in := pgproto3.NewBackend(from, to)
	first, err := in.ReceiveStartupMessage()
	for m := pgproto3.FrontendMessage(first); err == nil; m, err = in.Receive() {
		if err := c.look(m); err != nil {
			return err
		}
		raw, err := m.Encode(nil)
		if err != nil {
			return err
		}
		if _, err := to.Write(raw); err != nil {
			return err
		}
	}
	return err
}

// back passes on what the server answers.
func (c *conversation) back(from io.Reader, to io.Writer) error {
	in := pgproto3.NewFrontend(from, to)
	for {
		m, err := in.Receive()
		if err != nil {
			return err
		}
		if err := c.hear(m); err != nil {
			return err
		}
		raw, err := m.Encode(nil)
		if err != nil {
			return err
		}
		if _, err := to.Write(raw); err != nil {
			return err
		}
	}
}

// hear takes from an answer the types of the statement that was described first of those that still wait for them. An
// error is the answer to all that was sent in the same exchange.
func (c *conversation) hear(m pgproto3.BackendMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *pgproto3.ParameterDescription:
		if len(c.described) == 0 || c.described[0] == "" {
			return errors.New("the server describes what nobody asked for")
		}
		c.statements[c.described[0]].types = slices.Clone(m.ParameterOIDs)
		c.described = c.described[1:]
	case *pgproto3.ReadyForQuery:
		c.described = c.described[slices.Index(c.described, "")+1:]
	}
	return nil
}

// look takes from a message what it says of statements.
func (c *conversation) look(m pgproto3.FrontendMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *pgproto3.Parse:
		c.statements[m.Name] = &prepared{sql: m.Query}
		c.preparing = true
	case *pgproto3.Describe:
		if m.ObjectType == 'S' {
			c.described = append(c.described, m.Name)
		}
	case *pgproto3.Bind:
		return c.bind(m)
	case *pgproto3.Execute:
		c.under = append(c.under, c.bound)
	case *pgproto3.Query:
		c.under = append(c.under, sent{sql: m.String})
		c.over()
	case *pgproto3.Sync:
		c.over()
	}
	return nil
}

// over ends an exchange.
func (c *conversation) over() {
	if c.recording && c.preparing {
		c.err = errors.Join(c.err, errors.New("a statement was prepared while it was recorded: warm up longer"))
	}
	if c.recording && len(c.under) > 0 {
		c.exchanges = append(c.exchanges, c.under)
	}
	c.under, c.preparing = nil, false
	c.described = append(c.described, "")
}

func (c *conversation) bind(m *pgproto3.Bind) error {
	c.bound = sent{}
	if !c.recording {
		return nil
	}
	statement, known := c.statements[m.PreparedStatement]
	if !known || len(statement.types) != len(m.Parameters) {
		return fmt.Errorf("a statement is bound that nobody has prepared: %q", m.PreparedStatement)
	}
	c.bound.sql = statement.sql
	for i, value := range m.Parameters {
		format := int16(pgtype.TextFormatCode)
		switch len(m.ParameterFormatCodes) {
		case 0:
		case 1:
			format = m.ParameterFormatCodes[0]
		default:
			format = m.ParameterFormatCodes[i]
		}
		a, err := argumentOf(statement.types[i], format, value)
		if err != nil {
			return fmt.Errorf("argument %d of %s: %w", i+1, statement.sql, err)
		}
		c.bound.args = append(c.bound.args, a)
	}
	return nil
}

// argumentOf reads a value as it goes over the wire.
func argumentOf(typ uint32, format int16, value []byte) (argument, error) {
	a := argument{typ: typ, null: value == nil}
	if a.null || format == pgtype.TextFormatCode {
		a.text = string(value)
		return a, nil
	}
	types := pgtype.NewMap()
	t, known := types.TypeForOID(typ)
	if !known {
		return a, fmt.Errorf("type %d is not known", typ)
	}
	read, err := t.Codec.DecodeValue(types, typ, format, value)
	if err != nil {
		return a, err
	}
	text, err := types.Encode(typ, pgtype.TextFormatCode, read, nil)
	a.text = string(text)
	return a, err
}
