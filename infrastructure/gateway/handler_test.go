package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
)

const aCharge = `{"orderId":"o1","attempt":1,"amount":1000,"currency":"JPY","paymentMethod":"pm_ok"}`

// say is one answer of a handler, as it came.
type said struct {
	status int
	header http.Header
	body   string
}

func (s said) member(t *testing.T, name string) any {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.body), &members), s.body)
	return members[name]
}

// ask sends a request as a program without the adapter would. The token goes with it.
func ask(t *testing.T, method, url, body string, header ...string) said {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return said{res.StatusCode, res.Header, string(text)}
}

func TestAChargeIsAnsweredAsTheProtocolSays(t *testing.T) {
	base := serve(t, gateway.NewMemoryBook())
	first := ask(t, http.MethodPost, base+"/charges", aCharge, "Idempotency-Key", "o1:1")
	assert.Equal(t, http.StatusCreated, first.status)
	assert.Equal(t, "application/json", first.header.Get("Content-Type"))
	assert.Regexp(t, `\A\{"chargeId":"ch_\w{32}","status":"approved","amount":1000,"currency":"JPY",`+
		`"chargedAt":"2026-11-30T03:00:00.123456Z"\}\n\z`, first.body)

	again := ask(t, http.MethodPost, base+"/charges", aCharge, "Idempotency-Key", "o1:1")
	assert.Equal(t, http.StatusOK, again.status)
	assert.Equal(t, first.body, again.body)

	other := strings.Replace(aCharge, "1000", "1001", 1)
	reused := ask(t, http.MethodPost, base+"/charges", other, "Idempotency-Key", "o1:1")
	assert.Equal(t, http.StatusUnprocessableEntity, reused.status)
	assert.Contains(t, reused.member(t, "error"), "another request")

	declined := ask(t, http.MethodPost, base+"/charges", strings.Replace(aCharge, "pm_ok", "pm_declined", 1),
		"Idempotency-Key", "o1:2")
	assert.Equal(t, http.StatusPaymentRequired, declined.status)
	assert.JSONEq(t, `{"status":"declined","declineCode":"card_declined","message":"the card was declined"}`, declined.body)
}

func TestARequestThatIsNotWholeChargesNothing(t *testing.T) {
	book := gateway.NewMemoryBook()
	base := serve(t, book)
	changed := func(from, to string) string {
		body := strings.Replace(aCharge, from, to, 1)
		require.NotEqual(t, aCharge, body)
		return body
	}
	for name, c := range map[string]struct{ body, names string }{
		"nothing":                   {"", "JSON object"},
		"a list":                    {"[" + aCharge + "]", "JSON object"},
		"cut off":                   {aCharge[:40], "JSON object"},
		"something behind it":       {aCharge + "{}", "after the JSON object"},
		"not UTF-8":                 {changed("o1", "\xff"), "UTF-8"},
		"no order":                  {changed("orderId", "order"), "orderId"},
		"an empty order":            {changed("o1", ""), "orderId"},
		"an order of control codes": {changed("o1", `o\u0000`), "orderId"},
		"a long order":              {changed("o1", strings.Repeat("o", 257)), "orderId"},
		"no attempt":                {changed(`"attempt":1,`, ""), "attempt"},
		"attempt 0":                 {changed(`"attempt":1`, `"attempt":0`), "attempt"},
		"attempt 2^31":              {changed(`"attempt":1`, `"attempt":2147483648`), "attempt"},
		"no amount":                 {changed(`"amount":1000,`, ""), "amount"},
		"a fraction":                {changed("1000", "1000.0"), "amount"},
		"an exponent":               {changed("1000", "1e3"), "amount"},
		"a text for an amount":      {changed("1000", `"1000"`), "amount"},
		"nothing to pay":            {changed("1000", "0"), "amount"},
		"a negative amount":         {changed("1000", "-1"), "amount"},
		"more than JSON can keep":   {changed("1000", "9007199254740992"), "amount"},
		"no currency":               {changed("currency", "Currency"), "currency"},
		"another currency":          {changed("JPY", "XXX"), "currency"},
		"a method that is no text":  {changed(`"pm_ok"`, "1"), "paymentMethod"},
		"a member of its own":       {changed(`{`, `{"capture":false,`), "capture"},
		"a member twice":            {changed(`{`, `{"amount":1,`), "twice"},
		"too long":                  {aCharge + strings.Repeat(" ", 64<<10), "longer"},
	} {
		got := ask(t, http.MethodPost, base+"/charges", c.body, "Idempotency-Key", "o1:1")
		assert.Equal(t, http.StatusBadRequest, got.status, name)
		assert.Contains(t, got.member(t, "error"), c.names, name)
	}
	for name, keys := range map[string][]string{
		"missing": nil, "empty": {""}, "twice": {"a", "b"}, "long": {strings.Repeat("k", 257)}, "with a blank": {"a b"},
		"in another alphabet": {"鍵"},
	} {
		var header []string
		for _, key := range keys {
			header = append(header, "Idempotency-Key", key)
		}
		got := ask(t, http.MethodPost, base+"/charges", aCharge, header...)
		assert.Equal(t, http.StatusBadRequest, got.status, name)
		assert.Contains(t, got.member(t, "error"), "Idempotency-Key", name)
	}
	lines, _, err := book.Since(t.Context(), time.Time{}, "", 1)
	require.NoError(t, err)
	assert.Empty(t, lines)
}

