package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kakutei/interfaces/client"
)

// shopSteps are what customers do.
func shopSteps() []step {
	return []step{
		sentence("an order of {amount} is placed", "an order of 1,000 yen is placed",
			"{amount}の注文がある", "1,000円の注文がある", func(ctx context.Context, w *world, b blanks) error {
				return w.givenOrder(ctx, "alice", b)
			}),
		sentence("{who} has placed an order of {amount}", "Bob has placed an order of 1,000 yen",
			"{who}に{amount}の注文がある", "ボブに1,000円の注文がある", func(ctx context.Context, w *world, b blanks) error {
				return w.givenOrder(ctx, b.who(), b)
			}),
		sentence("{who} places an order of {amount}", "Alice places an order of 1,000 yen",
			"{who}が{amount}分を注文する", "アリスが1,000円分を注文する",
			func(ctx context.Context, w *world, b blanks) error {
				p, err := w.person(b.who())
				money, wrong := b.amount()
				if err := errors.Join(err, wrong); err != nil {
					return err
				}
				return w.perform(ctx, w.placing(p, w.newKey(), money), 1)
			}),
		sentence("{who} confirms the payment", "Alice confirms the payment",
			"{who}が支払いを確定する", "アリスが支払いを確定する", confirm(once)),
		sentence("{who} confirms the payment of {amount}", "Alice confirms the payment of 2,000 yen",
			"{who}が{amount}の支払いを確定する", "アリスが2,000円の支払いを確定する", confirm(once)),
		sentence("{who} confirms the payment with the key {text}", `Alice confirms the payment with the key "K1"`,
			"{who}がキー{text}で支払いを確定する", `アリスがキー"K1"で支払いを確定する`, confirm(once)),
		sentence("{who} confirms the payment, but the answer is lost", "Alice confirms the payment, but the answer is lost",
			"{who}が支払いを確定するが、応答が失われる", "アリスが支払いを確定するが、応答が失われる",
			func(ctx context.Context, w *world, b blanks) error {
				w.loses = true
				return confirm(once)(ctx, w, b)
			}),
		sentence("{who} double-clicks", "Alice double-clicks",
			"{who}がダブルクリックする", "アリスがダブルクリックする", doubleClick),
		sentence("{who} confirms the payment {n} times at once", "Alice confirms the payment 20 times at once",
			"{who}が支払いを同時に{n}回確定する", "アリスが支払いを同時に20回確定する", confirm(blanks.n)),
		sentence("{who} confirms the payment in {n} tabs at once", "Alice confirms the payment in 10 tabs at once",
			"{who}が{n}個のタブで同時に支払いを確定する", "アリスが10個のタブで同時に支払いを確定する",
			func(ctx context.Context, w *world, b blanks) error {
				p, order, money, err := w.payment(b)
				n, wrong := b.n()
				if err := errors.Join(err, wrong); err != nil {
					return err
				}
				tabs := make([]*deed, n)
				for i := range tabs {
					tabs[i] = w.confirming(p, order, w.newKey(), money)
				}
				w.deed = tabs[n-1]
				// Whoever is told to come again does: each tab ends with an answer.
				return w.performAll(ctx, tabs, client.WithTries(client.DefaultTries))
			}),
		sentence("{who}'s client confirms the payment and insists", "Alice's client confirms the payment and insists",
			"{who}のクライアントが支払いの確定を繰り返す", "アリスのクライアントが支払いの確定を繰り返す",
			func(ctx context.Context, w *world, b blanks) error {
				p, order, money, err := w.payment(b)
				if err != nil {
					return err
				}
				return w.perform(ctx, w.confirming(p, order, w.newKey(), money), 1, client.WithTries(client.DefaultTries))
			}),
		sentence("{who}'s payment is under way", "Alice's payment is under way",
			"{who}の支払いが進行中である", "アリスの支払いが進行中である", underWay),
		sentence("{who} sends the same request again", "she sends the same request again",
			"{who}が同じ要求をもう一度送る", "彼女が同じ要求をもう一度送る", again(once)),
		sentence("{who} sends the same request {n} times at once", "she sends the same request 20 times at once",
			"{who}が同じ要求を同時に{n}回送る", "彼女が同じ要求を同時に20回送る", again(blanks.n)),
		sentence("{who} sends it {n} times at once", "she sends it 20 times at once",
			"{who}がそれを同時に{n}回送る", "彼女がそれを同時に20回送る", again(blanks.n)),
		plain("the answer is lost", "応答が失われる", func(_ context.Context, w *world) error {
			if w.last.status == 0 {
				return errors.New("there is no answer that could be lost")
			}
			w.last.lost = true // whoever has sent the request knows nothing of it
			return nil
		}),
		sentence("the same key is used with {amount}", "the same key is used with 2,000 yen",
			"同じキーが{amount}で使われる", "同じキーが2,000円で使われる", func(ctx context.Context, w *world, b blanks) error {
				money, err := b.amount()
				if err != nil {
					return err
				}
				if w.deed == nil || w.order == nil {
					return errNothingSent
				}
				if w.deed.operation == client.OpPlaceOrder {
					return w.perform(ctx, w.placing(w.deed.who, w.deed.key, money), 1)
				}
				return w.perform(ctx, w.confirming(w.deed.who, w.order, w.deed.key, money), 1)
			}),
		sentence("{who} uses the same key for an order of {amount}", "Bob uses the same key for an order of 2,000 yen",
			"{who}が同じキーを{amount}の注文に使う", "ボブが同じキーを2,000円の注文に使う", othersKey),
		plain("another customer uses the same key", "別の顧客が同じキーを使う", func(ctx context.Context, w *world) error {
			if w.order == nil {
				return errNoOrder
			}
			return w.useKey(ctx, "carol", w.order.money)
		}),
		sentence("{who} cancels the order", "Alice cancels the order",
			"{who}が注文を取り消す", "アリスが注文を取り消す", cancel),
		sentence("{who} cancels the order because {text}", `Alice cancels the order because "too late"`,
			"{who}が{text}を理由に注文を取り消す", `アリスが"遅すぎる"を理由に注文を取り消す`, cancel),
		sentence("{who} asks for the order", "Bob asks for the order",
			"{who}が注文を照会する", "ボブが注文を照会する", func(ctx context.Context, w *world, b blanks) error {
				p, err := w.person(b.who())
				if err != nil {
					return err
				}
				return w.request(ctx, p, raw{method: "GET", path: "/api/orders/" + w.orderID()})
			}),
		sentence("{who} asks what became of the request", "Alice asks what became of the request",
			"{who}が要求の結果を照会する", "アリスが要求の結果を照会する", func(ctx context.Context, w *world, b blanks) error {
				p, err := w.person(b.who())
				if err != nil {
					return err
				}
				return w.lookUp(ctx, p)
			}),
	}
}

