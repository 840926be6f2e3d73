package gormstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"kakutei/application/port"
)

// lanes are where the transactions of payments go. Who finds nobody about goes at once. Whoever comes meanwhile waits, and
// those who have waited go together: in one transaction of the database, whose cost they share (group). So the more there
// is to do, the less of the database each of them takes. Those who were together a moment ago are waited for (patience).
//
// That pays where a transaction's time is work: what many do together is less work. Where it is waiting, for a disk, a
// standby or a network, who goes together waits for what each of the others waits for; there more lanes are better, and how
// many are, the lanes find out by trying (width).
//
// What a transaction takes hold of, a record or an order, is held by one of this process's at a time, or else the others
// go by ways of their own: so no two in a group are about the same. On a lane nobody waits for what another process
// holds, either: all behind him would wait, too.
type lanes struct {
	connect func(ctx context.Context, w way) (link, error)
	sql     builder
	wait    time.Duration // the longest one for a lane

	mu     sync.Mutex
	queues [kinds]queue
	held   map[any]int
}

// queue is who waits for one of some lanes.
type queue struct {
	width   width
	taken   int
	each    time.Duration // what each of those takes who go together, lately
	forming bool          // somebody gathers who waits
	parted  bool          // those who finish have gone without the others just now
	waiting waiters[*member]

	patience patience
	wanted   int           // who is waited for
	complete chan struct{} // closed when so many wait; nil while nobody is waited for
}

const (
	// companyAtMost is how many go together, and companyTime how long all of them may take by what is known.
	companyAtMost = 64
	companyTime   = 50 * time.Millisecond
	// beforehand is what is known of a database before anything is.
	beforehand = companyTime / 8
	// longForEach is from when each of a company takes too long for the others to wait.
	longForEach = 5 * time.Millisecond
)

// long is how long others wait for so many who are on a lane.
func long(members int) time.Duration {
	return companyTime + time.Duration(members)*longForEach
}

func newLanes(connect func(context.Context, way) (link, error), b builder, c Config) *lanes {
	l := &lanes{connect: connect, sql: b, wait: c.LockTimeout, held: map[any]int{}}
	for i := range l.queues {
		l.queues[i].width, l.queues[i].each = newWidth(max(1, c.Pool)), beforehand
	}
	return l
}

// sociable tells whether a transaction may go together with others, by what it asks first: everything has a form for many,
// and what it takes hold of is named. One that asks nothing sends all that it has to.
func sociable(writes []write, questions []question) bool {
	if len(questions) == 0 {
		return slices.ContainsFunc(writes, func(w write) bool { return len(w.holds) > 0 }) &&
			!slices.ContainsFunc(writes, func(w write) bool { return len(w.types) == 0 })
	}
	return len(writes) == 0 && !slices.ContainsFunc(questions, func(q question) bool { return len(q.types) == 0 })
}

// open finds a way for a sociable transaction.
func (l *lanes) open(ctx context.Context, w way, alone bool, writes []write, questions []question) (link, error) {
	m := &member{came: time.Now(), ahead: w.finishes(), turn: make(chan *group, 1), answer: make(chan error, 1)}
	if w.whole {
		m.whole, m.sends = true, w.sends
		m.moved = &move{writes: writes, commits: true}
		m.moved.until, _ = ctx.Deadline()
	}
	for _, q := range questions {
		if q.holds != nil {
			m.holds = append(m.holds, q.holds)
		}
	}
	for _, w := range writes {
		m.holds = append(m.holds, w.holds...)
	}
	q := l.queueOf(w)
	m.queue = q
	switch l.enter(q, m, alone) {
	case ofItsOwn:
		return l.beside(ctx, w, m)
	case first:
		l.form(q, m)
	case waits:
	}
	g, err := l.turn(ctx, q, m)
	switch {
	case errors.Is(err, errNoLane):
		w.waited = true
		return l.beside(ctx, w, m)
	case err != nil:
		l.drop(m)
		return nil, err
	case g != nil:
		return memberLink{m, g}, nil
	}
	w.onLane = true
	c, err := l.connect(ctx, w)
	if err != nil {
		l.drop(m)
		l.pass(q, 0)
		return nil, err
	}
	lane := &laneLink{link: c, lanes: l, queue: q, member: m, started: time.Now()}
	lane.late = time.AfterFunc(long(1), lane.giveUp)
	return lane, nil
}

