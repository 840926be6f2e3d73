package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// answerSteps are what is to be said of an answer.
func answerSteps() []step {
	return []step{
		sentence("the answer is {n}", "the answer is 200", "応答は{n}である", "応答は200である",
			func(_ context.Context, w *world, b blanks) error {
				n, err := b.n()
				if err != nil {
					return err
				}
				return w.demand(w.last.status == n, "the answer is %d, not %d", w.last.status, n)
			}),
		sentence("the problem is {text}", `the problem is "idempotency_key_reused"`,
			"問題は{text}である", `問題は"idempotency_key_reused"である`, problemIs),
		sentence("the problem is {text} and advises a new key",
			"the problem is `idempotency_key_reused` and advises a new key",
			"問題は{text}であり、新しいキーを勧める", `問題は"idempotency_key_reused"であり、新しいキーを勧める`,
			func(ctx context.Context, w *world, b blanks) error {
				if err := problemIs(ctx, w, b); err != nil {
					return err
				}
				return advises("new-key")(ctx, w)
			}),
		plain("it advises a new key", "新しいキーを勧める", advises("new-key")),
		plain("it advises the same key", "同じキーを勧める", advises("same-key")),
		plain("it advises to fix the request", "要求の修正を勧める", advises("after-fix")),
		plain("it advises never to send it again", "再送しないことを勧める", advises("never")),
		plain("it says when to come again", "次に送る時刻を告げる", func(_ context.Context, w *world) error {
			text := w.last.received.Get("Retry-After")
			seconds, err := strconv.Atoi(text)
			return w.demand(err == nil && seconds >= 1 && seconds <= 3600, "Retry-After is %q", text)
		}),
		plain("the answer is a replay", "応答は再送応答である", func(_ context.Context, w *world) error {
			return w.demand(replayed(w.last), "the answer is no replay")
		}),
		plain("the second answer is a replay", "2回目の応答は再送応答である", func(_ context.Context, w *world) error {
			if w.deed == nil || len(w.deed.answers) < 2 {
				return errNoTwo
			}
			return w.demand(replayed(w.deed.answers[1]), "the second answer is no replay")
		}),
		plain("the answer is not a replay", "応答は再送応答ではない", func(_ context.Context, w *world) error {
			return w.demand(w.last.status != 0 && !replayed(w.last), "the answer is a replay, or none")
		}),
		plain("the answer is the same", "応答は同じである", same),
		plain("no answer comes", "応答が来ない", func(_ context.Context, w *world) error {
			return w.demand(w.last.status == 0 || w.last.lost, "there is an answer")
		}),
		sentence("the answer has the header {text}", `the answer has the header "Location"`,
			"応答にヘッダー{text}がある", `応答にヘッダー"Location"がある`, func(_ context.Context, w *world, b blanks) error {
				return w.demand(w.last.received.Get(b.text()) != "", "the answer has no %s", b.text())
			}),
		sentence("the answer's {name} is {text}", `the answer's declineCode is "card_declined"`,
			"応答の{name}は{text}である", `応答のdeclineCodeは"card_declined"である`,
			func(_ context.Context, w *world, b blanks) error {
				value, there := member(w.last.answer, strings.Split(b.by["name"], ".")...)
				return w.demand(there && value == b.text(), "the answer's %s is %q", b.by["name"], value)
			}),
		plain("every answer is the same or advises the same key", "どの応答も同じか、同じキーを勧める", oneAnswer),
		sentence("one of the answers is {n}", "one of the answers is 429", "{n}の応答が含まれる", "429の応答が含まれる", oneOfThem),
		sentence("exactly one answer is {n}", "exactly one answer is 201", "{n}の応答はちょうど1つである", "201の応答はちょうど1つである",
			func(_ context.Context, w *world, b blanks) error {
				wanted, err := b.n()
				if err != nil {
					return err
				}
				found := w.count(func(e exchange) bool { return e.status == wanted })
				return w.demand(found == 1, "%d answers are %d", found, wanted)
			}),
		plain("exactly one answer is no replay", "再送応答でない応答はちょうど1つである", func(_ context.Context, w *world) error {
			found := w.count(func(e exchange) bool { return settled(e) && !replayed(e) })
			return w.demand(found == 1, "%d answers are no replays", found)
		}),
		plain("every receipt names the same payment", "どの支払い確認も同じ支払いを示す", func(_ context.Context, w *world) error {
			return w.oneOf("paymentId", "paidAt")
		}),
	}
}