func TestWithoutTheTokenNothingIsAnswered(t *testing.T) {
	book := gateway.NewMemoryBook()
	base := serve(t, book)
	for _, authorization := range []string{
		"", "Bearer", "Bearer ", "Bearer x" + token, "bearer " + token, token, "Basic " + token,
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			req, err := http.NewRequestWithContext(t.Context(), method, base+"/charges?orderId=o1", strings.NewReader(aCharge))
			require.NoError(t, err)
			req.Header.Set("Idempotency-Key", "o1:1")
			if authorization != "" {
				req.Header["Authorization"] = []string{authorization}
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			require.NoError(t, err)
			res.Body.Close()
			assert.Equal(t, http.StatusUnauthorized, res.StatusCode, authorization)
			assert.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
		}
	}
	open := httptest.NewServer(gateway.NewHandler(gateway.HandlerConfig{
		Book: book, Clock: clock, Log: slog.New(slog.DiscardHandler),
	}))
	defer open.Close()
	assert.Equal(t, http.StatusOK, ask(t, http.MethodGet, open.URL+"/charges?orderId=o1", "").status, "none is demanded")
	assert.Equal(t, http.StatusOK, ask(t, http.MethodGet, base+"/healthz", "", "Authorization", "").status)
}

func TestFiftyAtOnceOverHTTPAreOneCharge(t *testing.T) {
	base := serve(t, gateway.NewMemoryBook())
	var created atomic.Int32
	bodies := make([]string, 50)
	var all sync.WaitGroup
	for i := range bodies {
		all.Go(func() {
			got := ask(t, http.MethodPost, base+"/charges", aCharge, "Idempotency-Key", "o1:1")
			bodies[i] = got.body
			switch got.status {
			case http.StatusCreated:
				created.Add(1)
			default:
				assert.Equal(t, http.StatusOK, got.status)
			}
		})
	}
	all.Wait()
	assert.Equal(t, int32(1), created.Load())
	for _, body := range bodies {
		assert.Equal(t, bodies[0], body)
	}
}

func TestALostAnswerIsAConnectionThatIsCut(t *testing.T) {
	base := serve(t, gateway.NewMemoryBook())
	lost := strings.Replace(aCharge, "pm_ok", "pm_lost_answer", 1)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/charges", strings.NewReader(lost))
	require.NoError(t, err)
	req.GetBody = nil
	req.Header.Set("Idempotency-Key", "o1:1")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		res.Body.Close()
	}
	require.Error(t, err)
	assert.Equal(t, http.StatusOK, ask(t, http.MethodPost, base+"/charges", lost, "Idempotency-Key", "o1:1").status,
		"the money was taken")
}

func TestMethodsThatKeepTheMoney(t *testing.T) {
	base := serve(t, gateway.NewMemoryBook())
	statuses := func(method string) (got []int) {
		for range 3 {
			body := strings.Replace(aCharge, "pm_ok", method, 1)
			got = append(got, ask(t, http.MethodPost, base+"/charges", body, "Idempotency-Key", method).status)
		}
		return got
	}
	assert.Equal(t, []int{503, 201, 200}, statuses("pm_unavailable"))
	assert.Equal(t, []int{503, 503, 503}, statuses("pm_down"))
	assert.Equal(t, []int{201, 200, 200}, statuses("pm_slow_20"))
	assert.Equal(t, []int{402, 402, 402}, statuses("pm_insufficient_funds"))
}

