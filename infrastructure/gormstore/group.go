package gormstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"kakutei/application/port"
)

// group is transactions that go together: one of the database's, for all of them. It moves when each member has made its
// next move, all at once; the last one to make it sends what all want to send, equal statements as one, and hands round
// what is answered. COMMIT is sent when nobody has anything else to ask, and each is told of it what is known.
//
// Nobody suffers by his company. Who has reserved and fails leaves, and the reservation is taken back. Whatever else goes
// wrong before COMMIT, for one or for all, ends the group with nothing written, and everybody starts anew alone
// (errAlone), where he has his own errors and his own waits.
type group struct {
	lanes   *lanes
	queue   *queue
	started time.Time

	mu       sync.Mutex
	link     link // nil before the first move
	members  []*member
	acting   int         // who has not made the next move
	undo     []statement // what takes back what those have written who have left
	spoilt   bool        // one has left, and it cannot be taken back
	commits  bool        // COMMIT may have been sent
	panicked error       // who led it has
	over     error       // for whoever moves after the end
	late     *time.Timer // others wait no longer
	passed   sync.Once
	ended    chan struct{}
}

// member is one transaction of a group, or one that waits for company.
type member struct {
	came   time.Time
	queue  *queue
	ahead  bool // of all who begin
	holds  []any
	turn   chan *group
	answer chan error  // to its move
	moved  *move       // nil while it thinks
	whole  bool        // the first move is the last, and known from the beginning
	sends  func()      // told when another one makes it; may be nil
	missed bool        // a row that another transaction may hold
	undo   []statement // what takes back what it has written
	wrote  bool        // that cannot be taken back
	left   bool
	alone  bool            // it starts anew
	over   <-chan struct{} // closed when its time is
}

// move is what a member wants to send, and whether that is all.
type move struct {
	writes    []write
	questions []question
	commits   bool
	until     time.Time // it has to be answered; zero: whenever
}

func newGroup(l *lanes, q *queue, members []*member) *group {
	g := &group{lanes: l, queue: q, started: time.Now(), members: members, ended: make(chan struct{})}
	for _, m := range members {
		if !m.whole {
			g.acting++
		}
	}
	g.mu.Lock() // giveUp may come before its timer is known here
	defer g.mu.Unlock()
	g.late = time.AfterFunc(long(len(members)), g.giveUp)
	return g
}

// isWhole tells of a new group that all its members have moved.
func (g *group) isWhole() bool { return g.acting == 0 }

// lead makes the only move of a whole group, before anybody has his turn: each wakes up once, to hear what came of it. If it
// panics, one of them does.
func (g *group) lead(begin func()) {
	defer begin()
	defer func() {
		if p := recover(); p != nil {
			g.panicked = fmt.Errorf("in company: %v\n%s", p, debug.Stack())
			if !g.isOver() {
				g.finish(errAlone)
			}
		}
	}()
	for _, m := range g.members {
		if m.sends != nil {
			m.sends()
		}
	}
	g.step()
}

// memberLink is a member's way to the database.
type memberLink struct {
	*member
	group *group
}

func (l memberLink) now() time.Time {
	if l.group.link == nil {
		return time.Time{}
	}
	return l.group.link.now()
}

func (l memberLink) exchange(ctx context.Context, writes []write, questions ...question) (err error) {
	defer func() { l.alone, l.over = errors.Is(err, errAlone), ctx.Done() }()
	for _, q := range questions {
		if len(q.types) == 0 && q.holds == nil || q.holds != nil && !l.group.lanes.take(l.member, q.holds) {
			return errAlone // nobody knows what it would take hold of, or another one holds that
		}
	}
	return l.group.move(ctx, l.member, move{writes: writes, questions: questions})
}

func (l memberLink) commit(ctx context.Context, writes []write) error {
	if l.whole {
		err := <-l.answer
		if l.group.panicked != nil && l.member == l.group.members[0] {
			panic(l.group.panicked)
		}
		return err
	}
	return l.group.move(ctx, l.member, move{writes: writes, commits: true})
}

