package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// bench is one session: its server, its programs and how long it measures.
type bench struct {
	dir     string // on a disk; gone at the end
	service string // the program that is measured
	self    string // this program
	rounds  int
	seconds time.Duration // of a cell
	say     io.Writer     // how far it has come

	postgres *postgres
	pgbench  *pgbench
	others   []float64 // CPUs that other processes used, cell by cell
}

// connections are how many clients ask at once.
var connections = []int{1, 8, 32}

// open makes a session.
func open(ctx context.Context, s settings, say io.Writer) (b *bench, err error) {
	b = &bench{service: s.service, rounds: s.rounds, seconds: s.seconds, say: say}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = directory(); err != nil {
		return nil, err
	}
	if b.postgres, err = startPostgres(ctx, s.programs, b.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	b.pgbench = &pgbench{server: b.postgres, dir: b.dir}
	return b, nil
}

func (b *bench) close() error { return errors.Join(b.postgres.stop(), os.RemoveAll(b.dir)) }

func (b *bench) tell(format string, values ...any) {
	fmt.Fprintf(b.say, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, values...)...)
}

// meters are what a cell is measured by beside its answers; each may be missing.
type meters struct {
	services []*instance
	database *database
	crowded  bool // then a request may be refused for want of a place, and be sent again
}

// reading is how the meters stand.
type reading struct {
	service, postgres, own, machine time.Duration
	wal                             int64
}

func (b *bench) read(ctx context.Context, m meters) (r reading, err error) {
	for _, i := range m.services {
		used, err := cpuOf(i.pid())
		if err != nil {
			return r, err
		}
		r.service += used
	}
	if r.postgres, err = cpuOf(b.postgres.server.Process.Pid); err != nil {
		return r, err
	}
	if m.database != nil {
		if r.wal, err = m.database.written(ctx); err != nil {
			return r, err
		}
	}
	r.own = ownCPU()
	r.machine, err = cpuOfMachine()
	return r, err
}

// settling is how long after the last answer the meters are read: what is written after it counts, too.
const settling = 200 * time.Millisecond

var errTooLittle = errors.New("too little was done to measure it: longer cells are needed")

// measure runs a load and reads the meters before and after it.
func (b *bench) measure(ctx context.Context, m meters, run func() (ran, error)) (sample, ran, error) {
	before, err := b.read(ctx, m)
	if err != nil {
		return sample{}, ran{}, err
	}
	begun := time.Now()
	r, err := run()
	for _, i := range m.services {
		if !m.crowded {
			err = errors.Join(err, i.smooth())
		}
	}
	if err != nil {
		return sample{}, r, err
	}
	if r.rate == 0 {
		return sample{}, r, errTooLittle
	}
	time.Sleep(settling)
	after, err := b.read(ctx, m)
	if err != nil {
		return sample{}, r, err
	}
	service, postgres := after.service-before.service, after.postgres-before.postgres
	ours := service + postgres + r.load
	if len(m.services) == 0 { // the load generator was another process
		ours += after.own - before.own
	}
	perRequest := func(d time.Duration) float64 { return milliseconds(d) / float64(r.count) }
	s := sample{
		Count: r.count, PerSecond: r.rate,
		P50: milliseconds(percentile(r.times, 50)), P99: milliseconds(percentile(r.times, 99)),
		ServiceCPU: perRequest(service), DatabaseCPU: perRequest(postgres), LoadCPU: perRequest(r.load),
		WAL:    float64(after.wal-before.wal) / float64(r.count),
		Others: max(0, (after.machine-before.machine-ours).Seconds()) / time.Since(begun).Seconds(),
	}
	if m.database == nil {
		s.DatabaseCPU = 0
	}
	b.others = append(b.others, s.Others)
	return s, r, nil
}

// spells measures until over, again and again. Before each spell what it takes is made ready; that is not measured. The
// results are each spell's, and the times of all their answers.
func spells(
	over <-chan struct{}, ready func() error, measure func() (sample, ran, error),
) (all []sample, times []time.Duration, err error) {
	isOver := func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
	for {
		if err := ready(); err != nil {
			return nil, nil, err
		}
		if isOver() {
			break
		}
		s, r, err := measure()
		if errors.Is(err, errTooLittle) && isOver() {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		all, times = append(all, s), append(times, r.times...)
	}
	if len(all) == 0 {
		return nil, nil, errors.New("it was over before anything was measured beside it")
	}
	return all, times, nil
}

// counted is a store whose paid orders and booked entries can be counted.
type counted interface {
	paid(ctx context.Context) (orders, entries int64, err error)
}

// settled checks that what was acknowledged is so: as many orders more are paid, and as many entries booked.
func settled(ctx context.Context, d counted, run func() (int, error)) error {
	orders, entries, err := d.paid(ctx)
	if err != nil {
		return err
	}
	acknowledged, err := run()
	if err != nil {
		return err
	}
	ordersAfter, entriesAfter, err := d.paid(ctx)
	if err != nil {
		return err
	}
	if ordersAfter-orders != int64(acknowledged) || entriesAfter-entries != int64(acknowledged) {
		return fmt.Errorf("%d payments were acknowledged, %d orders are paid and %d entries booked", acknowledged,
			ordersAfter-orders, entriesAfter-entries)
	}
	return nil
}
