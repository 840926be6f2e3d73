package gormstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"kakutei/application/port"
	"kakutei/domain/fault"
)

// connectTimeout is for addresses that say nothing of it (connect_timeout).
const connectTimeout = 5 * time.Second

// brief is how long a reservation waits for what another transaction holds, and whoever is on a lane.
const brief = 100 * time.Millisecond

// postgresEngine talks to PostgreSQL, pipelined: an exchange is one round trip, however many statements it has.
type postgresEngine struct {
	pool        *pgxpool.Pool
	turns       *turns // of its connections
	lockTimeout time.Duration
	brief       time.Duration
}

func openPostgres(ctx context.Context, c Config) (*postgresEngine, error) {
	settings, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("gormstore: the PostgreSQL address cannot be read") // the parser's words may hold the password
	}
	settings.MaxConns = int32(min(c.Pool, 10_000)) //nolint:gosec // bounded one word before
	if settings.ConnConfig.ConnectTimeout == 0 {
		settings.ConnConfig.ConnectTimeout = connectTimeout
	}
	settings.ConnConfig.OnNotice = heed
	settings.BeforeConnect = uncancelling
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("gormstore: %w", err)
	}
	return &postgresEngine{pool: pool, turns: newTurns(int(settings.MaxConns)), lockTimeout: c.LockTimeout, brief: brief}, nil
}

// keepsPlans tells whether a connection keeps the statements that it has prepared, as pgx does unless the address says no.
func (e *postgresEngine) keepsPlans() bool {
	return e.pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// SharesMachine tells whether a database server runs on this machine: by its addresses, all of which are sockets or loopback
// ones. SQLite is no server.
func (s *Store) SharesMachine() bool {
	e, isServer := s.engine.(*postgresEngine)
	if !isServer {
		return false
	}
	at := e.pool.Config().ConnConfig
	return isHere(at.Host) && !slices.ContainsFunc(at.Fallbacks, func(f *pgconn.FallbackConfig) bool { return !isHere(f.Host) })
}

func isHere(host string) bool {
	if network, _ := pgconn.NetworkAddress(host, 0); network == "unix" || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (e *postgresEngine) close() error {
	e.pool.Close()
	return nil
}

// errAllTaken is for who cannot wait.
var errAllTaken = errors.New("all are in use")

func (e *postgresEngine) open(ctx context.Context, w way) (link, error) {
	acquire, cancel := context.WithTimeout(ctx, e.lockTimeout)
	defer cancel()
	var err error
	if !w.waited {
		err = e.turns.take(acquire, w.finishes())
	} else if !e.turns.takeFree() {
		err = errAllTaken
	}
	if err != nil {
		return nil, port.ErrUnavailable.Because(fmt.Errorf("%w: %w", errNoConnection, err))
	}
	conn, err := e.pool.Acquire(acquire)
	if err != nil {
		e.turns.give()
		return nil, port.ErrUnavailable.Because(fmt.Errorf("%w: %w", errNoConnection, err))
	}
	l := &postgresLink{ctx: ctx, conn: conn, done: e.turns.give, reads: w.reads, onLane: w.onLane, together: w.together > 0, rowWait: e.lockTimeout, lockTimeout: e.lockTimeout}
	if w.wait == port.Briefly || w.onLane {
		l.rowWait = min(e.brief, e.lockTimeout)
	}
	return l, nil
}

// postgresBegin names what the service relies on, whatever the server's default is.
const postgresBegin = "BEGIN ISOLATION LEVEL READ COMMITTED"

// The settings are sent with BEGIN and hold for the transaction: behind a pooler, a session's would be another client's.
// BEGIN is sent with the first statement, so now() is no older than that, and the same wherever it stands.
const (
	postgresSettings = `SELECT now(), current_setting('transaction_read_only') = 'on', set_config('lock_timeout', $1, true),
	set_config('statement_timeout', $2, true), set_config('idle_in_transaction_session_timeout', $2, true)`
	postgresReading = `SELECT now(), false, set_config('lock_timeout', $1, true),
	set_config('statement_timeout', $2, true), set_config('transaction_read_only', 'on', true)`
	// A statement for many is planned once, and looks up each by its index: how many there will be, and how large the tables
	// have become meanwhile, is not known then.
	postgresTogether = `, set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`
)

// errReadOnly says that the server lets this connection write nothing. A new one may be let, or be with another server.
var errReadOnly = errors.New("the database is read-only")

// postgresLink is a transaction, or reads: then each exchange is one of its own, which the server ends with its answer.
// In READ COMMITTED that is no difference: a statement sees what is committed when it begins.
type postgresLink struct {
	ctx         context.Context //nolint:containedctx // the transaction's: it bounds the rollback too
	conn        *pgxpool.Conn
	done        func() // lets the next one have its turn
	reads       bool
	onLane      bool
	together    bool
	rowWait     time.Duration
	lockTimeout time.Duration
	begun       bool
	demoted     bool // it was to write and cannot: the connection is of no more use
	ended       bool
	clock       time.Time
}

func (l *postgresLink) now() time.Time { return l.clock }

func (l *postgresLink) exchange(ctx context.Context, writes []write, questions ...question) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	broken, err := l.send(ctx, writes, questions, false)
	switch {
	case err == nil:
		return nil
	case l.onLane && isPostgres(err, lockNotAvailable): // whoever may wait longer does so elsewhere
		return fmt.Errorf("%w: %w", errAlone, err)
	case (broken || l.demoted) && ctx.Err() == nil: // nothing is committed, and another connection may be whole
		return fmt.Errorf("%w: %w", errAgain, err)
	default:
		return postgresFault(err)
	}
}

func (l *postgresLink) commit(ctx context.Context, writes []write) error {
	if !l.begun && len(writes) == 0 {
		return nil
	}
	if !l.begun && !l.prepared(writes) {
		if err := l.exchange(ctx, nil); err != nil {
			return err
		}
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	broken, err := l.send(ctx, writes, nil, true)
	switch {
	case err == nil:
		l.ended = true
		before := l.committed()
		for _, w := range writes {
			before[committed{w.sql, w.miss != nil}] = true
		}
		if !replicated(l.conn.Conn().PgConn()) {
			return fmt.Errorf("%w: %w", port.ErrCommitUnknown, errNotReplicated)
		}
		return nil
	case l.onLane && isPostgres(err, lockNotAvailable):
		return fmt.Errorf("%w: %w", errAlone, err)
	case l.demoted:
		return fmt.Errorf("%w: %w", errAgain, err)
	case broken && !pgconn.SafeToRetry(err) && (l.begun || !saysGoodbye(err)):
		return fmt.Errorf("%w: %w", port.ErrCommitUnknown, err)
	case broken && ctx.Err() == nil: // nothing was done: the connection was dead before, and another one may be whole
		return fmt.Errorf("%w: %w", errAgain, err)
	default:
		return postgresFault(err)
	}
}

// committed is a write that a connection has sent together with a COMMIT.
type committed struct {
	sql     string
	guarded bool
}

// prepared tells whether the connection has sent these writes with a COMMIT before, and so has prepared them. Before it has,
// BEGIN goes first: what is prepared without the transaction's limits waits as long as somebody locks the table, and nobody
// would know whether COMMIT was sent.
func (l *postgresLink) prepared(writes []write) bool {
	before := l.committed()
	return !slices.ContainsFunc(writes, func(w write) bool { return !before[committed{w.sql, w.miss != nil}] })
}

func (l *postgresLink) committed() map[committed]bool {
	const key = "kakutei: what was sent with a COMMIT"
	data := l.conn.Conn().PgConn().CustomData()
	before, _ := data[key].(map[committed]bool)
	if before == nil {
		before = map[committed]bool{}
		data[key] = before
	}
	return before
}

// bounded gives up on a server that keeps no time limit: it is stalled, or a new connection's statement is being prepared,
// which comes before BEGIN and its settings.
func (l *postgresLink) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, twice(twice(l.lockTimeout)))
}

