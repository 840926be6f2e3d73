package gormstore

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"kakutei/application/port"
	"kakutei/domain/order"
)

// Timeouts are the settings lock_timeout, statement_timeout and idle_in_transaction_session_timeout in a transaction.
func Timeouts(t *testing.T, s *Store, wait port.Wait) []string {
	t.Helper()
	settings := make([]string, 3)
	require.NoError(t, s.do(t.Context(), wait, func(tx *session) error {
		q := statement{sql: `SELECT current_setting('lock_timeout'), current_setting('statement_timeout'),
			current_setting('idle_in_transaction_session_timeout')`}
		return tx.ask(t.Context(), q, func(answer row) error {
			return answer.Scan(&settings[0], &settings[1], &settings[2])
		})
	}))
	return settings
}

// KeptStatement is PostgreSQL's text of a statement that is used twice, with these arguments, as it is sent then.
func KeptStatement(t *testing.T, text string, named map[string]any, args, again []any) (string, error) {
	t.Helper()
	b, err := newPostgresBuilder()
	require.NoError(t, err)
	draft := func(db *gorm.DB) *gorm.DB { return db.Raw(text, named) }
	if s := b.often("kept", args, draft); s.err != nil {
		return "", s.err
	}
	s := b.often("kept", again, func(*gorm.DB) *gorm.DB {
		t.Fatal("GORM is asked once")
		return nil
	})
	require.Equal(t, again, s.args)
	return s.sql, s.err
}

// Changes are the columns of a row that differ, their values, and the name of that choice.
func Changes(columns []string, before, after []any) (name string, changed []string, values []any) {
	c := changesOf(columns, before, after)
	return c.name, c.columns, c.values
}

// IsBroken tells whether an error leaves open what has become of a statement.
var IsBroken = isBroken

// AtCommit has something happen while a SQLite store commits, before anything is written.
func AtCommit(t *testing.T, s *Store, happen func()) {
	t.Helper()
	c, err := s.engine.(*sqliteEngine).writer.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Raw(func(driver any) error {
		driver.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 { happen(); return 0 })
		return nil
	}))
	require.NoError(t, c.Close())
}

// Line is a line before connections that a test makes.
type Line struct{ line *line }

// NewLine makes one for a store with these settings, as Open does.
func NewLine(c Config) Line {
	if strings.HasPrefix(c.URL, "sqlite:") {
		return Line{newLine(1, longForOne, c)}
	}
	return Line{newLine(c.Pool, longForMany, c)}
}

// Join has one more come then, to work or to wait.
func (l Line) Join(at time.Time) { l.line.join(at) }

// Leave has one go who was at work or waited.
func (l Line) Leave() { l.line.leave() }

// IsTooLong asks for one who would join then.
func (l Line) IsTooLong(at time.Time) bool { return l.line.isTooLong(at) }

// WaitFully has a reservation wait for others' transactions as long as whoever may wait longest.
func (s *Store) WaitFully() {
	e := s.engine.(*postgresEngine)
	e.brief = e.lockTimeout
}

// TurnsAway has the store take no crowd from now on, as if it had turned somebody away some time ago.
func (s *Store) TurnsAway() { s.line.warned.Store(math.MaxInt64) }

// Width is how many lanes there are, with a test for the transactions.
type Width struct{ width *width }

// NewWidth begins at so many of the most that there can be.
func NewWidth(most, lanes int) Width {
	w := newWidth(most)
	w.best = lanes
	return Width{&w}
}

// Lanes is how many there are now.
func (w Width) Lanes() int { return w.width.lanes() }

// Took tells of a transaction that has ended then.
func (w Width) Took(d time.Duration, now time.Time) { w.width.took(d, 0, now) }

// TookOnLane also tells how long it was on its lane.
func (w Width) TookOnLane(d, onLane time.Duration, now time.Time) { w.width.took(d, onLane, now) }

// Widen is for one who stays for long.
func (w Width) Widen(now time.Time) { w.width.widen(now) }

// Patience is how long others are waited for.
type Patience struct{ patience *patience }

// NewPatience has waited for nobody yet.
func NewPatience() Patience { return Patience{&patience{}} }

// Expect has so many go while so many wait.
func (p Patience) Expect(members, waiting int, now time.Time) {
	p.patience.expect(members, waiting, now)
}

// IsWorthwhile asks whether to wait, once for each company.
func (p Patience) IsWorthwhile(waiting, atMost int, each time.Duration, now time.Time) bool {
	return p.patience.isWorthwhile(waiting, atMost, each, now)
}

// Waited says what came of it.
func (p Patience) Waited(inVain bool) { p.patience.waited(inVain) }

// ErrAlone says that a transaction has to start anew, without company.
var ErrAlone = errAlone

// Turns are what so many can have at once.
type Turns struct{ turns *turns }

// NewTurns has nobody have one.
func NewTurns(n int) Turns { return Turns{newTurns(n)} }

// Take waits for one.
func (t Turns) Take(ctx context.Context, ahead bool) error { return t.turns.take(ctx, ahead) }

// TakeFree takes one that nobody has.
func (t Turns) TakeFree() bool { return t.turns.takeFree() }