var (
	errNothingSent = errors.New("nothing was sent that could be sent again")
	errNoOrder     = errors.New("there is no order yet")
)

func once(blanks) (int, error) { return 1, nil }

func (w *world) givenOrder(ctx context.Context, name string, b blanks) error {
	p, err := w.person(name)
	money, wrong := b.amount()
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	w.order, err = w.place(ctx, p, money)
	return err
}

// payment is what a confirmation is of: the order's money unless the step names other.
func (w *world) payment(b blanks) (*person, *placed, amount, error) {
	p, err := w.person(b.who())
	if err != nil {
		return nil, nil, amount{}, err
	}
	if w.order == nil {
		return nil, nil, amount{}, errNoOrder
	}
	money := w.order.money
	if b.by["amount"] != "" {
		money, err = b.amount()
	}
	return p, w.order, money, err
}

// confirm makes a step that confirms the payment, with the key that it names or a new one.
func confirm(times func(blanks) (int, error)) func(context.Context, *world, blanks) error {
	return func(ctx context.Context, w *world, b blanks) error {
		p, order, money, err := w.payment(b)
		n, wrong := times(b)
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
		key := w.newKey()
		if b.by["text"] != "" {
			key = w.named(b.text())
		}
		return w.perform(ctx, w.confirming(p, order, key, money), n)
	}
}

