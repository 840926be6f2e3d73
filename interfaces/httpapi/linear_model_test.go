package httpapi_test

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// The sequential model of one order and the records of its keys, against which recorded histories are checked. A history
// is linearizable if every request can be given a point between its call and its answer so that the model, stepping from
// point to point, gives the same answers.
//
// One point is not enough for a confirmation: its reservation and its outcome are two commits, and what lies between
// them can be seen from outside. So a request that executes has two points, a beginning and an ending. A request whose
// answer did not come may have its points at any later time, or, which is the same, after everything else: never.
//
// The model knows no time, but the clock of a history may refute it: nobody can have taken a record over from a holder
// that called less than a lease ago, and a holder that was answered more than a lease ago keeps nobody waiting.
//
// What the model does not know, it tries: a step leads to every state that is possible. What an unanswered request has
// stored is bound when it is first seen, and must be the same from then on.

// kind is what a request asks for.
type kind string

const (
	confirm kind = "confirm"
	cancel  kind = "cancel"
	read    kind = "GET order"
	lookUp  kind = "look up"
	charges kind = "charges" // the provider's own account, asked past the service
)

// exchange is one request and what came back.
type exchange struct {
	on       *story
	number   int // in the story
	client   int
	kind     kind
	record   int    // of the key: which of the order's records
	asked    string // what the request means; the same under one key is a repeat
	matching bool   // a confirmation of the order's own money

	call, end time.Duration // since the history began; end is never when no answer came
	code      string        // ok, a problem's code, or none
	replayed  bool
	body      string // as it came; of a look-up the recorded document
	status    string // of the order or the record that is read
	mark      string // what tells this payment or this cancelling from any other
	charged   int    // times that the provider has taken money
}

const (
	ok   = "ok"
	none = "no answer"

	never = time.Duration(math.MaxInt64)
)

// story is all that was asked about one order.
type story struct {
	exchanges []*exchange
	lease     time.Duration
	fragile   bool // its store loses commits: an unknown outcome may still become known, much later
}

// The records of an order's keys.
const (
	firstKey = iota
	secondKey
	cancelKey
	recordsOfOrder
)

// state is an order and its records, as a comparable value.
type state struct {
	order   orderState
	records [recordsOfOrder]recordState
}

type orderState struct {
	status string
	payer  int    // the record whose request is paying, while PAYMENT_PENDING
	mark   string // empty: not yet seen
}

type recordState struct {
	status string // empty: there is none
	asked  string
	holder int    // number of the request that executes, plus one; 0: nobody, the next may
	code   string // of the outcome
	body   string // empty: not yet seen
}

func (r recordState) finished() bool { return r.status == "SUCCEEDED" || r.status == "FAILED" }

// point is one of an exchange's points.
type point struct {
	of        *exchange
	beginning bool
}

// linearModel is the model of all orders at once, each apart from the others.
var linearModel = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		var parts [][]porcupine.Operation
		of := map[*story]int{}
		for _, o := range history {
			s := o.Input.(point).of.on
			i, known := of[s]
			if !known {
				i = len(parts)
				of[s], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() []any { return []any{state{order: orderState{status: "PLACED"}}} },
	Step: func(from, input, _ any) (to []any) {
		p := input.(point)
		next := p.of.ending
		if p.beginning {
			next = p.of.begin
		}
		for _, s := range next(from.(state)) {
			to = append(to, s)
		}
		return to
	},
	Hash:              func(s any) uint64 { return maphash.Comparable(hashSeed, s.(state)) },
	DescribeOperation: func(input, _ any) string { return input.(point).String() },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}).ToModel()

var hashSeed = maphash.MakeSeed()

// String is the point as the picture of a history shows it.
func (p point) String() string {
	x := p.of
	if p.beginning {
		return fmt.Sprintf("%s begins (%s, key %d)", x.kind, x.asked, x.record)
	}
	return fmt.Sprintf("%s (%s, key %d): %s %s %s replayed=%t charged=%d %s",
		x.kind, x.asked, x.record, x.code, x.status, x.mark, x.replayed, x.charged, x.body)
}

// points are the exchange's points, each somewhere between its call and its end. One that told nothing and did nothing has
// none.
func (x *exchange) points() (all []porcupine.Operation) {
	if x.code == "unavailable" || x.code == none && !x.writes() {
		return nil
	}
	at := porcupine.Operation{ClientId: x.client, Call: int64(x.call), Return: int64(x.last())}
	if x.mayReserve() {
		at.Input = point{x, true}
		all = append(all, at)
	}
	at.Input = point{x, false}
	return append(all, at)
}