// end waits for that of the group if the transaction starts anew: whatever this one has locked is the group's until then,
// and alone it would wait for it no longer than for anybody else's.
func (l memberLink) end() {
	l.group.leave(l.member)
	if l.alone {
		select {
		case <-l.group.ended:
		case <-l.over:
		}
	}
	if l.group.isOver() {
		l.group.lanes.drop(l.member)
	}
	l.group.lanes.ended(l.member, l.group.started)
}

// move waits until everybody has moved and what was to be sent is answered.
func (g *group) move(ctx context.Context, m *member, next move) error {
	if err := ctx.Err(); err != nil {
		return port.ErrUnavailable.Because(err)
	}
	next.until, _ = ctx.Deadline()
	g.mu.Lock()
	if g.over != nil {
		defer g.mu.Unlock()
		return g.over
	}
	m.moved = &next
	g.acting--
	isLast := g.acting == 0
	g.mu.Unlock()
	if isLast {
		g.step() //nolint:contextcheck // everybody's, whoever takes it
	}
	return <-m.answer
}

// leave is for who has committed, or wants nothing of what it did. Who has moved with his first word cannot leave before he is
// answered.
func (g *group) leave(m *member) {
	g.mu.Lock()
	if m.left || m.whole || g.over != nil {
		g.mu.Unlock()
		return
	}
	m.left = true
	g.spoilt = g.spoilt || m.wrote
	g.undo = append(g.undo, m.undo...)
	g.acting--
	isLast := g.acting == 0
	g.mu.Unlock()
	if isLast {
		g.step()
	}
}

func (g *group) isOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over != nil
}

// giveUp leaves the lane to others, and ends a group in which somebody thinks for so long that its members cannot wait.
// While a move is answered nobody thinks, and the database has its own limits.
func (g *group) giveUp() {
	defer g.pass(0)
	g.mu.Lock()
	if g.acting == 0 || g.over != nil {
		g.mu.Unlock()
		g.lanes.widen(g.queue)
		return
	}
	g.over = fmt.Errorf("%w: a member of its group made no move", errAlone)
	g.mu.Unlock()
	g.end(g.over)
}

// step makes the next move of all. Nobody else is at it: all members wait, or have left.
func (g *group) step() {
	defer func() {
		if p := recover(); p != nil {
			if g.commits {
				g.finish(port.ErrCommitUnknown)
			} else {
				g.finish(errAlone)
			}
			panic(p)
		}
	}()
	var asking, committing []*member
	for _, m := range g.members {
		switch {
		case m.moved == nil:
		case m.moved.commits:
			committing = append(committing, m)
		default:
			asking = append(asking, m)
		}
	}
	switch {
	case g.spoilt:
		g.finish(errAlone)
	case len(asking) > 0:
		g.ask(asking)
	case len(committing) > 0:
		err := g.send(committing, true)
		if err != nil && !errors.Is(err, port.ErrCommitUnknown) && !errors.Is(err, errNoConnection) {
			err = fmt.Errorf("%w: %w", errAlone, err)
		}
		g.finish(err)
	default:
		g.finish(errAlone)
	}
}

func (g *group) ask(asking []*member) {
	err := g.send(asking, false)
	switch {
	case errors.Is(err, errNoConnection):
		g.finish(err)
	case err != nil:
		g.finish(fmt.Errorf("%w: %w", errAlone, err))
	case g.queue == &g.lanes.queues[reading]: // each exchange is for itself
		g.finish(nil)
	default:
		g.mu.Lock()
		g.acting = len(asking)
		for _, m := range asking {
			m.moved = nil
		}
		g.late.Reset(long(len(g.members)))
		g.mu.Unlock()
		for _, m := range asking {
			if m.missed {
				m.answer <- errAlone
			} else {
				m.answer <- nil
			}
		}
	}
}