// errNoLane says that there was none in time. There may be a connection that nobody uses: how many lanes a database takes is
// found out by and by.
var errNoLane = errors.New("no lane")

// turn waits for a lane; without a group it is for this one alone. Error: errNoLane, or port.ErrUnavailable when there is no
// more time for anything.
func (l *lanes) turn(ctx context.Context, q *queue, m *member) (*group, error) {
	select {
	case g := <-m.turn:
		return g, nil
	default:
	}
	enough := time.NewTimer(l.wait)
	defer enough.Stop()
	var err error
	select {
	case g := <-m.turn:
		return g, nil
	case <-enough.C:
		err = errNoLane
	case <-ctx.Done():
		err = port.ErrUnavailable.Because(fmt.Errorf("%w: %w", errNoConnection, ctx.Err()))
	}
	if l.withdraw(q, m) {
		return nil, err
	}
	return <-m.turn, nil
}

// beside has a transaction go by no lane, on a connection of its own.
func (l *lanes) beside(ctx context.Context, w way, m *member) (link, error) {
	c, err := l.connect(ctx, w)
	if err != nil {
		l.drop(m)
		return nil, err
	}
	return holdingLink{c, func() { l.drop(m) }}, nil
}

// holdingLink is a way of its own for one who holds what others may ask for.
type holdingLink struct {
	link
	drop func()
}

func (l holdingLink) end() {
	l.link.end()
	l.drop()
}

// laneLink is a lane for one. Who stays for long leaves it to the others, and goes on beside them.
type laneLink struct {
	link
	lanes   *lanes
	queue   *queue
	member  *member
	started time.Time
	late    *time.Timer
	passed  sync.Once
}

func (l *laneLink) giveUp() {
	l.lanes.widen(l.queue)
	l.pass(0)
}

func (l *laneLink) pass(members int) { l.passed.Do(func() { l.lanes.pass(l.queue, members) }) }

func (l *laneLink) end() {
	l.late.Stop()
	l.link.end()
	l.lanes.took(l.queue, time.Since(l.started), 1)
	l.lanes.drop(l.member)
	l.lanes.ended(l.member, l.started)
	l.pass(1)
}

// entered is how a transaction goes on.
type entered int

const (
	waits    entered = iota
	first            // there is a lane, and nobody who gathers those who will take it
	ofItsOwn         // by no lane
)

func (l *lanes) enter(q *queue, m *member, alone bool) entered {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, what := range m.holds {
		alone = alone || l.held[what] > 0
		l.held[what]++
	}
	if alone {
		return ofItsOwn
	}
	q.waiting.add(m, m.ahead)
	if q.complete != nil && q.waiting.len() >= q.wanted {
		close(q.complete)
		q.complete = nil
	}
	if q.gathers() {
		return first
	}
	return waits
}

// gathers tells whether somebody has to form a group now. It is told once.
func (q *queue) gathers() bool {
	if q.forming || q.waiting.len() == 0 || q.taken >= q.width.lanes() {
		return false
	}
	q.forming = true
	return true
}

// The lanes for reads are others than those for payments.
const (
	reading = iota
	paying
	kinds
)

func (l *lanes) queueOf(w way) *queue {
	if w.reads {
		return &l.queues[reading]
	}
	return &l.queues[paying]
}

// take has a member hold one thing more. False: another one does.
func (l *lanes) take(m *member, what any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(m.holds, what) {
		return true
	}
	if l.held[what] > 0 {
		return false
	}
	l.held[what]++
	m.holds = append(m.holds, what)
	return true
}

// drop lets go of what a transaction holds.
func (l *lanes) drop(m *member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, what := range m.holds {
		if l.held[what]--; l.held[what] == 0 {
			delete(l.held, what)
		}
	}
	m.holds = nil
}

// ended is for who has gone by a lane, since then.
func (l *lanes) ended(m *member, started time.Time) {
	now := time.Now()
	l.mu.Lock()
	m.queue.width.took(now.Sub(m.came), now.Sub(started), now)
	l.mu.Unlock()
}

