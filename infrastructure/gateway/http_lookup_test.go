package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/payment"
)

const (
	takenLine = `{"chargeId":"ch_2","orderId":"o1","attempt":2,"gatewayKey":"o1:2","amount":1000,"currency":"JPY",` +
		`"status":"approved","chargedAt":"2026-11-30T12:00:00.5Z"}`
	declinedLine = `{"orderId":"o1","attempt":1,"gatewayKey":"o1:1","amount":1000,"currency":"JPY",` +
		`"status":"declined","declineCode":"card_declined"}`
)

var (
	declined = payment.Booking{
		OrderID: "o1", Attempt: 1, GatewayKey: "o1:1", Answer: payment.Decline{Code: "card_declined"},
	}
	taken = payment.Booking{OrderID: "o1", Attempt: 2, GatewayKey: "o1:2", Answer: payment.Charge{
		ID: "ch_2", Money: money.Of(1000, money.JPY), ChargedAt: time.Date(2026, 11, 30, 12, 0, 0, 5e8, time.UTC),
	}}
)

func listOf(lines ...string) string { return `{"charges":[` + strings.Join(lines, ",") + `]}` }

func TestTheListIsAskedForAsTheProtocolSays(t *testing.T) {
	p := startProvider(t, answering(http.StatusOK, listOf()))
	_, err := adapterFor(t, p.url+"/v1/", patience).Lookup(t.Context(), "o 1&since=x")
	require.NoError(t, err)
	require.Len(t, p.received(), 1)
	sent := p.received()[0]
	assert.Equal(t, "GET /v1/charges?orderId=o+1%26since%3Dx", sent.Method+" "+sent.RequestURI)
	assert.Equal(t, "Bearer "+token, sent.Header.Get("Authorization"))
	assert.NotContains(t, sent.Header, "Idempotency-Key")
	assert.Empty(t, sent.body)
}

func TestListsThatCanBeRead(t *testing.T) {
	long := `{"charges":[` + declinedLine + `],"note":"` + strings.Repeat("x", 100<<10) + `"}`
	for name, c := range map[string]struct {
		body string
		want []payment.Booking
	}{
		"empty":                   {listOf(), []payment.Booking{}},
		"a decline and a charge":  {listOf(declinedLine, takenLine), []payment.Booking{declined, taken}},
		"with members of its own": {`{"object":"list",` + listOf(takenLine)[1:], []payment.Booking{taken}},
		"that ends here": {
			listOf(takenLine)[:len(listOf(takenLine))-1] + `,"next":null}`, []payment.Booking{taken},
		},
		"longer than a charge's answer": {long, []payment.Booking{declined}},
		"of a decline with members of null": {
			listOf(strings.Replace(declinedLine, "{", `{"chargeId":null,"chargedAt":null,`, 1)), []payment.Booking{declined},
		},
		"of other money": {listOf(strings.Replace(takenLine, "1000", "2000", 1)), []payment.Booking{{
			OrderID: "o1", Attempt: 2, GatewayKey: "o1:2", Answer: payment.Charge{
				ID: "ch_2", Money: money.Of(2000, money.JPY), ChargedAt: taken.Answer.(payment.Charge).ChargedAt,
			},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t, answering(http.StatusOK, c.body))
			list, err := adapterFor(t, p.url, patience).Lookup(t.Context(), "o1")
			require.NoError(t, err)
			assert.Equal(t, c.want, list)
		})
	}
}

func TestListsThatProveNothing(t *testing.T) {
	spoilt := func(line, from, to string) string {
		changed := strings.Replace(line, from, to, 1)
		require.NotEqual(t, line, changed)
		return listOf(declinedLine, changed)
	}
	declined3 := strings.Replace(declinedLine, "o1:1", "o1:3", 1)
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"another status":                 {201, listOf(takenLine)},
		"not found":                      {404, listOf()},
		"unauthorized":                   {401, listOf()},
		"too many requests":              {429, listOf()},
		"an error":                       {500, listOf()},
		"no body":                        {200, ""},
		"a page":                         {200, "<html>"},
		"cut off":                        {200, listOf(takenLine)[:40]},
		"trailing data":                  {200, listOf() + listOf()},
		"a bare list":                    {200, "[" + takenLine + "]"},
		"no list":                        {200, `{"data":[]}`},
		"a list of null":                 {200, `{"charges":null}`},
		"a list that is an object":       {200, `{"charges":` + takenLine + `}`},
		"a list that goes on":            {200, `{"charges":[` + takenLine + `],"next":"c"}`},
		"two lists":                      {200, `{"charges":[],"charges":[` + takenLine + `]}`},
		"a line of null":                 {200, listOf("null")},
		"a line of text":                 {200, listOf(`"ch_1"`)},
		"a line of another order":        {200, spoilt(takenLine, `"orderId":"o1"`, `"orderId":"o2"`)},
		"a line without an order":        {200, spoilt(takenLine, `"orderId"`, `"order"`)},
		"a line without an attempt":      {200, spoilt(takenLine, `"attempt"`, `"try"`)},
		"a line of attempt 0":            {200, spoilt(takenLine, `"attempt":2`, `"attempt":0`)},
		"a line of a fractional attempt": {200, spoilt(takenLine, `"attempt":2`, `"attempt":2.0`)},
		"a line without a key":           {200, spoilt(takenLine, `"gatewayKey"`, `"key"`)},
		"a line with an empty key":       {200, spoilt(takenLine, `"o1:2"`, `""`)},
		"a charge without an id":         {200, spoilt(takenLine, `"chargeId"`, `"id"`)},
		"a charge without an amount":     {200, spoilt(takenLine, `"amount"`, `"sum"`)},
		"a charge without a currency":    {200, spoilt(takenLine, `"currency"`, `"unit"`)},
		"a charge without a time":        {200, spoilt(takenLine, `"chargedAt"`, `"at"`)},
		"a decline without a code":       {200, spoilt(declined3, `"declineCode"`, `"code"`)},
		"a decline without an amount":    {200, spoilt(declined3, `"amount"`, `"sum"`)},
		"a line without a status":        {200, spoilt(takenLine, `"status"`, `"state"`)},
		"a pending line":                 {200, spoilt(takenLine, "approved", "pending")},
		"a refunded line":                {200, spoilt(takenLine, "approved", "refunded")},
		"a failed line":                  {200, spoilt(takenLine, "approved", "failed")},
		"a member twice in a line":       {200, spoilt(takenLine, `{`, `{"status":"declined",`)},
		"two answers under one key":      {200, listOf(declinedLine, strings.Replace(takenLine, "o1:2", "o1:1", 1))},
		"one charge under two keys":      {200, listOf(takenLine, strings.Replace(takenLine, "o1:2", "o1:1", 1))},
		"longer than a mebibyte":         {200, listOf(takenLine) + strings.Repeat(" ", 1<<20)},
		"the token, sent back":           {200, spoilt(takenLine, "JPY", token)},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t, answering(c.status, c.body))
			list, err := adapterFor(t, p.url, patience).Lookup(t.Context(), "o1")
			require.Error(t, err)
			assert.Nil(t, list)
			assert.NotContains(t, err.Error(), token)
		})
	}
}

func TestAListWithoutAnAnswerIsAnError(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":         "",
		"half":            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + listOf(takenLine),
		"token as status": "HTTP/1.1 " + token + "\r\n\r\n",
	} {
		p := startProvider(t, saying(raw))
		list, err := adapterFor(t, p.url, patience).Lookup(t.Context(), "o1")
		require.Error(t, err, name)
		assert.Nil(t, list, name)
		assert.NotContains(t, err.Error(), token, name)
	}
}
