package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// rawSteps are requests that no good client sends, and any that a scenario spells out itself.
func rawSteps() []step {
	confirming := func(change func(r *raw, b blanks) error) func(context.Context, *world, blanks) error {
		return func(ctx context.Context, w *world, b blanks) error { return w.confirmRaw(ctx, b, change) }
	}
	return []step{
		sentence("{who} confirms the payment without a key", "Alice confirms the payment without a key",
			"{who}がキーなしで支払いを確定する", "アリスがキーなしで支払いを確定する", confirming(func(r *raw, _ blanks) error {
				r.header.Del("Idempotency-Key")
				return nil
			})),
		sentence("{who} confirms the payment with the malformed key {text}",
			`Alice confirms the payment with the malformed key "a b"`,
			"{who}が不正なキー{text}で支払いを確定する", `アリスが不正なキー"a b"で支払いを確定する`, confirming(func(r *raw, b blanks) error {
				r.header.Set("Idempotency-Key", b.text())
				return nil
			})),
		sentence("{who} confirms the payment with two keys", "Alice confirms the payment with two keys",
			"{who}がキーを2つ付けて支払いを確定する", "アリスがキーを2つ付けて支払いを確定する", confirming(func(r *raw, _ blanks) error {
				r.header.Add("Idempotency-Key", "another")
				return nil
			})),
		sentence("{who} confirms the payment with the body:", "Alice confirms the payment with the body:",
			"{who}が次の本文で支払いを確定する:", "アリスが次の本文で支払いを確定する:", confirming(func(r *raw, b blanks) error {
				r.body = b.doc
				return nil
			})),
		sentence("{who} confirms the payment with a body of {n} bytes",
			"Alice confirms the payment with a body of 70000 bytes",
			"{who}が{n}バイトの本文で支払いを確定する", "アリスが70000バイトの本文で支払いを確定する", confirming(func(r *raw, b blanks) error {
				n, err := b.n()
				if err != nil || n < len(r.body) {
					return errors.Join(errors.New("a body is not so small"), err)
				}
				r.body += strings.Repeat(" ", n-len(r.body))
				return nil
			})),
		sentence("{who} confirms the payment as {text}", `Alice confirms the payment as "text/plain"`,
			"{who}が{text}として支払いを確定する", `アリスが"text/plain"として支払いを確定する`, confirming(func(r *raw, b blanks) error {
				r.header.Set("Content-Type", b.text())
				return nil
			})),
		sentence("{who} confirms the payment with the token {text}", `Alice confirms the payment with the token "nobody"`,
			"{who}がトークン{text}で支払いを確定する", `アリスがトークン"nobody"で支払いを確定する`,
			confirming(func(r *raw, b blanks) error {
				r.header.Set("Authorization", "Bearer "+b.text())
				return nil
			})),
		plain("somebody without a token confirms the payment", "トークンのない人が支払いを確定する",
			func(ctx context.Context, w *world) error { return w.request(ctx, nil, w.confirmation()) }),
		sentence("{who} asks for {path}", "Alice asks for /api/nothing", "{who}が{path}を取得する", "アリスが/api/nothingを取得する",
			func(ctx context.Context, w *world, b blanks) error { return w.any(ctx, http.MethodGet, b) }),
		sentence("{who} deletes {path}", "Alice deletes /api/orders/{order}",
			"{who}が{path}を削除する", "アリスが/api/orders/{order}を削除する",
			func(ctx context.Context, w *world, b blanks) error { return w.any(ctx, http.MethodDelete, b) }),
		sentence("{who} posts to {path}:", "Alice posts to /api/orders/{order}/cancel:",
			"{who}が{path}に次の本文を送る:", "アリスが/api/orders/{order}/cancelに次の本文を送る:",
			func(ctx context.Context, w *world, b blanks) error { return w.any(ctx, http.MethodPost, b) }),
	}
}

// confirmation is the request that confirms the order's payment, as it should be.
func (w *world) confirmation() raw {
	money := amount{units: 1000, currency: "JPY"}
	if w.order != nil {
		money = w.order.money
	}
	return raw{
		method: http.MethodPost, path: "/api/orders/" + w.orderID() + "/confirm-payment",
		header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {string(w.newKey())}},
		body:   fmt.Sprintf(`{"amount":%d,"currency":%q}`, money.units, money.currency),
	}
}

func (w *world) confirmRaw(ctx context.Context, b blanks, change func(*raw, blanks) error) error {
	p, err := w.person(b.who())
	if err != nil {
		return err
	}
	r := w.confirmation()
	if err := change(&r, b); err != nil {
		return err
	}
	if r.header.Get("Authorization") != "" {
		p = nil
	}
	return w.request(ctx, p, r)
}

// any sends what a scenario spells out. {order} in a path is the order's id.
func (w *world) any(ctx context.Context, method string, b blanks) error {
	p, err := w.person(b.who())
	if err != nil {
		return err
	}
	r := raw{method: method, path: strings.ReplaceAll(b.by["path"], "{order}", w.orderID()), header: http.Header{}}
	if method == http.MethodPost {
		r.body = b.doc
		r.header.Set("Content-Type", "application/json")
		r.header.Set("Idempotency-Key", string(w.newKey()))
	}
	return w.request(ctx, p, r)
}