// uncertain tells that the effect may come at any later time, or never.
func (x *exchange) uncertain() bool {
	return x.code == none || x.code == "outcome_unknown" && x.on.fragile
}

// last is when the effect came at the latest.
func (x *exchange) last() time.Duration {
	if x.uncertain() {
		return never
	}
	return x.end
}

// executes tells that the answer stems from the request's own execution.
func (x *exchange) executes() bool {
	switch x.code {
	case none, "outcome_unknown":
		return true
	case "idempotency_in_progress", "idempotency_key_reused", "payment_in_progress", "unavailable":
		return false
	default:
		return !x.replayed
	}
}

// locks tells that the request may have held rows that others came upon.
func (x *exchange) locks() bool {
	return x.writes() && (x.executes() || x.code == "payment_in_progress" || x.code == "unavailable")
}

// mayReserve tells that the request may have held the record for a time before its ending. One that answers for others
// can have lost it only after a whole lease, or by a commit whose answer was lost.
func (x *exchange) mayReserve() bool {
	switch {
	case x.kind != confirm, x.code == "unavailable", x.code == "idempotency_key_reused":
		return false
	case x.executes():
		return true
	default:
		return x.end-x.call >= x.on.lease || x.on.fragile && !x.replayed
	}
}

// begin is the first point: the reservation is committed, perhaps.
func (x *exchange) begin(s state) []state {
	to := []state{s}
	if reserved, may := x.reserve(s); may {
		to = append(to, reserved)
	}
	return to
}

// reserve makes the record the request's, if it may have it.
func (x *exchange) reserve(s state) (state, bool) {
	r := &s.records[x.record]
	switch {
	case r.status == "" && s.order.status == "PLACED" && x.matching:
		s.order = orderState{status: "PAYMENT_PENDING", payer: x.record}
		*r = recordState{status: "IN_PROGRESS", asked: x.asked, holder: x.number + 1}
		return s, true
	case r.status == "IN_PROGRESS" && r.asked == x.asked && x.outlives(r.holder):
		r.holder = x.number + 1
		return s, true
	default:
		return s, false
	}
}

// outlives tells that the request may have found the holder's lease over.
func (x *exchange) outlives(holder int) bool {
	return holder == 0 || holder == x.number+1 || x.last()-x.on.exchanges[holder-1].call >= x.on.lease
}

// alive tells that the request may have found the holder at work, or its lease not over.
func (x *exchange) alive(holder int) bool {
	if holder == 0 {
		return false
	}
	h := x.on.exchanges[holder-1]
	return h.end == never || x.call <= h.end+x.on.lease
}

// ending is the point at which the answer is true.
func (x *exchange) ending(s state) []state {
	r := &s.records[x.record]
	switch {
	case x.kind == read:
		return x.reads(s)
	case x.kind == lookUp:
		return x.looksUp(s)
	case x.kind == charges:
		return x.counts(s)
	case x.uncertain():
		return x.perhaps(s)
	case x.code == "outcome_unknown":
		return x.givesUp(s)
	case x.code == "idempotency_key_reused":
		return when(r.status != "" && r.asked != x.asked, &s)
	case x.code == "idempotency_in_progress":
		waits := r.status == "IN_PROGRESS" && r.asked == x.asked && x.alive(r.holder)
		return when(waits || !r.finished() && x.meets(func(o *exchange) bool { return o.record == x.record }), &s)
	case x.code == "payment_in_progress":
		paying := s.order.status == "PAYMENT_PENDING" && s.order.payer != x.record
		free := r.status == "" || r.status == "IN_PROGRESS" && r.asked == x.asked
		return when(free && (paying || x.meets(func(*exchange) bool { return true })), &s)
	case x.replayed:
		return x.replays(s)
	default:
		return x.concludes(s)
	}
}

// meets tells that the request may have come upon rows that another one held.
func (x *exchange) meets(which func(*exchange) bool) bool {
	return slices.ContainsFunc(x.on.exchanges, func(o *exchange) bool {
		return o != x && o.locks() && o.call <= x.end && x.call <= o.last() && which(o)
	})
}

// replays is an answer from the record.
func (x *exchange) replays(s state) []state {
	r := &s.records[x.record]
	return when(r.finished() && r.asked == x.asked && r.code == x.code && bind(&r.body, x.body) && x.marks(&s), &s)
}