// send makes one round trip. broken tells that the error is the connection's, or may be: what was sent may or may not
// have been done.
func (l *postgresLink) send(
	ctx context.Context, writes []write, questions []question, commit bool,
) (broken bool, err error) {
	batch := &pgx.Batch{}
	if !l.begun {
		settings := postgresReading
		if !l.reads {
			batch.Queue(postgresBegin)
			settings = postgresSettings
		}
		if l.together {
			settings += postgresTogether
		}
		batch.Queue(settings, milliseconds(l.rowWait), milliseconds(twice(l.lockTimeout)))
	}
	for _, w := range writes {
		batch.Queue(w.guarded(), w.args...)
	}
	for _, q := range questions {
		batch.Queue(q.sql, q.args...)
	}
	if commit {
		batch.Queue("COMMIT")
	}
	results := l.conn.SendBatch(ctx, batch)
	err = l.receive(results, writes, questions, commit)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return isBroken(err), err
}

func (l *postgresLink) receive(
	results pgx.BatchResults, writes []write, questions []question, commit bool,
) error {
	if !l.begun {
		if err := l.receiveBegin(results); err != nil {
			return err
		}
	}
	for _, w := range writes {
		if err := readWrite(results, w); err != nil {
			return meant(err, w.miss, w.busy, w.taken)
		}
	}
	for _, q := range questions {
		if err := readAll(results, q.each); err != nil {
			return meant(err, nil, q.busy, taken{})
		}
	}
	if commit {
		tag, err := results.Exec()
		if err != nil {
			return err
		}
		if tag.String() != "COMMIT" {
			return fmt.Errorf("COMMIT was answered %s", tag.String())
		}
	}
	return nil
}