func TestQueriesThatAskForNoList(t *testing.T) {
	base := serve(t, gateway.NewMemoryBook()) + "/charges?"
	for query, names := range map[string]string{
		"":                                  "orderId or since",
		"orderId=":                          "orderId",
		"orderId=o&since=" + noonText:       "orderId or since",
		"orderId=o&limit=1":                 "orderId",
		"orderId=o&orderId=p":               "twice",
		"since=yesterday":                   "since",
		"since=2026-11-30":                  "since",
		"since=" + noonText + "&limit=0":    "limit",
		"since=" + noonText + "&limit=1001": "limit",
		"since=" + noonText + "&limit=x":    "limit",
		"since=" + noonText + "&after=x":    "after",
		"since=" + noonText + "&cursor=1":   "cursor",
		"since=%zz":                         "query",
	} {
		got := ask(t, http.MethodGet, base+query, "")
		assert.Equal(t, http.StatusBadRequest, got.status, query)
		assert.Contains(t, got.member(t, "error"), names, query)
	}
}

const noonText = "2026-11-30T03:00:00Z"

func TestTheListSinceATimeIsPagedToItsEnd(t *testing.T) {
	base := serve(t, gateway.NewMemoryBook())
	assert.JSONEq(t, `{"charges":[],"next":null}`, ask(t, http.MethodGet, base+"/charges?since="+noonText, "").body)

	var want []string
	for i := 1; i <= 5; i++ {
		key := fmt.Sprintf("o1:%d", i)
		want = append(want, key)
		body := aCharge
		if i == 3 {
			body = strings.Replace(aCharge, "pm_ok", "pm_declined", 1)
		}
		ask(t, http.MethodPost, base+"/charges", body, "Idempotency-Key", key)
	}
	ask(t, http.MethodPost, base+"/charges", strings.Replace(aCharge, "pm_ok", "pm_down", 1), "Idempotency-Key", "down")

	var keys, times []string
	pages := 0
	for after := ""; ; pages++ {
		query := url.Values{"since": {"2026-11-30T12:00:00+09:00"}, "limit": {"2"}}
		if after != "" {
			query.Set("after", after)
		}
		got := ask(t, http.MethodGet, base+"/charges?"+query.Encode(), "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		for _, line := range got.member(t, "charges").([]any) {
			members := line.(map[string]any)
			keys = append(keys, members["gatewayKey"].(string))
			if at, charged := members["chargedAt"]; charged {
				times = append(times, at.(string))
			} else {
				assert.Equal(t, "card_declined", members["declineCode"])
				assert.NotContains(t, members, "chargeId")
			}
		}
		next := got.member(t, "next")
		if next == nil {
			break
		}
		after = next.(string)
	}
	assert.Equal(t, want, keys)
	assert.Equal(t, 2, pages)
	assert.Len(t, slices.Compact(times), 4)
	assert.True(t, slices.IsSorted(times), "the order of booking is that of the times, although the clock stands still")
}

func TestTheOrderOfBookingIsThatOfTheTimesHoweverManyAskAtOnce(t *testing.T) {
	ticks := atomic.Int64{}
	server := httptest.NewServer(gateway.NewHandler(gateway.HandlerConfig{
		Book: gateway.NewMemoryBook(), Log: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return noon.Add(time.Duration(ticks.Add(1)%7) * time.Second) }, // set back, now and then
	}))
	defer server.Close()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			method := []string{"pm_ok", "pm_unavailable"}[i%2]
			for range 2 {
				ask(t, http.MethodPost, server.URL+"/charges", strings.Replace(aCharge, "pm_ok", method, 1),
					"Idempotency-Key", fmt.Sprintf("k%d", i))
			}
		})
	}
	all.Wait()
	list := ask(t, http.MethodGet, server.URL+"/charges?limit=1000&since="+noonText, "")
	var page struct {
		Charges []struct{ ChargedAt time.Time }
	}
	require.NoError(t, json.Unmarshal([]byte(list.body), &page))
	require.Len(t, page.Charges, 50)
	for i := 1; i < len(page.Charges); i++ {
		assert.True(t, page.Charges[i-1].ChargedAt.Before(page.Charges[i].ChargedAt), "line %d", i)
	}
}

func TestOnABookThatIsGoneNothingIsAnswered(t *testing.T) {
	gone := fmt.Errorf("the book is gone")
	base := serve(t, brokenBook{Book: gateway.NewMemoryBook(), enter: gone, list: gone})
	assert.Equal(t, http.StatusServiceUnavailable,
		ask(t, http.MethodPost, base+"/charges", aCharge, "Idempotency-Key", "o1:1").status)
	for _, query := range []string{"orderId=o1", "since=" + noonText} {
		got := ask(t, http.MethodGet, base+"/charges?"+query, "")
		assert.Equal(t, http.StatusServiceUnavailable, got.status, query)
		assert.NotContains(t, got.body, "gone")
	}
}
