package gormstore

import (
	"errors"
	"io"
	"io/fs"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsAway tells whether a store may come back by itself: it cannot be reached, it is starting or stopping, it has no
// connection left, or none of its hosts is the one that the address wants (target_session_attrs), as in a failover. A
// wrong password, a missing database or a file that may not be written does not go away by waiting.
func IsAway(err error) bool {
	if errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) {
		return true
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "57P01", "57P02", "57P03", // stopping, crashed, starting
			"53300": // too many connections
			return true
		}
		return false
	}
	var file *fs.PathError
	if errors.As(err, &file) { // its errno would pass for a network's
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
