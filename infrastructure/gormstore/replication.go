package gormstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// With synchronous replication a COMMIT is answered when a standby has it. While it waits it is written on the primary
// already, and nobody sees it. Whoever cancels the wait, by pg_cancel_backend, pg_terminate_backend or a restart, makes
// it seen, and lost if that standby takes over. So nothing here cancels a COMMIT, one whose wait was cancelled is none
// that is known, and an answer from what stands on record is given behind a COMMIT that waits itself (ADR 0028).

var (
	errNoCancel      = errors.New("gormstore: a statement that is given up is not cancelled")
	errNotReplicated = errors.New("committed on this server, and no standby has confirmed it")
)

// uncancelling is for a new connection: pgx cancels what runs on a connection when it gives it up, by dialling once more.
// Statements have their time limits on the server; COMMIT has none while it waits for a standby, and must not have one.
func uncancelling(_ context.Context, c *pgx.ConnConfig) error {
	var connected atomic.Bool
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	c.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	return nil
}

// waitCancelled is where a connection keeps that the server has warned of a wait that was cancelled.
const waitCancelled = "kakutei: wait for a standby cancelled"

// heed keeps the server's one warning that matters. Its words are in the server's language and its code is that of any
// warning, so it is known by the part of the server that it comes from.
func heed(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.File == "syncrep.c" {
		c.CustomData()[waitCancelled] = n.Message
	}
}

// replicated tells whether the server has ended the COMMIT before without that warning.
func replicated(c *pgconn.PgConn) bool {
	_, warned := c.CustomData()[waitCancelled]
	delete(c.CustomData(), waitCancelled)
	return !warned
}

// behindStandby locks a row that was read so that the COMMIT waits for a standby as if the row had been written: then
// the standby has whatever is on record up to here. It locks none where no standby is waited for, and stops nobody but
// one who deletes the row.
const behindStandby = ` AND current_setting('synchronous_standby_names', true) <> '' FOR KEY SHARE`