// Give gives it to the next.
func (t Turns) Give() { t.turns.give() }

// Busy is how many transactions are at work or wait.
func (s *Store) Busy() int { return int(s.line.count.Load()) }

// WaitForTurns is how many wait for a connection, a company as one.
func (s *Store) WaitForTurns() int {
	turns := s.engine.(*postgresEngine).turns
	turns.mu.Lock()
	defer turns.mu.Unlock()
	return turns.waiting.len()
}

// ConnectBesideLanes takes a connection as one does who has waited for a lane, and gives it back.
func (s *Store) ConnectBesideLanes(ctx context.Context) error {
	l, err := s.connect(ctx, way{waited: true})
	if err == nil {
		l.end()
	}
	return err
}

// Queue is who waits for a lane, and what is held.
type Queue struct {
	lanes   *lanes
	queue   *queue
	members []*member // in the order of coming
}

// NewQueue waits for so many lanes of a database that takes so long for each of those who go together.
func NewQueue(lanes int, each time.Duration) *Queue {
	l := newLanes(nil, builder{}, Config{Pool: lanes})
	q := &l.queues[paying]
	q.width.best, q.each = lanes, each
	return &Queue{lanes: l, queue: q}
}

// How somebody goes on who comes.
const (
	Waits    = waits
	First    = first
	OfItsOwn = ofItsOwn
)

// Come has one more come who takes hold of these.
func (q *Queue) Come(holds ...any) entered { return q.come(&member{queue: q.queue, holds: holds}) }

// Return has one more come who has begun before.
func (q *Queue) Return() entered { return q.come(&member{queue: q.queue, ahead: true}) }

func (q *Queue) come(m *member) entered {
	q.members = append(q.members, m)
	return q.lanes.enter(q.queue, m, false)
}

// Next are those who go next, by the order of coming from 0.
func (q *Queue) Next() []int {
	numbers := []int{}
	for _, m := range q.queue.next() {
		numbers = append(numbers, slices.Index(q.members, m))
	}
	return numbers
}

// Pass has so many come back from a lane, of whom nothing else is known.
func (q *Queue) Pass(members int) {
	q.queue.taken++
	q.queue.forming = true // by nobody: who waits is taken by Next
	q.lanes.pass(q.queue, members)
}

// Take has one hold one thing more.
func (q *Queue) Take(who int, what any) bool { return q.lanes.take(q.members[who], what) }

// Drop has one let go of what it holds.
func (q *Queue) Drop(who int) { q.lanes.drop(q.members[who]) }

// Withdraw has one wait no more.
func (q *Queue) Withdraw(who int) bool { return q.lanes.withdraw(q.queue, q.members[who]) }

// Held is how many things somebody holds.
func (q *Queue) Held() int { return len(q.lanes.held) }

// Database is one in which a transaction takes some time, whoever goes together in it, with lanes to it.
type Database struct {
	lanes *lanes
	takes time.Duration
	fails func(members int) // called when COMMIT has been sent

	mu        sync.Mutex
	companies []int
	sent      []int // statements in each
}

// NewDatabase has one lane.
func NewDatabase(t *testing.T, takes time.Duration, fails func(members int)) *Database {
	t.Helper()
	b, err := newPostgresBuilder()
	require.NoError(t, err)
	d := &Database{takes: takes, fails: fails}
	d.lanes = newLanes(func(_ context.Context, w way) (link, error) {
		return quickLink{d, max(w.together, 1)}, nil
	}, b, Config{Pool: 4, LockTimeout: time.Second})
	for i := range d.lanes.queues {
		d.lanes.queues[i].width.rest = math.MaxInt // it stays so
	}
	return d
}

// Widens gives it so many lanes, from now on.
func (d *Database) Widens(lanes int) {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	for i := range d.lanes.queues {
		d.lanes.queues[i].width.best = lanes
	}
}

// Together has no more than so many go together.
func (d *Database) Together(atMost int) {
	d.lanes.queues[paying].each = companyTime / time.Duration(atMost)
}

// Expects has so many have gone just now.
func (d *Database) Expects(members int) {
	for i := range d.lanes.queues {
		d.lanes.queues[i].patience.expect(members, 0, time.Now())
	}
}

// Go makes one transaction that sends all that it has to at once.
func (d *Database) Go(ctx context.Context, about string) error {
	return d.GoBy(ctx, about, false, func() {})
}

// GoBy is Go by the lanes for reads, or for payments, told when another one sends it.
func (d *Database) GoBy(ctx context.Context, about string, reads bool, sends func()) error {
	return d.goAs(ctx, about, "UPDATE t SET a = $1 WHERE b = $2", way{reads: reads, sends: sends})
}

// Finish is Go of who has begun before. It sends another statement.
func (d *Database) Finish(ctx context.Context, about string) error {
	return d.goAs(ctx, about, "UPDATE t SET a = $1, c = 1 WHERE b = $2", way{wait: port.Finishing})
}