// again makes a step that sends what was sent last.
func again(times func(blanks) (int, error)) func(context.Context, *world, blanks) error {
	return func(ctx context.Context, w *world, b blanks) error {
		_, err := w.person(b.who())
		n, wrong := times(b)
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
		if w.deed == nil {
			return errNothingSent
		}
		return w.perform(ctx, w.deed, n)
	}
}

// underWay begins a payment and returns when it is on record as in progress.
func underWay(ctx context.Context, w *world, b blanks) error {
	p, order, money, err := w.payment(b)
	if err != nil {
		return err
	}
	d := w.confirming(p, order, w.newKey(), money)
	c, over, err := w.clientOf(p)
	if err != nil {
		return err
	}
	asking, _, err := w.clientOf(p)
	if err != nil {
		return err
	}
	w.deed, w.running = d, make(chan error, 1)
	running := w.running
	go func() {
		_ = d.send(ctx, c) // its answer is on the wire
		if _, sent := over.last(); !sent {
			running <- errors.New("the payment was not sent")
			return
		}
		running <- nil
	}()
	w.whenEnded = func() {
		went, _ := over.last()
		d.answers, w.all, w.last = append(d.answers, went), append(w.all, went), went
	}
	return await(ctx, func() (bool, error) {
		outcome, err := asking.Outcome(ctx, client.OpConfirmPayment, d.key)
		if client.CodeOf(err) == client.CodeNotFound {
			return false, nil
		}
		if err == nil && outcome.Status != client.OutcomeInProgress {
			return false, fmt.Errorf("the payment has ended already: %s", outcome.Status)
		}
		return err == nil, err
	})
}

func othersKey(ctx context.Context, w *world, b blanks) error {
	money, err := b.amount()
	if err != nil {
		return err
	}
	return w.useKey(ctx, b.who(), money)
}

// useKey has somebody pay an order of his own under the key that was used last.
func (w *world) useKey(ctx context.Context, name string, money amount) error {
	if w.deed == nil {
		return errNothingSent
	}
	key := w.deed.key
	p, err := w.person(name)
	if err != nil {
		return err
	}
	if w.order, err = w.place(ctx, p, money); err != nil {
		return err
	}
	return w.perform(ctx, w.confirming(p, w.order, key, money), 1)
}

// doubleClick sends the payment twice at once: under its key if it has been sent already, as a page does.
func doubleClick(ctx context.Context, w *world, b blanks) error {
	const clicks = 2
	p, order, money, err := w.payment(b)
	if err != nil {
		return err
	}
	if d := w.deed; d != nil && d.who == p && d.order == order && d.operation == client.OpConfirmPayment {
		return w.perform(ctx, d, clicks)
	}
	return w.perform(ctx, w.confirming(p, order, w.newKey(), money), clicks)
}

func cancel(ctx context.Context, w *world, b blanks) error {
	p, err := w.person(b.who())
	if err != nil {
		return err
	}
	if w.order == nil {
		return errNoOrder
	}
	return w.perform(ctx, cancelling(p, w.order, w.newKey(), b.text()), 1)
}

// orderID is the order's, or one that no order has.
func (w *world) orderID() string {
	if w.order == nil {
		return "00000000-0000-7000-8000-000000000000"
	}
	return w.order.id
}

// lookUp asks what became of the deed.
func (w *world) lookUp(ctx context.Context, p *person) error {
	if w.deed == nil || w.deed.operation == "" {
		return errNothingSent
	}
	c, over, err := w.clientOf(p)
	if err != nil {
		return err
	}
	_, err = c.Outcome(ctx, w.deed.operation, w.deed.key)
	went, sent := over.last()
	if !sent {
		return err
	}
	w.last = went
	return nil
}

// member reads a member of a JSON document by its path, as text.
func member(document []byte, path ...string) (string, bool) {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(document, &members) != nil {
			return "", false
		}
		value, there := members[name]
		if !there {
			return "", false
		}
		document = value
	}
	var text string
	if json.Unmarshal(document, &text) == nil {
		return text, true
	}
	return string(document), true
}
