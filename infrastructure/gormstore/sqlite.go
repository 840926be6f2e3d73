package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
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
	file        *sqliteFile
	writer      *sql.DB
	writing     *turns
	readers     *sql.DB
	lockTimeout time.Duration
}

func openSQLite(path string, c Config) (*sqliteEngine, error) {
	connector, err := sqlite.NewConnector(sqliteAddress(path, c.LockTimeout))
	if err != nil {
		return nil, fmt.Errorf("gormstore: %w", err)
	}
	writer := sql.OpenDB(impatient{connector, path})
	writer.SetMaxOpenConns(1)
	readers, err := sql.Open("sqlite", sqliteAddress(path, c.LockTimeout, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	readers.SetMaxOpenConns(c.Pool + 1) // one of them only holds the file
	readers.SetMaxIdleConns(c.Pool)
	return &sqliteEngine{
		file: watchSQLite(path, readers), writer: writer, writing: newTurns(1), readers: readers,
		lockTimeout: c.LockTimeout,
	}, nil
}

// impatient opens connections that do not wait for the file by themselves: start waits, and asks more often. While it is
// opened such a connection waits like every other.
type impatient struct {
	driver.Connector
	path string
}

// Connect implements driver.Connector.
func (i impatient) Connect(ctx context.Context) (driver.Conn, error) {
	if err := mayWrite(i.path); err != nil {
		return nil, err
	}
	c, err := i.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.(driver.ExecerContext).ExecContext(ctx, "PRAGMA busy_timeout(0)", nil); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
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

func (e *sqliteEngine) close() error {
	if e.file.gone() {
		return nil
	}
	return errors.Join(e.file.letGo(), e.writer.Close(), e.readers.Close())
}

func (e *sqliteEngine) open(ctx context.Context, w way) (link, error) {
	acquire, cancel := context.WithTimeout(ctx, e.lockTimeout)
	defer cancel()
	if err := errors.Join(e.file.meet(acquire), e.file.present()); err != nil {
		return nil, port.ErrUnavailable.Because(err)
	}
	db, begin, done := e.readers, "BEGIN", func() {}
	if !w.reads {
		db, begin, done = e.writer, "BEGIN IMMEDIATE", e.writing.give
		if err := e.writing.take(acquire, w.finishes()); err != nil {
			return nil, port.ErrUnavailable.Because(fmt.Errorf("no turn to write: %w", err))
		}
	}
	conn, err := db.Conn(acquire)
	if err != nil {
		done()
		return nil, port.ErrUnavailable.Because(fmt.Errorf("no connection: %w", err))
	}
	deadline, _ := acquire.Deadline()
	return &sqliteLink{
		file: e.file, conn: conn, done: done, begin: begin, beginBy: deadline, lockTimeout: e.lockTimeout,
	}, nil
}

type sqliteLink struct {
	file        *sqliteFile
	conn        *sql.Conn
	done        func() // lets the next one have its turn
	begin       string
	beginBy     time.Time // one lock timeout for the turn, the connection and the file
	lockTimeout time.Duration
	clock       time.Time
	ended       bool
}

// now is this machine's time: every process that has the file open runs on it.
func (l *sqliteLink) now() time.Time { return l.clock }

func (l *sqliteLink) exchange(ctx context.Context, writes []write, questions ...question) error {
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
	for _, q := range questions {
		if err := l.read(ctx, q.statement, q.each); err != nil {
			return sqliteFault(err)
		}
	}
	return nil
}

// askAgain is the longest time between two questions for a file that another process holds. SQLite itself would soon
// ask every 100 ms only, and find that the other has taken the file again each time.
const askAgain = 2 * time.Millisecond

// start begins the transaction. An interrupted BEGIN may have begun it all the same: such a connection is not used again.
func (l *sqliteLink) start(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, l.beginBy)
	defer cancel()
	_, err := l.conn.ExecContext(ctx, l.begin)
	for sqliteCode(err) == sqlite3.SQLITE_BUSY && pauseFor(ctx, rand.N(askAgain)) { //nolint:gosec // jitter is no secret
		_, err = l.conn.ExecContext(ctx, l.begin)
	}
	if err == nil {
		err = l.file.present()
	}
	if err != nil {
		discard(l.conn)
	}
	return err
}

// discard closes a connection for good.
func discard(c *sql.Conn) { _ = c.Raw(func(any) error { return driver.ErrBadConn }) }

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
	met, err := w.told(func(each func(row) error) error { return l.read(ctx, w.statement, each) })
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
	if err := l.exchange(ctx, writes); err != nil {
		return err
	}
	if err := l.file.present(); err != nil {
		return port.ErrUnavailable.Because(err)
	}
	_, err := l.conn.ExecContext(ctx, "COMMIT")
	if err == nil {
		l.ended = true
		err = l.file.present() // else it may be in the lost one
	}
	switch {
	case err == nil:
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
			discard(l.conn)
		}
	}
	_ = l.conn.Close()
	l.done()
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

// sqliteRefusedCommit tells the errors after which nothing is committed for certain. What a log could not be written
// with, for a quota or a limit, lacks the end that would make it a commit; of a flush that failed nobody knows.
func sqliteRefusedCommit(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_WRITE {
		return true
	}
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
