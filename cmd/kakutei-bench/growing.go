package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// growth is what the part "growth" has found out.
type growth struct {
	orders, records, expired int64
	confirms, replays        map[string][]sample // on the databases "empty" and "grown", by round
	bytes                    []size              // in the grown one
	hot                      []updates           // of the service's confirmations, in both
	beside, quiet            sample              // confirmations beside a sweep, and while it stands still
	above, aboveWithout      float64             // share of the answers that took twice the quiet 99th in a hundred
	longest                  time.Duration       // of them
	swept                    time.Duration
}

// size is what a row takes on the disk, its share of the indexes apart.
type size struct {
	table        string
	rows         int64
	heap, others float64 // bytes per row
}

// updates counts a table's.
type updates struct {
	table    string
	all, hot int64
}

const (
	empty = "empty"
	grown = "grown"
)

// growth measures payments on a database in which there are many already, beside an empty one in the same server.
func (b *bench) growth(ctx context.Context, orders, records int64) (g growth, err error) {
	g = growth{
		orders: orders, records: records, expired: orders,
		confirms: map[string][]sample{}, replays: map[string][]sample{},
	}
	shops := map[string]*branch{}
	for _, name := range []string{empty, grown} {
		if shops[name], err = b.branch(ctx, name); err != nil {
			return g, err
		}
	}
	b.tell("%d orders and %d records are inserted", orders, records)
	if err := shops[grown].grow(ctx, orders, records); err != nil {
		return g, fmt.Errorf("grow: %w", err)
	}
	if g.bytes, err = shops[grown].sizes(ctx); err != nil {
		return g, err
	}
	for round := range b.rounds {
		order := []string{empty, grown}
		if round%2 == 1 {
			order = []string{grown, empty}
		}
		for _, name := range order {
			if err := b.growthRound(ctx, &g, name, shops[name]); err != nil {
				return g, fmt.Errorf("%s, round %d: %w", name, round+1, err)
			}
		}
		b.tell("round %d of %d measured", round+1, b.rounds)
	}
	if g.hot, err = shops[grown].updates(ctx); err != nil {
		return g, err
	}
	if err := b.besideASweep(ctx, &g, shops[grown]); err != nil {
		return g, fmt.Errorf("sweep: %w", err)
	}
	return g, errors.Join(shops[empty].close(ctx), shops[grown].close(ctx))
}

// branch is a service on a database of its own.
type branch struct {
	*bench
	database *database
	service  *instance
	source   source
	paid     string // an order that is paid
	key      string // under which that was done
}

func (b *bench) branch(ctx context.Context, name string) (*branch, error) {
	d, err := b.postgres.database(ctx, name)
	if err != nil {
		return nil, err
	}
	i, err := b.serve(ctx, d.url)
	if err != nil {
		return nil, err
	}
	s := &branch{bench: b, database: d, service: i, source: source{store: d}}
	if s.source.like, err = warm(ctx, i); err != nil {
		return nil, err
	}
	err = d.conn.QueryRow(ctx, `SELECT CAST(id AS text), idempotency_key FROM orders, idempotency_records
		WHERE orders.status = 'PAID' AND operation = 'ConfirmPayment'
		AND position(CAST(CAST(id AS text) AS bytea) IN document) > 0 LIMIT 1`).Scan(&s.paid, &s.key)
	return s, err
}

func (s *branch) close(ctx context.Context) error {
	return errors.Join(s.service.stop(), s.postgres.drop(ctx, s.database))
}

// stock makes the orders for a cell.
func (s *branch) stock(ctx context.Context, during time.Duration) (*stock, error) {
	made := &stock{}
	if err := s.source.fill(ctx, made, during); err != nil {
		return nil, err
	}
	return made, s.database.tidy(ctx)
}