// send sends what these members want to.
func (g *group) send(members []*member, commit bool) error {
	ctx, cancel := g.bounded()
	defer cancel()
	if g.link == nil {
		w := way{onLane: true, reads: g.queue == &g.lanes.queues[reading], together: len(g.members)}
		if slices.ContainsFunc(g.members, func(m *member) bool { return m.ahead }) {
			w.wait = port.Finishing
		}
		c, err := g.lanes.connect(context.Background(), w)
		if err != nil {
			return err
		}
		g.mu.Lock()
		g.link = c
		g.mu.Unlock()
	}
	writes, err := g.writes(members)
	if err != nil {
		return err
	}
	if commit {
		g.commits = true
		return g.link.commit(ctx, writes)
	}
	questions, err := g.questions(members)
	if err != nil {
		return err
	}
	return g.link.exchange(ctx, writes, questions...)
}

// bounded is everybody's context, whoever sends. It ends when the first of those who wait has no more time: he is answered,
// and the others are better off alone.
func (g *group) bounded() (context.Context, context.CancelFunc) {
	var until time.Time
	for _, m := range g.members {
		if m.moved != nil && !m.moved.until.IsZero() && (until.IsZero() || m.moved.until.Before(until)) {
			until = m.moved.until
		}
	}
	if until.IsZero() {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadline(context.Background(), until)
}

// finish ends the group and answers those who wait.
func (g *group) finish(answer error) {
	g.mu.Lock()
	g.over = errAlone
	g.mu.Unlock()
	g.end(answer)
}

func (g *group) end(answer error) {
	g.late.Stop()
	if g.link != nil {
		g.link.end()
	}
	close(g.ended)
	g.lanes.took(g.queue, time.Since(g.started), len(g.members))
	for _, m := range g.members {
		g.lanes.drop(m) // what one held who has left is held by the transaction until now
		if m.moved != nil {
			m.moved = nil
			m.answer <- answer
		}
	}
	if answer == nil {
		g.pass(len(g.members))
	} else {
		g.pass(0)
	}
}

func (g *group) pass(members int) { g.passed.Do(func() { g.lanes.pass(g.queue, members) }) }

// fronts calls each with what comes next of several sequences, the same of all of them at once, until there is no more.
// Each sequence keeps its order.
func fronts[T any](sequences [][]T, text func(T) string, each func(of []int, next []T) error) error {
	for {
		first := -1
		for i, s := range sequences {
			if len(s) > 0 {
				first = i
				break
			}
		}
		if first < 0 {
			return nil
		}
		var of []int
		var next []T
		sql := text(sequences[first][0])
		for i, s := range sequences {
			if len(s) > 0 && text(s[0]) == sql {
				of, next = append(of, i), append(next, s[0])
				sequences[i] = s[1:]
			}
		}
		if err := each(of, next); err != nil {
			return err
		}
	}
}

func (g *group) writes(members []*member) (sent []write, err error) {
	sequences := make([][]write, len(members))
	for i, m := range members {
		sequences[i] = m.moved.writes
		m.wrote = m.wrote || len(m.moved.writes) > 0
	}
	for _, undo := range g.undo {
		sent = append(sent, write{statement: undo})
	}
	g.undo = nil
	err = fronts(sequences, func(w write) string { return w.sql }, func(_ []int, next []write) error {
		if len(next) == 1 || len(next[0].types) == 0 {
			sent = append(sent, next...)
			return nil
		}
		one, err := g.oneOf(len(next), func(i int) statement { return next[i].statement })
		if err != nil {
			return err
		}
		w := write{statement: one}
		if slices.ContainsFunc(next, func(w write) bool { return w.miss != nil && !w.own }) {
			w.sql = "WITH touched AS (" + one.sql + " RETURNING 1) SELECT 1/(count(*) = $" +
				fmt.Sprint(len(one.args)+1) + ")::int FROM touched"
			w.args = append(w.args, len(next))
		}
		if next[0].each != nil {
			met, whose := make([]int, len(next)), numbered(len(next))
			w.each = func(answer row) error {
				if raw, ok := answer.(interface{ RawValues() [][]byte }); ok && raw.RawValues()[0] == nil {
					return nil // nobody's
				}
				i, err := whose(answer)
				if err != nil {
					return err
				}
				met[i]++
				return next[i].each(rest{answer})
			}
			w.met = func(int) {
				for i := range next {
					if next[i].met != nil {
						next[i].met(met[i])
					}
				}
			}
		}
		sent = append(sent, w)
		return nil
	})
	return sent, err
}

func (g *group) questions(members []*member) (sent []question, err error) {
	sequences := make([][]question, len(members))
	for i, m := range members {
		sequences[i] = m.moved.questions
	}
	err = fronts(sequences, func(q question) string { return q.sql }, func(of []int, next []question) error {
		each := make([]func(row) error, len(next))
		for i, q := range next {
			m := members[of[i]]
			m.missed = m.missed || q.skips
			each[i] = func(answer row) error {
				m.missed = m.missed && !q.skips
				if q.undo != nil {
					m.undo = append(m.undo, *q.undo)
				}
				return q.each(answer)
			}
		}
		if len(next[0].types) == 0 {
			for i, q := range next {
				q.each = each[i]
				sent = append(sent, q)
			}
			return nil
		}
		one, err := g.oneOf(len(next), func(i int) statement { return next[i].statement })
		if err != nil {
			return err
		}
		whose := numbered(len(next))
		if p := next[0].told; p > 0 {
			whose = marked(p, next)
		}
		sent = append(sent, question{statement: one, each: func(answer row) error {
			i, err := whose(answer)
			if err != nil {
				return err
			}
			return each[i](rest{answer})
		}})
		return nil
	})
	return sent, err
}

// oneOf is one statement for several that differ in their arguments only.
func (g *group) oneOf(n int, each func(i int) statement) (statement, error) {
	text, err := g.lanes.sql.many(each(0))
	if err != nil {
		return statement{}, err
	}
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = each(i).args
	}
	document, err := argumentsOf(each(0).types, rows)
	return statement{sql: text, args: append(make([]any, 0, 2), document)}, err
}

