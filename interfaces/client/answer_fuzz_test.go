package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"kakutei/interfaces/client"
)

// answering is a transport that answers everything alike.
type answering struct {
	status int
	body   string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)),
	}, nil
}

// Whatever is answered, each call ends in a result or in one of the published errors.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		receipt, "", "null", "{}", "[]", "<html>", receipt[:40], `{"code":"invalid_state","retry":"new-key","orderStatus":1}`,
		`{"code":"duplicate_operation","retry":"never","error":{"code":"DUPLICATE_OPERATION","details":null}}`,
		`{"journalEntryId":"e","idempotencyKey":"k","status":"created"}`, `{"status":"FAILED","problem":null}`,
		`{"status":"FAILED","problem":{"code":1}}`, `{"status":"SUCCEEDED","response":7}`, "\xff", strings.Repeat("[", 20000),
	} {
		for _, status := range []int{200, 201, 204, 302, 400, 409, 422, 503} {
			f.Add(status, body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 100 || status > 999 {
			return
		}
		c := newClient(t, "http://localhost", client.WithTries(1),
			client.WithHTTPClient(&http.Client{Transport: answering{status, body}}))
		_, placed := c.PlaceOrder(t.Context(), "k", tea)
		_, confirmed := c.ConfirmPayment(t.Context(), "k", "o-1", payment)
		_, posted := c.PostJournalEntry(t.Context(), invoice)
		outcome, asked := c.Outcome(t.Context(), client.OpConfirmPayment, "k")
		_, _ = outcome.Receipt()
		_, _ = outcome.Order()
		for _, err := range []error{placed, confirmed, posted, asked} {
			var refused *client.Error
			var none *client.NoAnswer
			if err != nil && errors.As(err, &refused) == errors.As(err, &none) {
				t.Errorf("status %d, %q: %T: %v", status, body, err, err)
			}
			if err != nil && err.Error() == "" {
				t.Errorf("%T says nothing", err)
			}
		}
	})
}
