package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"kakutei/application/port"
)

// sqliteEngine talks to a SQLite file. One connection writes, since SQLite has one writer at a time anyway and queueing
// for it here is fair and cancellable; others read beside it.
type sqliteEngine struct {
	writer      *sql.DB
	readers     *sql.DB
	lockTimeout time.Duration
}

func openSQLite(path string, c Config) (*sqliteEngine, error) {
	writer, err := sql.Open("sqlite", sqliteAddress(path, c.LockTimeout))
	if err != nil {
		return nil, fmt.Errorf("gormstore: %w", err)
	}
	writer.SetMaxOpenConns(1)
	readers, err := sql.Open("sqlite", sqliteAddress(path, c.LockTimeout, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	readers.SetMaxOpenConns(c.Pool)
	readers.SetMaxIdleConns(c.Pool)
	return &sqliteEngine{writer: writer, readers: readers, lockTimeout: c.LockTimeout}, nil
}

// sqliteAddress asks for the durability of a payment: the log is flushed at each commit.
func sqliteAddress(path string, wait time.Duration, more ...string) string {
	pragmas := append([]string{
		fmt.Sprintf("busy_timeout(%d)", max(1, wait.Milliseconds())),
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	}, more...)
	file := url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return file.String()
}

func (e *sqliteEngine) close() error { return errors.Join(e.writer.Close(), e.readers.Close()) }

func (e *sqliteEngine) open(ctx context.Context, _ port.Wait, readOnly bool) (link, error) {
	db, begin := e.writer, "BEGIN IMMEDIATE"
	if readOnly {
		db, begin = e.readers, "BEGIN"
	}
	acquire, cancel := context.WithTimeout(ctx, e.lockTimeout)
	defer cancel()
	conn, err := db.Conn(acquire)
	if err != nil {
		return nil, port.ErrUnavailable.Because(fmt.Errorf("no connection: %w", err))
	}
	deadline, _ := acquire.Deadline()
	return &sqliteLink{conn: conn, begin: begin, beginBy: deadline, lockTimeout: e.lockTimeout}, nil
}

type sqliteLink struct {
	conn        *sql.Conn
	begin       string
	beginBy     time.Time // one lock timeout for the connection and for the file
	lockTimeout time.Duration
	clock       time.Time
	ended       bool
}

// now is this machine's time: every process that has the file open runs on it.
func (l *sqliteLink) now() time.Time { return l.clock }

func (l *sqliteLink) exchange(ctx context.Context, writes []write, question *statement, each func(row) error) error {
	if l.clock.IsZero() {
		if err := l.start(ctx); err != nil { // it has waited already: no reason to repeat
			return port.ErrUnavailable.Because(err)
		}
		l.clock = time.Now().UTC().Truncate(time.Microsecond)
	}
	for _, w := range writes {
		if err := l.write(ctx, w); err != nil {
			return err
		}
	}
	if question == nil {
		return nil
	}
	return sqliteFault(l.read(ctx, *question, each))
}

// start begins the transaction. An interrupted BEGIN may have begun it all the same: such a connection is not used again.
func (l *sqliteLink) start(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, l.beginBy)
	defer cancel()
	_, err := l.conn.ExecContext(ctx, l.begin)
	if err != nil {
		l.discard()
	}
	return err
}

func (l *sqliteLink) discard() { _ = l.conn.Raw(func(any) error { return driver.ErrBadConn }) }

func (l *sqliteLink) write(ctx context.Context, w write) error {
	if w.each != nil {
		return l.readSome(ctx, w)
	}
	args, err := bindSQLite(w.args)
	if err != nil {
		return err
	}
	done, err := l.conn.ExecContext(ctx, w.sql, args...)
	if err != nil {
		if w.by != nil && sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT && strings.Contains(err.Error(), "."+w.column) {
			err = fmt.Errorf("%w: %w", w.by, err)
		}
		return sqliteFault(err)
	}
	if n, err := done.RowsAffected(); err == nil && n == 0 && w.miss != nil {
		return w.miss
	}
	return nil
}

func (l *sqliteLink) readSome(ctx context.Context, w write) error {
	met := 0
	err := l.read(ctx, w.statement, func(answer row) error {
		met++
		return w.each(answer)
	})
	if err == nil && met == 0 && w.miss != nil {
		return w.miss
	}
	return sqliteFault(err)
}

func (l *sqliteLink) read(ctx context.Context, q statement, each func(row) error) error {
	args, err := bindSQLite(q.args)
	if err != nil {
		return err
	}
	rows, err := l.conn.QueryContext(ctx, q.sql, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (l *sqliteLink) commit(ctx context.Context, writes []write) error {
	if l.clock.IsZero() && len(writes) == 0 {
		return nil
	}
	if err := l.exchange(ctx, writes, nil, nil); err != nil {
		return err
	}
	_, err := l.conn.ExecContext(ctx, "COMMIT")
	switch {
	case err == nil:
		l.ended = true
		return nil
	case sqliteRefusedCommit(err):
		return sqliteFault(err)
	default:
		return fmt.Errorf("%w: %w", port.ErrCommitUnknown, err)
	}
}

// end undoes what is not committed. A connection that cannot even do that is not used again.
func (l *sqliteLink) end() {
	if !l.ended && !l.clock.IsZero() {
		ctx, cancel := context.WithTimeout(context.Background(), l.lockTimeout)
		defer cancel()
		// SQLite undoes some failed transactions by itself and then says that none is active.
		if _, err := l.conn.ExecContext(ctx, "ROLLBACK"); err != nil && sqliteCode(err) != sqlite3.SQLITE_ERROR {
			l.discard()
		}
	}
	_ = l.conn.Close()
}

// bindSQLite resolves values that know how to be stored, and times to integers.
func bindSQLite(args []any) ([]any, error) {
	bound := make([]any, len(args))
	for i, arg := range args {
		if v, ok := arg.(driver.Valuer); ok {
			value, err := v.Value()
			if err != nil {
				return nil, fmt.Errorf("gormstore: %w", err)
			}
			arg = value
		}
		if at, ok := arg.(time.Time); ok {
			arg = at.UnixMicro()
		}
		bound[i] = arg
	}
	return bound, nil
}

// sqliteFault names SQLite's "no". A busy file is worth another try: all waiting was done when the transaction began.
func sqliteFault(err error) error {
	switch {
	case err == nil, errors.Is(err, errAgain):
		return err
	case sqliteCode(err) == sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%w: %w", errAgain, err)
	default:
		return port.ErrUnavailable.Because(err)
	}
}

// sqliteRefusedCommit tells the errors after which nothing is committed for certain.
func sqliteRefusedCommit(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY:
		return true
	default:
		return false
	}
}

// sqliteCode is the primary result code; 0 when the error is not SQLite's.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