var errNoTwo = errors.New("there are no two answers to one request")

// oneOfThem demands an answer with this status. It is the answer that the next steps judge.
func oneOfThem(_ context.Context, w *world, b blanks) error {
	wanted, err := b.n()
	if err != nil {
		return err
	}
	for _, e := range w.all {
		if e.status == wanted {
			w.last = e
			return nil
		}
	}
	return w.demand(false, "no answer is %d", wanted)
}

// problemIs demands a problem document with this code.
func problemIs(_ context.Context, w *world, b blanks) error {
	code, kind := problemIn(w.last).Code, w.last.received.Get("Content-Type")
	if err := w.demand(code == b.text(), "the problem is %q, not %q", code, b.text()); err != nil {
		return err
	}
	return w.demand(kind == "application/problem+json", "a problem comes as %q", kind)
}

// demand is an error unless something holds. The error is followed by the request and the answer.
func (w *world) demand(holds bool, format string, of ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, of...)
}

func advises(retry string) func(context.Context, *world) error {
	return func(_ context.Context, w *world) error {
		said := problemIn(w.last).Retry
		return w.demand(said == retry, "the advice is %q, not %q", said, retry)
	}
}

func (w *world) count(which func(exchange) bool) (n int) {
	for _, e := range w.all {
		if which(e) {
			n++
		}
	}
	return n
}

// same compares the last answer with the first one that settled the request, also when that one was lost.
func same(_ context.Context, w *world) error {
	if w.deed == nil || len(w.deed.answers) < 2 {
		return errNoTwo
	}
	for _, first := range w.deed.answers[:len(w.deed.answers)-1] {
		if !settled(first) {
			continue
		}
		if first.status != w.last.status || string(first.answer) != string(w.last.answer) ||
			first.received.Get("Content-Type") != w.last.received.Get("Content-Type") {
			return fmt.Errorf("the answer is another one; the first was\n%s", first)
		}
		return nil
	}
	return errors.New("no earlier answer has settled the request")
}

// oneAnswer demands that whatever came is the one answer, or asks to come again with the same key.
func oneAnswer(_ context.Context, w *world) error {
	if w.deed == nil {
		return errNothingSent
	}
	var first *exchange
	for _, e := range w.deed.answers {
		switch {
		case e.status == 0, !settled(e) && problemIn(e).Retry != "same-key":
			return fmt.Errorf("an answer neither settles it nor advises the same key:\n%s", e)
		case !settled(e):
		case first == nil:
			first = &e
		case first.status != e.status || string(first.answer) != string(e.answer):
			return fmt.Errorf("two answers differ:\n%s\n%s", first, e)
		}
	}
	return w.demand(first != nil, "no answer has settled it")
}

// oneOf demands that the successes agree on these members, and that there is one.
func (w *world) oneOf(names ...string) error {
	first, found := "", false
	for _, e := range w.all {
		if e.status < 200 || e.status > 299 {
			continue
		}
		var values []string
		for _, name := range names {
			value, there := member(e.answer, name)
			if !there {
				return fmt.Errorf("an answer has no %s:\n%s", name, e)
			}
			values = append(values, value)
		}
		text := strings.Join(values, " ")
		if found && text != first {
			return fmt.Errorf("one answer says %s, another one %s:\n%s", first, text, e)
		}
		first, found = text, true
	}
	return w.demand(found, "no answer is a success")
}