// grow inserts paid orders, their entries, and finished records, each like one that the service has made.
func (s *branch) grow(ctx context.Context, orders, records int64) error {
	uuid := func(salt string) string { return "CAST(md5('" + salt + "' || n) AS uuid)" }
	batch := int64(200_000)
	for _, into := range []struct {
		table, like, of string
		computed        map[string]string
		rows            int64
	}{
		{"orders", "t.id = $1", s.paid, map[string]string{
			"id": ordered("aaaa", "n"), "payment_id": ordered("aaab", "n"), "charge_id": "'ch_' || md5('charge' || n)",
			"paid_at": "t.paid_at - n * interval '1 millisecond'",
		}, orders},
		{"journal_entries", "t.source_document_id = $1", s.paid, map[string]string{
			"id": ordered("aaac", "n"), "posting_key": "encode(sha256(CAST('entry' || n AS bytea)), 'hex')",
			"source_document_id": "CAST(" + ordered("aaaa", "n") + " AS text)",
		}, orders},
		{
			"idempotency_records", likeRecord, s.key,
			map[string]string{
				"idempotency_key": "CAST(" + uuid("record") + " AS text)", "token": uuid("token"),
				"expires_at": "t.expires_at + n * interval '1 millisecond'",
			},
			records,
		},
	} {
		for first := int64(1); first <= into.rows; first += batch {
			last := min(into.rows, first+batch-1)
			if err := s.database.copies(ctx, into.table, into.like, into.computed, first, last, into.of); err != nil {
				return fmt.Errorf("%s: %w", into.table, err)
			}
		}
		s.tell("%d rows in %s", into.rows, into.table)
	}
	if err := s.database.tidy(ctx); err != nil {
		return err
	}
	syscall.Sync() // what the kernel still has to write of all that shall not keep a commit waiting in a cell
	return nil
}

// likeRecord is the record of the payment with a key.
const likeRecord = "t.operation = 'ConfirmPayment' AND t.actor = 'bench' AND t.idempotency_key = $1"