// withdraw has a transaction wait no more; it holds what it held. False: it has its turn already.
func (l *lanes) withdraw(q *queue, m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return q.waiting.remove(m)
}

// pass leaves a lane to those who wait, and tells how many have gone by it who may come back at once.
func (l *lanes) pass(q *queue, members int) {
	now := time.Now()
	l.mu.Lock()
	q.taken--
	q.patience.expect(members, q.waiting.len(), now)
	gathers := q.gathers()
	l.mu.Unlock()
	if gathers {
		go l.form(q, nil)
	}
}

// widen is for who stays on a lane for long: the others wait for him, whatever he waits for.
func (l *lanes) widen(q *queue) {
	now := time.Now()
	l.mu.Lock()
	q.width.widen(now)
	l.mu.Unlock()
}

// took is told how long so many have taken together.
func (l *lanes) took(q *queue, d time.Duration, members int) {
	l.mu.Lock()
	q.each = (3*q.each + d/time.Duration(members)) / 4
	l.mu.Unlock()
}

// form gives a lane to those who wait. by is the one of them who does so; nil: nobody who waits for anything.
func (l *lanes) form(q *queue, by *member) {
	for more := true; more; {
		l.mu.Lock()
		l.gather(q)
		together := q.next()
		q.forming = false
		if len(together) > 0 {
			q.taken++
		}
		more = q.gathers()
		l.mu.Unlock()
		l.start(q, together, !more && (by == nil || slices.Contains(together, by)))
	}
}

// gather waits for company, where there is any to expect. The lock is held before and after it.
func (l *lanes) gather(q *queue) {
	now, atMost := time.Now(), q.atMost()
	switch {
	case q.waiting.len() <= 1 && q.patience.expected <= 1:
	case q != &l.queues[reading] && q.width.lanes() == 1 && q.patience.isWorthwhile(q.waiting.len(), atMost, q.each, now):
		complete := make(chan struct{})
		q.complete, q.wanted = complete, q.patience.wanted(atMost)
		enough := time.NewTimer(q.patience.until(q.each).Sub(now))
		l.mu.Unlock()
		select {
		case <-complete:
		case <-enough.C:
		}
		enough.Stop()
		l.mu.Lock()
		q.complete = nil
		q.patience.waited(q.waiting.len() < q.wanted)
	default: // whoever can run may be about to come
		for last := -1; last < q.waiting.len(); {
			last = q.waiting.len()
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
		}
	}
}

// start has those go who go together. If everything is known that they send, they hear of it when it is answered. It may wait
// for that if it is told so.
func (l *lanes) start(q *queue, together []*member, waits bool) {
	var g *group
	if len(together) > 1 {
		g = newGroup(l, q, together)
	}
	begin := func() {
		for _, m := range together {
			m.turn <- g
		}
	}
	switch {
	case g == nil || !g.isWhole():
		begin()
	case waits:
		g.lead(begin)
	default:
		go g.lead(begin)
	}
}

// next are those who go next: all, or what falls to one of many lanes, and no more than are through soon.
func (q *queue) next() []*member {
	n := q.waiting.len()
	if others := q.width.lanes() - 1; others > 1 {
		n = (n + others - 1) / others
	}
	n = min(n, q.atMost())
	if q.parts(n) {
		n = q.waiting.ahead
	}
	return q.waiting.take(n)
}

// parts tells whether of those so many who could go next only those go who finish. Whoever begins is then joined by them,
// since nobody is elsewhere, and from then on all do the same at the same time: what each sends is sent once for all of them
// (group), and there are no more companies than before. Not twice in a row: who begins has to come to it.
func (q *queue) parts(n int) bool {
	finishing := q.waiting.ahead
	q.parted = !q.parted && finishing > 0 && finishing < n && q.width.lanes() == 1 &&
		q.patience.areAll(q.waiting.len())
	return q.parted
}

// atMost is how many can go together.
func (q *queue) atMost() int {
	return min(max(1, int(companyTime/max(q.each, 1))), companyAtMost)
}
