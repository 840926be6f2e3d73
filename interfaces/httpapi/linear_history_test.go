package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/domain/payment"
	"kakutei/infrastructure/storetest"
)

// history is what clients did at the edges and saw.
type history struct {
	began   time.Time
	edges   []edge
	orders  []*askedOrder
	settled time.Duration // how long it took until every key had its outcome
}

// askedOrder is an order and its story while it is written.
type askedOrder struct {
	id       string
	provider *storetest.Provider

	mu    sync.Mutex
	story *story
}

const (
	ordersOfHistory  = 4
	clientsOfOrder   = 4
	requestsOfClient = 4
	hangUpOneIn      = 12
)

// record has clients work at the edges of a service, and writes down what they see. Which requests they send follows from
// the seed; how they meet does not. When they are done all faults end, and every key must come to its outcome. Errors: an
// answer that cannot be understood, a key without an outcome.
func (s *shaken) record(t *testing.T, seed uint64) (*history, error) {
	t.Helper()
	h := &history{began: time.Now(), edges: s.edges}
	for range ordersOfHistory {
		o := &askedOrder{id: h.edges[0].place(t), provider: s.provider}
		o.story = &story{lease: hurried.Lease}
		h.orders = append(h.orders, o)
	}
	s.provider.Next(misbehaviour(chance(seed, 0))...)
	s.shake(chance(seed, 1))
	var clients sync.WaitGroup
	errs := make(chan error, ordersOfHistory*clientsOfOrder*requestsOfClient+1)
	for n, o := range h.orders {
		for c := range clientsOfOrder {
			plan := chance(seed, uint64(2+n*clientsOfOrder+c))
			clients.Go(func() {
				for turn := range requestsOfClient {
					if c == 0 && turn == requestsOfClient/2 { // one client comes back when leases are over
						time.Sleep(hurried.Lease + rand.N(hurried.Lease/4))
					}
					errs <- h.askOnce(context.WithoutCancel(t.Context()), o, planned(plan, n, c), plan)
					time.Sleep(rand.N(3 * time.Millisecond))
				}
			})
		}
	}
	clients.Wait()
	s.calm()
	errs <- h.settle(t.Context())
	for _, o := range h.orders {
		o.story.fragile = s.losesCommits()
	}
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return h, err
}

