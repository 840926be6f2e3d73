package scenario

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"kakutei/interfaces/client"
)

// operatorSteps are what the service's operator does about payments whose outcome nobody knows.
func operatorSteps() []step {
	return []step{
		plain("the payment is listed as unresolved", "支払いは未解決の一覧にある", func(ctx context.Context, w *world) error {
			listed, err := w.unresolved(ctx)
			if err != nil {
				return err
			}
			return w.demand(listed, "the payment is not in the list")
		}),
		plain("the operator releases the payment", "運用担当者が支払いを解放する", func(ctx context.Context, w *world) error {
			return w.operatorsWord(ctx, "release", nil)
		}),
		plain("the operator resolves the payment as charged", "運用担当者が課金ありとして支払いを手動確定する",
			func(ctx context.Context, w *world) error {
				return w.operatorsWord(ctx, "resolve", map[string]string{
					"outcome": "charged", "chargeId": "ch-" + w.run, "note": "a scenario says so",
				})
			}),
		plain("the operator resolves the payment as not charged", "運用担当者が課金なしとして支払いを手動確定する",
			func(ctx context.Context, w *world) error {
				return w.operatorsWord(ctx, "resolve", map[string]string{
					"outcome": "not_charged", "note": "a scenario says so",
				})
			}),
		sentence("the audit log tells of {text}", `the audit log tells of "mismatch"`,
			"監査ログに{text}がある", `監査ログに"mismatch"がある`, func(ctx context.Context, w *world, b blanks) error {
				return await(ctx, func() (bool, error) { return w.audited(ctx, b.text()) })
			}),
	}
}

func (w *world) operator() (*person, error) {
	caller, err := w.against.Callers.Caller(operatorName, "")
	return &person{name: operatorName, Caller: caller}, err
}

// asOperator asks for something and reads the answer.
func (w *world) asOperator(ctx context.Context, path string, into any) error {
	operator, err := w.operator()
	if err != nil {
		return err
	}
	before := w.all
	err = w.request(ctx, operator, raw{method: http.MethodGet, path: path})
	w.all = before // that was about the scenario, not of it
	if err != nil {
		return err
	}
	if err := w.demand(w.last.status == http.StatusOK, "the operator is answered %d", w.last.status); err != nil {
		return err
	}
	return json.Unmarshal(w.last.answer, into)
}

func (w *world) unresolved(ctx context.Context) (bool, error) {
	if w.deed == nil {
		return false, errNothingSent
	}
	var list struct {
		Records []struct {
			Key client.Intent `json:"idempotencyKey"`
		} `json:"records"`
	}
	if err := w.asOperator(ctx, "/api/unresolved", &list); err != nil {
		return false, err
	}
	for _, record := range list.Records {
		if record.Key == w.deed.key {
			return true, nil
		}
	}
	return false, nil
}

// operatorsWord releases or resolves the payment that was sent last.
func (w *world) operatorsWord(ctx context.Context, word string, more map[string]string) error {
	if w.deed == nil {
		return errNothingSent
	}
	operator, err := w.operator()
	if err != nil {
		return err
	}
	said := map[string]string{
		"operation": string(client.OpConfirmPayment), "actor": w.deed.who.Actor, "idempotencyKey": string(w.deed.key),
	}
	for name, value := range more {
		said[name] = value
	}
	body, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return w.request(ctx, operator, raw{
		method: http.MethodPost, path: "/api/unresolved/" + word, body: string(body),
		header: http.Header{"Content-Type": {"application/json"}},
	})
}

// audited looks for an entry of that kind about this scenario's people, page by page.
func (w *world) audited(ctx context.Context, kind string) (bool, error) {
	for after := ""; ; {
		query := url.Values{"kind": {kind}, "limit": {"500"}}
		if after != "" {
			query.Set("after", after)
		}
		var page struct {
			Entries []struct {
				Actor string        `json:"actor"`
				Key   client.Intent `json:"idempotencyKey"`
			} `json:"entries"`
			Next *string `json:"next"`
		}
		if err := w.asOperator(ctx, "/api/audit?"+query.Encode(), &page); err != nil {
			return false, err
		}
		for _, e := range page.Entries {
			if w.deed != nil && e.Key == w.deed.key || w.isPostingKey(e.Key) {
				return true, nil
			}
		}
		if page.Next == nil {
			return false, nil
		}
		after = *page.Next
	}
}

// isPostingKey tells whether it is the key of the scenario's document.
func (w *world) isPostingKey(key client.Intent) bool {
	if w.paper == nil {
		return false
	}
	own, err := w.paper.posting.Key()
	return err == nil && string(key) == own
}