// sizes are what the rows take.
func (s *branch) sizes(ctx context.Context) (all []size, err error) {
	for _, table := range []string{"orders", "idempotency_records", "journal_entries"} {
		of := size{table: table}
		err := s.database.conn.QueryRow(ctx, fmt.Sprintf(`SELECT n, pg_relation_size('%[1]s') / CAST(n AS float8),
			pg_indexes_size('%[1]s') / CAST(n AS float8) FROM (SELECT count(*) AS n FROM %[1]s) AS t`, table)).
			Scan(&of.rows, &of.heap, &of.others)
		if err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return all, nil
}

// updates counts those of the tables whose rows the service changes.
func (s *branch) updates(ctx context.Context) (all []updates, err error) {
	for _, table := range []string{"orders", "idempotency_records"} {
		of := updates{table: table}
		err := s.database.conn.QueryRow(ctx, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1",
			table).Scan(&of.all, &of.hot)
		if err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return all, nil
}

// busiest is the number of clients at which the parts beside "confirm" measure.
const busiest = 32

func (b *bench) growthRound(ctx context.Context, g *growth, name string, s *branch) error {
	orders, err := s.stock(ctx, b.seconds)
	if err != nil {
		return err
	}
	m := meters{services: []*instance{s.service}, database: s.database}
	err = settled(ctx, s.database, func() (int, error) {
		measured, r, err := b.measure(ctx, m, func() (ran, error) {
			return load(busiest, b.seconds, func() error { return orders.confirm(ctx, s.service.shop) })
		})
		g.confirms[name] = append(g.confirms[name], measured)
		return r.count, err
	})
	if err != nil {
		return err
	}
	if err := s.database.tidy(ctx); err != nil {
		return err
	}
	measured, _, err := b.measure(ctx, m, func() (ran, error) {
		return load(busiest, b.seconds, func() error { return orders.replay(ctx, s.service.shop) })
	})
	g.replays[name] = append(g.replays[name], measured)
	return err
}

// pauses is how many spells beside a sweep there are for one in which it stands still.
const pauses = 3

// besideASweep measures confirmations while expired records are swept. How long a sweep takes is not known beforehand:
// beside it they are measured in spells, each with a stock that lasts for it, and now and then in one in which the sweep is
// stopped. So both are of the same minutes: what others do to the machine meanwhile is done to both.
func (b *bench) besideASweep(ctx context.Context, g *growth, s *branch) error {
	err := s.database.copies(ctx, "idempotency_records", likeRecord, map[string]string{
		"idempotency_key": "CAST(CAST(md5('expired' || n) AS uuid) AS text)", "token": "CAST(md5('old' || n) AS uuid)",
		"expires_at": "t.expires_at - interval '3 days' + n * interval '1 millisecond'",
	}, 1, g.expired, s.key)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := sweep(ctx, b.service, s.database.url)
	if err != nil {
		return err
	}
	during, orders := 2*b.seconds, &stock{}
	fill := func() error {
		orders.paid = nil // nobody asks for them again
		return s.source.fill(ctx, orders, during)
	}
	measure := func(over <-chan struct{}) (sample, ran, error) {
		return b.measure(ctx, meters{services: []*instance{s.service}, database: s.database}, func() (ran, error) {
			return load(busiest, during, func() error {
				select {
				case <-over:
					return errNoMore
				default:
					return orders.confirm(ctx, s.service.shop)
				}
			})
		})
	}
	var without []sample
	var calm []time.Duration // times without it
	spell := 0
	beside, times, err := spells(w.over, func() error {
		if err := fill(); err != nil {
			return err
		}
		if spell++; spell%pauses != 1 {
			return nil
		}
		err := w.paused(s.isAtRest(ctx), func() error {
			measured, r, err := measure(nil)
			without, calm = append(without, measured), append(calm, r.times...)
			return err
		})
		return errors.Join(err, fill())
	}, func() (sample, ran, error) { return measure(w.over) })
	if err != nil {
		stop()
	}
	if err = errors.Join(err, w.wait()); err != nil {
		return err
	}
	left, err := s.database.number(ctx, "SELECT count(*) FROM idempotency_records WHERE expires_at <= now()")
	if err == nil && left != 0 {
		err = fmt.Errorf("%d expired records are still there", left)
	}
	g.swept, g.beside, g.quiet = w.took(), together(beside, times), together(without, calm)
	g.above, g.aboveWithout = late(times, g.quiet.P99), late(calm, g.quiet.P99)
	g.longest = percentile(times, 100)
	return err
}

// late is the share of the times that are above twice as many milliseconds.
func late(times []time.Duration, p99 float64) float64 {
	n := 0
	for _, t := range times {
		if milliseconds(t) > 2*p99 {
			n++
		}
	}
	return float64(n) / float64(len(times))
}

// sweeping is a sweep that runs as a process of its own.
type sweeping struct {
	process      *os.Process
	over         chan struct{} // closed when it has ended
	err          error         // then
	begun, ended time.Time
	stood        time.Duration // how long it was stopped
}

func sweep(ctx context.Context, service, url string) (*sweeping, error) {
	cmd := exec.CommandContext(ctx, service, "sweep", "--database-url", url)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &sweeping{process: cmd.Process, over: make(chan struct{}), begun: time.Now()}
	go func() {
		defer close(w.over)
		if err := cmd.Wait(); err != nil {
			w.err = fmt.Errorf("%w: %s", err, said.String())
		}
		w.ended = time.Now()
	}()
	return w, nil
}

// paused has it stand still until fn has ended, at rest: the server would end a transaction in which nothing happens. If it
// is over already, so be it.
func (w *sweeping) paused(isAtRest func() (bool, error), fn func() error) error {
	stopped := time.Now()
	defer func() { w.stood += time.Since(stopped) }()
	for {
		err := w.process.Signal(syscall.SIGSTOP)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		time.Sleep(momentOfRest) // what it has sent before is done
		rests, err := isAtRest()
		if err == nil && rests {
			err = fn()
		}
		_ = w.process.Signal(syscall.SIGCONT)
		if rests || err != nil {
			return err
		}
		time.Sleep(momentOfRest)
	}
}

// momentOfRest is longer than a batch of the sweep, and shorter than its rest.
const momentOfRest = 100 * time.Millisecond

// isAtRest tells whether no transaction is under way, while nobody pays.
func (s *branch) isAtRest(ctx context.Context) func() (bool, error) {
	return func() (bool, error) {
		n, err := s.database.number(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`)
		return n == 0, err
	}
}

func (w *sweeping) wait() error {
	<-w.over
	return w.err
}

// took is how long it was at it.
func (w *sweeping) took() time.Duration { return w.ended.Sub(w.begun) - w.stood }
