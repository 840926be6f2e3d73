package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kakutei/interfaces/client"
)

// errNoMore ends a load before its time: there is nothing left to do.
var errNoMore = errors.New("nothing left to do")

// load has so many clients do something over and over, each when it has been answered, for a time.
func load(conns int, during time.Duration, do func() error) (ran, error) {
	var all sync.WaitGroup
	times, errs := make([][]time.Duration, conns), make([]error, conns)
	begun, used := time.Now(), ownCPU()
	for i := range conns {
		all.Go(func() {
			for time.Since(begun) < during {
				asked := time.Now()
				err := do()
				if errors.Is(err, errNoMore) {
					return
				}
				if err != nil {
					errs[i] = err
					return
				}
				times[i] = append(times[i], time.Since(asked))
			}
		})
	}
	all.Wait()
	took, r := time.Since(begun), ran{load: ownCPU() - used}
	for _, t := range times {
		r.times = append(r.times, t...)
	}
	r.count, r.rate = len(r.times), float64(len(r.times))/took.Seconds()
	return r, errors.Join(errs...)
}

// ownCPU is the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The one cart of the bench, and its payment.
var (
	cart = client.NewOrder{
		Currency: "JPY", Lines: []client.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}},
	}
	money = client.Payment{Amount: 1000, Currency: "JPY"}
)

// purchase is an order, the key under which it is paid, and what the payment was answered.
type purchase struct {
	order   string
	key     client.Intent
	receipt []byte
}

// stock is orders that wait for their payment, and those that have it.
type stock struct {
	mu   sync.Mutex
	open []purchase
	paid []purchase
	next atomic.Int64
}

func (s *stock) add(order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, purchase{order: order, key: client.NewIntent()})
}

func (s *stock) take() (purchase, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		return purchase{}, errNoMore
	}
	p := s.open[0]
	s.open = s.open[1:]
	return p, nil
}

func (s *stock) settle(p purchase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paid = append(s.paid, p)
}

// supply is how many orders a cell may pay in a second.
const supply = 6000

// source makes orders that wait for their payment past the service, which has never seen them: they are inserted, each
// like one that is there.
type source struct {
	store interface {
		orders(ctx context.Context, like string, first, last int64) error
	}
	like string
	made int64
}

// insert makes n orders. The first one's number is told.
func (s *source) insert(ctx context.Context, n int64) (first int64, err error) {
	first = s.made + 1
	s.made += n
	return first, s.store.orders(ctx, s.like, first, s.made)
}

// fill makes what a stock lacks to last for a cell.
func (s *source) fill(ctx context.Context, into *stock, during time.Duration) error {
	missing := int64(during.Seconds()*supply) - int64(len(into.open))
	if missing <= 0 {
		return nil
	}
	first, err := s.insert(ctx, missing)
	if err != nil {
		return err
	}
	for n := first; n < first+missing; n++ {
		into.add(idOf(n))
	}
	return nil
}

// place has an order placed.
func (s *stock) place(ctx context.Context, shop *client.Client) error {
	placed, err := shop.PlaceOrder(ctx, client.NewIntent(), cart)
	if err != nil {
		return err
	}
	s.add(placed.OrderID)
	return nil
}

// remembered is how many of the orders that a service has placed it may still know when they are paid.
const remembered = 16_000

// latest has orders placed until n wait for their payment. Of more, those placed first are left out.
func (s *stock) latest(ctx context.Context, shop *client.Client, n int) error {
	s.open = s.open[max(0, len(s.open)-n):]
	var missing atomic.Int64
	missing.Store(int64(n - len(s.open)))
	_, err := load(busiest, time.Hour, func() error {
		if missing.Add(-1) < 0 {
			return errNoMore
		}
		return s.place(ctx, shop)
	})
	return err
}

// confirm has an order paid that was not before.
func (s *stock) confirm(ctx context.Context, shop *client.Client) error {
	p, err := s.take()
	if err != nil {
		return err
	}
	paid, err := shop.ConfirmPayment(ctx, p.key, p.order, money)
	if err != nil {
		return err
	}
	p.receipt = paid.Answer.Body
	s.settle(p)
	return nil
}

// replay asks for a payment again that there was.
func (s *stock) replay(ctx context.Context, shop *client.Client) error {
	if len(s.paid) == 0 {
		return errNoMore
	}
	p := s.paid[int(s.next.Add(1))%len(s.paid)]
	again, err := shop.ConfirmPayment(ctx, p.key, p.order, money)
	if err != nil {
		return err
	}
	if !again.Answer.Replayed() || string(again.Answer.Body) != string(p.receipt) {
		return fmt.Errorf("a replay is another answer: %s, first %s", again.Answer.Body, p.receipt)
	}
	return nil
}

// ask has the no-op confirm the one payment that it knows.
func ask(ctx context.Context, shop *client.Client) error {
	_, err := shop.ConfirmPayment(ctx, client.NewIntent(), constantOrder, money)
	return err
}