var errUnmarked = errors.New("gormstore: an answer does not say whose it is")

// beginning is the binary form of a row's first column, if that is of this length.
func beginning(answer row, length int) ([]byte, error) {
	raw, ok := answer.(interface{ RawValues() [][]byte })
	if !ok || len(raw.RawValues()) == 0 || len(raw.RawValues()[0]) != length {
		return nil, errUnmarked
	}
	return raw.RawValues()[0], nil
}

// numbered tells, from 0, whose answer a row is that begins with the number.
func numbered(of int) func(answer row) (int, error) {
	return func(answer row) (int, error) {
		number, err := beginning(answer, 8)
		if err != nil {
			return 0, err
		}
		n := binary.BigEndian.Uint64(number)
		if i := int(n) - 1; i >= 0 && i < of { //nolint:gosec // what is too large for it is not below of
			return i, nil
		}
		return 0, fmt.Errorf("%w: %d of %d", errUnmarked, n, of)
	}
}

// marked tells whose answer a row is that begins with an argument.
func marked(parameter int, questions []question) func(answer row) (int, error) {
	of := make(map[string]int, len(questions))
	for i, q := range questions {
		of[q.args[parameter-1].(string)] = i
	}
	return func(answer row) (int, error) {
		mark, err := beginning(answer, len(uuid.UUID{}))
		if err != nil {
			return 0, err
		}
		i, ok := of[uuid.UUID(mark).String()]
		if !ok {
			return 0, fmt.Errorf("%w: %x", errUnmarked, mark)
		}
		return i, nil
	}
}

// rest is a row without its number.
type rest struct{ row }

func (r rest) Scan(into ...any) error { return r.row.Scan(append([]any{nil}, into...)...) }