// chance is the same at each run: a history is to be repeatable, not unpredictable.
func chance(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

func upTo(chance *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(chance.Int64N(int64(most)))
}

// misbehaviour is a provider that is slow, loses answers, declines and is not to be reached.
func misbehaviour(chance *rand.Rand) []storetest.Call {
	calls := make([]storetest.Call, ordersOfHistory*4)
	for i := range calls {
		calls[i] = storetest.Approving
		if chance.IntN(5) == 0 {
			calls[i] = storetest.Declining("card_declined")
		}
		if chance.IntN(3) == 0 {
			calls[i] = slowly(upTo(chance, 60*time.Millisecond), calls[i])
		}
		switch chance.IntN(8) {
		case 0, 1:
			calls[i] = storetest.Losing(calls[i])
		case 2:
			calls[i] = storetest.Unreachable
		}
	}
	return calls
}

// slowly plays the call and keeps its answer back for a time.
func slowly(by time.Duration, call storetest.Call) storetest.Call {
	return func(ctx context.Context, a payment.Attempt, book storetest.Book) (payment.Answer, error) {
		answer, err := call(ctx, a, book)
		select {
		case <-time.After(by):
			return answer, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

const (
	usual   = `{"amount":1000,"currency":"JPY"}`
	another = `{"amount":1000,"currency":"JPY","paymentMethod":"pm_other"}`
	less    = `{"amount":999,"currency":"JPY"}`
)

// planned is what a client sends next. Every other order is one that clients like to cancel.
func planned(chance *rand.Rand, order, client int) *exchange {
	x := &exchange{client: client, kind: confirm, asked: usual, record: firstKey}
	if chance.IntN(4) == 0 {
		x.record = secondKey
	}
	switch n := chance.IntN(24); {
	case n < 13:
	case n < 15:
		x.asked = less
	case n == 15:
		x.asked = another
	case n < 18:
		x.kind, x.asked = read, ""
	case n < 21:
		x.kind, x.asked = lookUp, ""
	case n == 21:
		x.kind, x.asked = charges, ""
	case order%2 == 0 || n == 22:
		x.kind, x.record, x.asked = cancel, cancelKey, `{}`
		if chance.IntN(3) == 0 {
			x.asked = `{"reason":"another"}`
		}
	}
	x.matching = x.kind == confirm && x.asked != less
	return x
}

// askOnce sends a request to one of the edges, and hangs up on it sometimes.
func (h *history) askOnce(ctx context.Context, o *askedOrder, x *exchange, chance *rand.Rand) error {
	at := h.edges[chance.IntN(len(h.edges))]
	if x.writes() && chance.IntN(hangUpOneIn) == 0 {
		hasty, hangUp := context.WithTimeout(ctx, rand.N(8*time.Millisecond))
		defer hangUp()
		ctx = hasty
	}
	return h.ask(ctx, o, at, x)
}

// ask sends a request and writes the exchange down. Error: an answer that cannot be understood. That none came is none:
// nobody knows then whether it arrived.
func (h *history) ask(ctx context.Context, o *askedOrder, at edge, x *exchange) error {
	o.mu.Lock()
	x.on, x.number = o.story, len(o.story.exchanges)
	o.story.exchanges = append(o.story.exchanges, x)
	o.mu.Unlock()
	x.code, x.end, x.call = none, never, time.Since(h.began)
	if x.kind == charges {
		x.charged = o.charged(ctx)
		x.code, x.end = ok, time.Since(h.began)
		return nil
	}
	a, err := at.try(ctx, o.request(x))
	if err != nil {
		return nil //nolint:nilerr // it is what the history tells
	}
	x.end = time.Since(h.began)
	return x.understand(a)
}

// charged is how often the provider has taken the order's money.
func (o *askedOrder) charged(ctx context.Context) (n int) {
	list, _ := o.provider.Lookup(ctx, o.id) // never hidden here
	for _, b := range list {
		if _, taken := b.Answer.(payment.Charge); taken {
			n++
		}
	}
	return n
}

func (o *askedOrder) key(record int) string { return fmt.Sprint(o.id, "/", record) }

func (o *askedOrder) request(x *exchange) request {
	var r request
	key := o.key(x.record)
	switch x.kind {
	case confirm:
		r = confirming(o.id).saying(x.asked).key(key)
	case cancel:
		r = cancelling(o.id).saying(x.asked).key(key)
	case lookUp:
		operation := checkout.OpConfirmPayment
		if x.record == cancelKey {
			operation = checkout.OpCancelOrder
		}
		r = outcomeOf(confirming(o.id).key(key), string(operation))
	case read, charges:
		r = get("/api/orders/" + o.id)
	}
	r.chunked = r.body != "" // a body that cannot be read twice: the transport must not send it again by itself
	return r
}

// understand reads the answer as the model knows it.
func (x *exchange) understand(a answer) error {
	var seen struct {
		Code                                         string
		Status                                       any // of a problem it is a number
		PaidAt, PaymentID, CancelledAt, CancelReason string
		Response, Problem                            json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.body), &seen); err != nil {
		return fmt.Errorf("%d %s: %w", a.status, a.body, err)
	}
	x.code, x.body = seen.Code, a.body
	x.status, _ = seen.Status.(string)
	if a.status < http.StatusBadRequest {
		x.code = ok
	}
	x.replayed = a.header.Get("Idempotent-Replayed") == "true"
	switch x.status {
	case "PAID":
		x.mark = seen.PaidAt + " " + seen.PaymentID
	case "CANCELLED":
		x.mark = seen.CancelledAt + " " + seen.CancelReason
	}
	if x.kind == lookUp {
		x.body = string(seen.Response) + string(seen.Problem)
	}
	return nil
}

// longestToSettle is how long a key may stay without its outcome once all faults are over: a lease that nobody could end,
// and the slack of a busy machine.
const longestToSettle = 20 * time.Second

// settle repeats whatever was asked under every key until it has its outcome, and looks at everything once more.
func (h *history) settle(ctx context.Context) error {
	began := time.Now()
	for n, o := range h.orders {
		for turn := n; ; turn++ {
			open, err := h.repeat(ctx, o, h.edges[turn%len(h.edges)])
			if err != nil {
				return err
			}
			if !open {
				break
			}
			if time.Since(began) > longestToSettle {
				return fmt.Errorf("a key of order %s stays without its outcome", o.id)
			}
			time.Sleep(10 * time.Millisecond)
		}
		looks := []*exchange{{kind: read}, {kind: charges}}
		for record := range recordsOfOrder {
			looks = append(looks, &exchange{kind: lookUp, record: record})
		}
		for _, x := range looks {
			x.client = clientsOfOrder
			if err := h.ask(ctx, o, h.edges[0], x); err != nil {
				return err
			}
		}
	}
	h.settled = time.Since(began)
	return nil
}

// repeat sends again all that has had no final answer yet under its key, and tells whether there was any. A repeat that
// did nothing is not written down.
func (h *history) repeat(ctx context.Context, o *askedOrder, at edge) (open bool, err error) {
	type meaning struct {
		record int
		asked  string
	}
	final := map[meaning]bool{}
	for _, x := range o.story.exchanges {
		final[meaning{x.record, x.asked}] = final[meaning{x.record, x.asked}] || x.final()
	}
	for _, x := range slices.Clone(o.story.exchanges) {
		if m := (meaning{x.record, x.asked}); x.writes() && !final[m] {
			final[m], open = true, true // once in this round
			again := &exchange{client: clientsOfOrder, kind: x.kind, record: x.record, asked: x.asked, matching: x.matching}
			if err := h.ask(ctx, o, at, again); err != nil {
				return true, err
			}
			if again.idle() {
				o.story.exchanges = o.story.exchanges[:again.number]
			}
		}
	}
	return open, nil
}

func (x *exchange) writes() bool { return x.kind == confirm || x.kind == cancel }

// final tells that the key needs no further request.
func (x *exchange) final() bool { return x.code != none && x.code != "outcome_unknown" && !x.idle() }

// idle tells that the answer says to come again, and that nothing was done.
func (x *exchange) idle() bool {
	return slices.Contains([]string{"unavailable", "idempotency_in_progress", "payment_in_progress"}, x.code)
}

// deeds are the history as the checker reads it.
func (h *history) deeds() (all []porcupine.Operation) {
	for _, o := range h.orders {
		for _, x := range o.story.exchanges {
			all = append(all, x.points()...)
		}
	}
	return all
}

// longestToCheck bounds the search. It takes milliseconds, but where requests without an answer can have come anywhere it has
// taken a minute on a busy machine: what was not searched to its end is no answer.
const longestToCheck = 10 * time.Minute

// check searches an order of all points that the model can follow.
func (h *history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(linearModel, h.deeds(), longestToCheck)
}

// draw draws how far the search came into a file that is kept, unlike the test's own.
func (h *history) draw(t *testing.T) (path string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "kakutei-history-")
	require.NoError(t, err)
	path = filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-")+".html")
	_, info := porcupine.CheckOperationsVerbose(linearModel, h.deeds(), longestToCheck)
	require.NoError(t, porcupine.VisualizePath(linearModel, info, path))
	return path
}