// marks tells that a replayed payment or cancelling is the order's own. The order may have gone on since, but neither PAID
// nor CANCELLED is ever left.
func (x *exchange) marks(s *state) bool { return x.code != ok || bind(&s.order.mark, x.mark) }

// concludes is an outcome of the request's own execution, from now on on record.
func (x *exchange) concludes(s state) []state {
	fresh := s.records[x.record].status == ""
	at := s.order.status
	switch {
	case x.kind == confirm && x.code == ok:
		var to []state
		if held, may := x.reserve(s); may {
			held.order = orderState{status: "PAID", mark: x.mark}
			to = append(to, *x.recorded(&held))
		}
		if fresh && at == "PAID" && x.matching && bind(&s.order.mark, x.mark) {
			to = append(to, *x.recorded(&s))
		}
		return to
	case x.kind == confirm && x.code == "payment_declined":
		held, may := x.reserve(s)
		held.order = orderState{status: "PLACED"}
		return when(may, x.recorded(&held))
	case x.kind == confirm && x.code == "amount_mismatch":
		return when(fresh && !x.matching && (at == "PLACED" || at == "PAID"), x.recorded(&s))
	case x.kind == confirm && x.code == "invalid_state":
		return when(fresh && at == "CANCELLED", x.recorded(&s))
	case x.kind == cancel && x.code == ok && at == "PLACED":
		s.order = orderState{status: "CANCELLED", mark: x.mark}
		return when(fresh, x.recorded(&s))
	case x.kind == cancel && x.code == ok:
		return when(fresh && at == "CANCELLED" && bind(&s.order.mark, x.mark), x.recorded(&s))
	case x.kind == cancel && x.code == "invalid_state":
		return when(fresh && at == "PAID", x.recorded(&s))
	default:
		return nil // an answer that the contract does not know
	}
}

// recorded puts the outcome on record.
func (x *exchange) recorded(s *state) *state {
	status := "SUCCEEDED"
	if x.code != ok {
		status = "FAILED"
	}
	s.records[x.record] = recordState{status: status, asked: x.asked, code: x.code, body: x.body}
	return s
}

// perhaps is the ending of a request without an answer: whatever it could have done, or nothing.
func (x *exchange) perhaps(s state) []state {
	to := []state{s}
	if x.kind == confirm && s.records[x.record].holder == x.number+1 {
		given := s
		given.records[x.record].holder = 0
		to = append(to, given)
	}
	possible := []string{ok, "invalid_state"}
	if x.kind == confirm {
		possible = append(possible, "payment_declined", "amount_mismatch")
	}
	for _, code := range possible {
		unseen := *x
		unseen.code, unseen.body, unseen.mark = code, "", ""
		to = append(to, unseen.concludes(s)...)
	}
	return to
}

// givesUp is an unknown outcome: the record stays in progress, and its lease has ended or does so in time. One who has
// lost the record changes nothing.
func (x *exchange) givesUp(s state) []state {
	r := s.records[x.record]
	to := when(r.status == "IN_PROGRESS" && r.asked == x.asked || r.finished() && x.end-x.call >= x.on.lease, &s)
	if held, may := x.reserve(s); may {
		ended := held
		ended.records[x.record].holder = 0
		to = append(to, held, ended)
	}
	return to
}

func (x *exchange) reads(s state) []state {
	same := x.code == ok && s.order.status == x.status
	if x.status == "PAID" || x.status == "CANCELLED" {
		same = same && bind(&s.order.mark, x.mark)
	}
	return when(same, &s)
}

func (x *exchange) looksUp(s state) []state {
	r := &s.records[x.record]
	switch {
	case x.code == "not_found":
		return when(r.status == "", &s)
	case x.status == "IN_PROGRESS":
		return when(r.status == x.status, &s)
	default:
		return when(r.finished() && r.status == x.status && bind(&r.body, x.body), &s)
	}
}

// counts is the provider's account: a paid order is charged once, and one whose payment does not run is not.
func (x *exchange) counts(s state) []state {
	switch s.order.status {
	case "PAID":
		return when(x.charged == 1, &s)
	case "PAYMENT_PENDING":
		return when(x.charged <= 1, &s)
	default:
		return when(x.charged == 0, &s)
	}
}

// bind tells whether what is seen is what stands; what nobody has seen yet is this from now on.
func bind(stands *string, seen string) bool {
	if *stands == "" {
		*stands = seen
	}
	return seen == "" || *stands == seen
}

// when is the one next state, or none. It takes a pointer because its condition may bind something in the state.
func when(may bool, s *state) []state {
	if !may {
		return nil
	}
	return []state{*s}
}