func (l *postgresLink) receiveBegin(results pgx.BatchResults) error {
	if !l.reads {
		if _, err := results.Exec(); err != nil {
			return err
		}
		l.begun = true
	}
	var clock time.Time
	var serverReadOnly bool
	into := []any{&clock, &serverReadOnly, nil, nil, nil, nil, nil, nil, nil}
	if !l.together {
		into = into[:5]
	}
	if err := results.QueryRow().Scan(into...); err != nil {
		return err
	}
	if l.clock.IsZero() {
		l.clock = clock.UTC()
	}
	if l.demoted = serverReadOnly; l.demoted {
		return errReadOnly
	}
	return nil
}

func readWrite(results pgx.BatchResults, w write) (err error) {
	if w.each == nil {
		_, err = results.Exec()
		return err
	}
	_, err = w.told(func(each func(row) error) error { return readAll(results, each) })
	return err
}

func readAll(results pgx.BatchResults, each func(row) error) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// end undoes what is not committed and gives the connection back. One that cannot even do that is closed by the pool, and
// so is one to a server that lets nobody write any more: the next may find its successor.
func (l *postgresLink) end() {
	defer l.release()
	if l.demoted {
		ctx, cancel := context.WithTimeout(l.ctx, l.lockTimeout)
		defer cancel()
		_ = l.conn.Conn().Close(ctx)
		return
	}
	if l.ended || !l.begun || l.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.lockTimeout)
	defer cancel()
	if _, err := l.conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = l.conn.Conn().Close(ctx)
	}
}

// release gives the connection back. To one that was given up pgx would listen on for 15 s, and the pool would count it for
// so long: what a silent server holds would be missing for its successor.
func (l *postgresLink) release() {
	if c := l.conn.Conn(); c.IsClosed() {
		_ = c.PgConn().Conn().Close()
	}
	l.conn.Release()
	l.done()
}

// milliseconds is a setting of the server's, which has 32 bits for it.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(min(max(1, d.Milliseconds()), math.MaxInt32), 10)
}

func twice(d time.Duration) time.Duration {
	if d > math.MaxInt64/2 {
		return d
	}
	return 2 * d
}

// saysGoodbye tells that the server itself has ended the session. It answers in order: if BEGIN was not answered before, it
// has done nothing of what was sent. A pooler's word, which may overtake the server's answers, names no routine.
func saysGoodbye(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == adminShutdown && pg.Routine != ""
}

const (
	adminShutdown       = "57P01"
	divisionByZero      = "22012"
	serializationFailed = "40001"
	deadlockDetected    = "40P01"
	lockNotAvailable    = "55P03"
	uniqueViolation     = "23505"
	planChanged         = "0A000" // a cached statement after a migration; pgx prepares it anew
)

// guarded is the statement in a form that fails when it meets no row, if it must meet one. COMMIT may travel behind it:
// only SQL can still stop that.
func (w write) guarded() string {
	switch {
	case w.miss == nil, w.own:
		return w.sql
	case w.each == nil:
		return "WITH touched AS (" + w.sql + " RETURNING 1) SELECT 1/count(*) FROM touched"
	default:
		return "WITH found AS (" + w.sql + "), met AS (SELECT 1/count(*) AS one FROM found) " +
			"SELECT found.* FROM met LEFT JOIN found ON met.one = 1"
	}
}

// meant is what the server's "no" means.
func meant(err, miss, busy error, t taken) error {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
		return err
	case pg.Code == divisionByZero && miss != nil:
		return fmt.Errorf("%w: %w", miss, err)
	case pg.Code == lockNotAvailable && busy != nil:
		return fmt.Errorf("%w: %w", busy, err)
	case pg.Code == uniqueViolation && t.by != nil && pg.ConstraintName == t.constraint:
		return fmt.Errorf("%w: %w", t.by, err)
	default:
		return err
	}
}

// connectionException is a class of codes. A pooler between here and the server tells by one that it has lost the server,
// and not each does so as the last word of a connection.
const connectionException = "08"

// isBroken tells an error of the connection, or one that ends it, from the server's plain "no" to a statement.
func isBroken(err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return false
	case errors.As(err, &pg):
		isPlain := pg.SeverityUnlocalized == "ERROR" || pg.Severity == "ERROR"
		return !isPlain || strings.HasPrefix(pg.Code, connectionException)
	default:
		return true
	}
}

func isPostgres(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// postgresFault names the server's "no", unless the write has.
func postgresFault(err error) error {
	var pg *pgconn.PgError
	_, isNamed := fault.From(err)
	switch {
	case isNamed, errors.Is(err, errAgain), errors.Is(err, errPresumed):
		return err
	case errors.As(err, &pg):
		switch pg.Code {
		case serializationFailed, deadlockDetected, planChanged:
			return fmt.Errorf("%w: %w", errAgain, err)
		case lockNotAvailable:
			return fmt.Errorf("%w: %w", errBusy, err)
		}
	}
	return port.ErrUnavailable.Because(err)
}
