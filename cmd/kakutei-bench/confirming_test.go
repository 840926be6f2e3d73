package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/order"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
	"kakutei/interfaces/client"
)

// till is a service that writes down what it is asked for, and its store, into which others insert orders.
type till struct {
	mu     sync.Mutex
	placed []string
	paid   []string        // in the order in which they were first
	keys   map[string]bool // that have paid
}

func (l *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	of, pays := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/orders/"), "/confirm-payment")
	if !pays {
		l.placed = append(l.placed, fmt.Sprintf("here-%d", len(l.placed)))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"orderId":%q,"status":"PLACED","amount":1000,"currency":"JPY"}`, l.placed[len(l.placed)-1])
		return
	}
	if key := r.Header.Get("Idempotency-Key"); l.keys[key] {
		w.Header().Set("Idempotent-Replayed", "true")
	} else {
		l.keys[key] = true
		l.paid = append(l.paid, of)
	}
	fmt.Fprint(w, strings.Replace(constantReceipt, constantOrder, of, 1))
}

func (*till) orders(context.Context, string, int64, int64) error { return nil }

// booked is the till's store.
type booked struct{ *till }

func (b booked) paid(context.Context) (orders, entries int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.till.paid)), int64(len(b.till.paid)), nil
}

// at serves a till.
func at(t *testing.T, l *till) *instance {
	t.Helper()
	l.keys = map[string]bool{}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	shop, err := client.New(server.URL, client.WithToken(token))
	require.NoError(t, err)
	return &instance{shop: shop, process: this()}
}

// this stands for the processes that are measured.
func this() *exec.Cmd { return &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}} }

// A service may know an order that it has placed, so what it has placed is measured apart from what it has never seen.
func TestOrdersPlacedHereArePaidApartFromThoseThatAreNot(t *testing.T) {
	l := &till{}
	s := shopper{
		&bench{seconds: 50 * time.Millisecond, postgres: &postgres{server: this()}}, &confirmations{results: results{}},
		at(t, l),
		booked{l},
		&source{store: l}, onSQLite,
	}
	require.NoError(t, s.shop(t.Context(), 2))
	count := func(what string) int {
		require.Len(t, s.results[cell{onSQLite, what, 2}], 1, what)
		return s.results[cell{onSQLite, what, 2}][0].Count
	}
	elsewhere, here := count(confirmElsewhere), count(confirm)
	require.Len(t, l.paid, elsewhere+here)
	for i, id := range l.paid {
		assert.Equal(t, i >= elsewhere, strings.HasPrefix(id, "here-"), "payment %d: %s", i, id)
	}
	assert.Len(t, l.placed, 2*count(place), "as many again")
	assert.Positive(t, count(replay))
}

func TestOfOrdersPlacedTheLatestArePaid(t *testing.T) {
	l, s := &till{}, stock{}
	shop := at(t, l).shop
	require.NoError(t, s.latest(t.Context(), shop, 100))
	assert.Len(t, l.placed, 100)
	require.NoError(t, s.latest(t.Context(), shop, 150))
	assert.Len(t, l.placed, 150)
	last := s.open[149].order
	require.NoError(t, s.latest(t.Context(), shop, 40))
	assert.Len(t, l.placed, 150)
	require.Len(t, s.open, 40)
	assert.Equal(t, last, s.open[39].order)
}

func TestAnOrderInsertedIntoAFileCanBePaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	work, err := gormstore.Open(t.Context(), gormstore.Config{URL: "sqlite:" + path, Pool: 2, LockTimeout: gormtest.LockTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, work.Close()) })
	require.NoError(t, work.Migrate(t.Context()))
	shop := storetest.OpenShop(work, storetest.NewProvider())
	like, err := shop.Place(t.Context())
	require.NoError(t, err)
	f := file{path}
	require.NoError(t, f.orders(t.Context(), string(like), 7, 8))
	require.NoError(t, f.orders(t.Context(), string(like), 3<<47+5, 3<<47+5))
	for _, n := range []int64{7, 8, 3<<47 + 5} {
		require.NoError(t, settled(t.Context(), f, func() (int, error) {
			_, err := shop.ConfirmPayment(t.Context(), storetest.Payment(order.ID(idOf(n)), idOf(n)))
			return 1, err
		}))
	}
}
