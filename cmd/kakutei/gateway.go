package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"kakutei/infrastructure/gateway"
)

// providerConfig is what the simulator can be told as a process.
type providerConfig struct {
	listen string
	book   string // a SQLite file, or memory:
	token  string
	log    logConfig
}

func (c *providerConfig) variables() []variable {
	return slices.Concat([]variable{
		{
			name: "listen", initial: "127.0.0.1:8081", option: true, set: into(&c.listen, address),
			means: "host:port to listen on (127.0.0.1:8081); port 0 takes a free one",
		},
		{
			name: "book", initial: "kakutei-gateway.db", option: true, set: into(&c.book, bookFile),
			means: "where the charges are kept (kakutei-gateway.db): a SQLite file, or memory: (forgotten at exit)",
		},
		{
			name: "KAKUTEI_GATEWAY_TOKEN", secret: true, set: into(&c.token, gatewayToken),
			means: "bearer token for the provider, which kakutei gateway demands; empty: none is sent or demanded",
		},
	}, c.log.variables())
}

// bookFile reads where a book is.
func bookFile(text string) (string, error) {
	if text == inMemory {
		return text, nil
	}
	if scheme, _, hasScheme := strings.Cut(text, ":"); hasScheme && !strings.ContainsAny(scheme, `/\.`) {
		return "", fmt.Errorf("%.80q is neither a file's path nor %s", text, inMemory)
	}
	return text, nil
}

func gatewayCommand() command {
	var c providerConfig
	return command{
		name:      "gateway",
		does:      "run the payment provider simulator over HTTP, for KAKUTEI_GATEWAY=http://…; ends as serve does",
		variables: c.variables(),
		run:       c.serve,
	}
}

// Of a running charge: how long it may take to end after SIGTERM, and how long a book may keep it waiting.
const (
	providerGrace    = 15 * time.Second
	bookPatience     = 5 * time.Second
	bookReaders      = 8
	requestPatience  = 10 * time.Second // for a request to arrive whole
	connectionsSleep = time.Minute      // until one that is not used is closed
)

// serve runs the simulator until it is asked to stop.
func (c *providerConfig) serve(ctx context.Context, p program) error {
	log := c.log.logger(p.stderr)
	ctx, cut, end := watch(ctx, p.notify)
	defer end()
	book, closer, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("--book: %w", err)
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("--listen: %w", err), closer.Close())
	}
	s := &service{
		server: &http.Server{
			Handler: gateway.NewHandler(gateway.HandlerConfig{Book: book, Clock: time.Now, Token: c.token, Log: log}),
			// An answer may be as late as a payment method says: writing has no limit.
			ReadTimeout: requestPatience, IdleTimeout: connectionsSleep,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		listener: listener, last: func(context.Context) {}, dropped: func() {}, lastly: func(context.Context) {},
		store: closer, unready: func() {}, grace: providerGrace, log: log,
	}
	return s.run(ctx, cut, func() {
		log.Info("serving", "address", listener.Addr().String(), "book", c.book, "token", c.token != "")
		fmt.Fprintf(p.stdout, "The payment provider simulator is serving.\n\n  gateway  http://%s\n  book     %s\n\n",
			reachable(listener.Addr()), c.book)
	})
}

func (c *providerConfig) open(ctx context.Context) (gateway.Book, io.Closer, error) {
	if c.book == inMemory {
		return gateway.NewMemoryBook(), io.NopCloser(nil), nil
	}
	file := storeConfig{url: "sqlite:" + c.book, pool: bookReaders, lockTimeout: bookPatience}
	s, err := file.store(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := prepare(ctx, s); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s.Book(), s, nil
}
