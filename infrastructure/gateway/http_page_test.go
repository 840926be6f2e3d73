package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

var (
	_ payment.Statement = (*gateway.HTTP)(nil)
	_ payment.Statement = (*gateway.Simulator)(nil)

	lastDay = time.Date(2026, 11, 29, 12, 0, 0, 123456000, time.FixedZone("JST", 9*60*60))
)

func pageOf(next string, lines ...string) string {
	return `{"charges":[` + strings.Join(lines, ",") + `],"next":` + next + `}`
}

func TestAPageIsAskedForAsTheProtocolSays(t *testing.T) {
	p := startProvider(t, answering(http.StatusOK, pageOf("null")))
	h := adapterFor(t, p.url+"/v1", patience)
	_, _, err := h.Charges(t.Context(), lastDay, "", 1000)
	require.NoError(t, err)
	_, _, err = h.Charges(t.Context(), lastDay, "c&limit=1", 7)
	require.NoError(t, err)
	require.Len(t, p.received(), 2)
	assert.Equal(t, "/v1/charges?limit=1000&since=2026-11-29T03%3A00%3A00.123456Z", p.received()[0].RequestURI)
	assert.Equal(t, "/v1/charges?after=c%26limit%3D1&limit=7&since=2026-11-29T03%3A00%3A00.123456Z",
		p.received()[1].RequestURI)
	assert.Equal(t, "Bearer "+token, p.received()[0].Header.Get("Authorization"))
}

func TestAPageThatNoProviderCanGiveIsNotAskedFor(t *testing.T) {
	p := startProvider(t, answering(http.StatusOK, pageOf("null")))
	for _, limit := range []int{-1, 0, 1001} {
		_, _, err := adapterFor(t, p.url, patience).Charges(t.Context(), lastDay, "", limit)
		require.Error(t, err, limit)
	}
	assert.Empty(t, p.received())
}

func TestPagesThatCanBeRead(t *testing.T) {
	ofOther := payment.Booking{OrderID: "o2", Attempt: 1, GatewayKey: "o2:1", Answer: declined.Answer}
	otherOrder := strings.NewReplacer(`"o1"`, `"o2"`, "o1:1", "o2:1").Replace(declinedLine)
	for name, c := range map[string]struct {
		body string
		want []payment.Booking
		next string
	}{
		"the last one, empty":         {pageOf("null"), []payment.Booking{}, ""},
		"the last one":                {pageOf("null", declinedLine, takenLine), []payment.Booking{declined, taken}, ""},
		"one that goes on":            {pageOf(`"c 1"`, takenLine), []payment.Booking{taken}, "c 1"},
		"of several orders":           {pageOf(`"c"`, takenLine, otherOrder), []payment.Booking{taken, ofOther}, "c"},
		"longer than an order's list": {pageOf("null", takenLine) + strings.Repeat(" ", 1<<20), []payment.Booking{taken}, ""},
	} {
		p := startProvider(t, answering(http.StatusOK, c.body))
		page, next, err := adapterFor(t, p.url, patience).Charges(t.Context(), lastDay, "before", 2)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, page, name)
		assert.Equal(t, c.next, next, name)
	}
}

// One line that cannot be read keeps no other from being compared.
func TestALineOfAPageThatCannotBeReadIsMarkedAndTheOthersAreRead(t *testing.T) {
	for name, c := range map[string]struct{ line, orderID, gatewayKey string }{
		"that stands there twice": {takenLine, "o1", taken.GatewayKey},
		"that is not whole":       {strings.Replace(takenLine, "chargeId", "id", 1), "o1", taken.GatewayKey},
		"without an order":        {strings.Replace(takenLine, "orderId", "order", 1), "", taken.GatewayKey},
		"of a broken order":       {strings.Replace(takenLine, `"o1"`, `"o\u0000"`, 1), "", taken.GatewayKey},
		"with the token in it":    {strings.Replace(takenLine, "JPY", token, 1), "o1", taken.GatewayKey},
		"that is no object":       {"[]", "", ""},
	} {
		lines := []string{declinedLine, c.line}
		if strings.HasPrefix(name, "that stands") {
			lines[0] = takenLine
		}
		p := startProvider(t, answering(200, pageOf(`"c"`, lines...)))
		page, next, err := adapterFor(t, p.url, patience).Charges(t.Context(), lastDay, "before", 2)
		require.NoError(t, err, name)
		assert.Equal(t, "c", next, name)
		require.Len(t, page, 2, name)
		require.NoError(t, page[0].Unreadable, name)
		assert.NotNil(t, page[0].Answer, name)
		bad := page[1]
		require.ErrorIs(t, bad.Unreadable, payment.ErrUnreadable, name)
		assert.NotContains(t, bad.Unreadable.Error(), token, name)
		assert.Equal(t, payment.Booking{OrderID: c.orderID, GatewayKey: c.gatewayKey, Unreadable: bad.Unreadable}, bad, name)
	}
}

func TestPagesThatProveNothing(t *testing.T) {
	third := strings.ReplaceAll(declinedLine, "o1", "o2")
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"another status":             {201, pageOf("null")},
		"an error":                   {500, pageOf("null")},
		"unauthorized":               {401, pageOf("null")},
		"no body":                    {200, ""},
		"no list":                    {200, `{"next":null}`},
		"no word of the rest":        {200, listOf(takenLine)},
		"a next that is no text":     {200, pageOf("1", takenLine)},
		"an empty next":              {200, pageOf(`""`, takenLine)},
		"a next that is the same":    {200, pageOf(`"before"`, takenLine)},
		"a next behind nothing":      {200, pageOf(`"c"`)},
		"a next that is very long":   {200, pageOf(`"`+strings.Repeat("c", 4097)+`"`, takenLine)},
		"more lines than asked for":  {200, pageOf("null", takenLine, declinedLine, third)},
		"longer than four mebibytes": {200, pageOf("null", takenLine) + strings.Repeat(" ", 4<<20)},
	} {
		p := startProvider(t, answering(c.status, c.body))
		page, next, err := adapterFor(t, p.url, patience).Charges(t.Context(), lastDay, "before", 2)
		require.Error(t, err, name)
		assert.Nil(t, page, name)
		assert.Empty(t, next, name)
		assert.NotContains(t, err.Error(), token, name)
	}
}

func TestTheWholeListIsTheSameBehindHTTP(t *testing.T) {
	book := gateway.NewMemoryBook()
	simulator := gateway.NewSimulator(book, clock)
	h := adapterFor(t, serve(t, book), patience)
	for i := range 25 {
		a := paying([]string{"pm_ok", "pm_declined", "pm_unavailable"}[i%3])
		_, _ = simulator.Charge(t.Context(), a) // what comes of it stands in the book
	}
	follow := func(s payment.Statement, limit int) (all []payment.Booking) {
		for after := ""; ; {
			page, next, err := s.Charges(t.Context(), noon.Truncate(time.Microsecond), after, limit)
			require.NoError(t, err)
			all = append(all, page...)
			if next == "" {
				return all
			}
			after = next
		}
	}
	want := follow(simulator, 1000)
	require.Len(t, want, 17)
	for i, b := range want {
		if d, declined := b.Answer.(payment.Decline); declined {
			want[i].Answer = payment.Decline{Code: d.Code} // the protocol's list has no message
		}
	}
	for _, limit := range []int{1, 3, 1000} {
		assert.Equal(t, want, follow(h, limit), strconv.Itoa(limit))
	}
}