func (d *Database) goAs(ctx context.Context, about, sql string, as way) error {
	as.whole = true
	w := write{statement: statement{sql: sql, args: []any{"a", about}}.typed("text", "text")}
	w.holds = []any{about}
	l, err := d.lanes.open(ctx, as, false, []write{w}, nil)
	if err != nil {
		return err
	}
	defer l.end()
	return l.commit(ctx, []write{w})
}

// Companies are how many went in each transaction of the database, since they were asked for last.
func (d *Database) Companies() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.companies = nil }()
	return d.companies
}

// Sent is how many statements went in each, since they were asked for last.
func (d *Database) Sent() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.sent = nil }()
	return d.sent
}

// Held is how many things somebody holds.
func (d *Database) Held() int {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	return len(d.lanes.held)
}

type quickLink struct {
	database *Database
	members  int
}

func (quickLink) now() time.Time                                       { return time.Time{} }
func (quickLink) end()                                                 {}
func (quickLink) exchange(context.Context, []write, ...question) error { return nil }

func (l quickLink) commit(ctx context.Context, writes []write) error {
	d := l.database
	if d.fails != nil {
		d.fails(l.members)
	}
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.companies = append(d.companies, l.members)
	d.sent = append(d.sent, len(writes))
	return nil
}

// Gather has n transactions go together that start begins: they wait until all of them do.
func (s *Store) Gather(t *testing.T, n int, start func()) {
	t.Helper()
	s.gather(t, &s.lanes.queues[paying], n, start)
}

// GatherReads has n reads go together.
func (s *Store) GatherReads(t *testing.T, n int, start func()) {
	t.Helper()
	s.gather(t, &s.lanes.queues[reading], n, start)
}

func (s *Store) gather(t *testing.T, q *queue, n int, start func()) {
	t.Helper()
	l := s.lanes
	l.mu.Lock()
	require.Zero(t, q.taken, "lanes are taken")
	q.taken = q.width.most
	l.mu.Unlock()
	start()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return q.waiting.len() == n
	}, 10*time.Second, time.Millisecond)
	l.mu.Lock()
	q.taken, q.width, q.each = 1, newWidth(q.width.most), 0
	l.mu.Unlock()
	l.pass(q, 0)
}

// Forget has the store not know an order any more.
func (s *Store) Forget(id order.ID) {
	s.familiar.mu.Lock()
	defer s.familiar.mu.Unlock()
	s.familiar.forget(string(id))
}

// Familiar are orders that a test has a store see.
type Familiar struct{ familiar *familiar }

// NewFamiliar are none.
func NewFamiliar() Familiar { return Familiar{newFamiliar()} }

// FamiliarAtMost is how many orders are remembered, FamiliarBytes what their texts may take.
const (
	FamiliarAtMost = familiarAtMost
	FamiliarBytes  = familiarBytes
)

// See shows an order with so many bytes of lines.
func (f Familiar) See(id order.ID, s order.Status, lines int) {
	f.familiar.see(orderRow{ID: string(id), CustomerID: "alice", Status: string(s), Lines: strings.Repeat("x", lines)})
}

// Take tells whether the customer's order is known.
func (f Familiar) Take(id order.ID, customer string) bool {
	row, ok := f.familiar.take(id, customer)
	return ok && row.ID == string(id)
}

// Known is how many orders are, and Bytes what their texts take.
func (f Familiar) Known() int { return len(f.familiar.orders) }

// Passed is how many places of the ring may be of orders that are known: so many are looked through at the most.
func (f Familiar) Passed() int {
	ring := len(f.familiar.ring)
	return (f.familiar.next - f.familiar.oldest + ring) % ring
}

// Bytes is what the texts of the known orders take.
func (f Familiar) Bytes() int { return f.familiar.bytes }

// Clock is a store's time as a test has it heard.
type Clock struct{ clock clock }

// Hear tells what it was then.
func (c *Clock) Hear(store, here time.Time) { c.clock.hear(store, here) }

// Now is what it is.
func (c *Clock) Now() (time.Time, bool) { return c.clock.now() }

// Held is how many records and orders somebody holds.
func (s *Store) Held() int {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	return len(s.lanes.held)
}

// ForMany is a statement's text for several, with parameters of these types.
func ForMany(one string, types ...string) (string, error) {
	return forMany(one, together{types: types})
}

// ArgumentsOf are values of a type as the arguments of a statement for many.
func ArgumentsOf(typ string, values ...any) (string, error) {
	rows := make([][]any, len(values))
	for i, v := range values {
		rows[i] = []any{v}
	}
	return argumentsOf([]string{typ}, rows)
}

// GivenUp has a company form none of whose members ever moves, and waits until it is given up. Who has formed it does
// nothing meanwhile that would order what he has done before what the timer does.
func GivenUp() {
	l := newLanes(nil, builder{}, Config{Pool: 1})
	q := &l.queues[paying]
	q.taken = 1
	over := make(chan bool)
	go func() {
		newGroup(l, q, []*member{{queue: q}, {queue: q}})
		<-over
	}()
	for taken := 1; taken > 0; runtime.Gosched() {
		l.mu.Lock()
		taken = q.taken
		l.mu.Unlock()
	}
	close(over)
}
