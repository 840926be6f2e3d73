package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/payment"
)

// assertUnknown asks once and tells that no answer came of it, and no token out of the error.
func assertUnknown(t *testing.T, g payment.Gateway, a payment.Attempt) {
	t.Helper()
	answer, err := g.Charge(t.Context(), a)
	require.Error(t, err)
	assert.Nil(t, answer)
	require.NotErrorIs(t, err, payment.ErrAmountConflict)
	assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), token)
}

func TestEveryOtherStatusIsUnknown(t *testing.T) {
	for status := 202; status < 600; status++ {
		switch status {
		case http.StatusPaymentRequired:
			continue
		case http.StatusNoContent, http.StatusNotModified: // never with a body: see the answers that do not arrive whole
			continue
		}
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p := startProvider(t, answering(status, approval, "Location", "/charges"))
			assertUnknown(t, adapterFor(t, p.url, patience), paying(""))
			assert.Len(t, p.received(), 1, "neither repeated nor redirected")
		})
	}
}

func TestAnswersThatAreNotDefinite(t *testing.T) {
	without := func(member string) string { // by its name: the rest of the approval stays as it is
		return strings.Replace(approval, `"`+member+`"`, `"x`+member+`"`, 1)
	}
	with := func(from, to string) string {
		changed := strings.Replace(approval, from, to, 1)
		require.NotEqual(t, approval, changed)
		return changed
	}
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"empty":                           {201, ""},
		"blank":                           {201, " \n"},
		"null":                            {201, "null"},
		"a text":                          {201, `"approved"`},
		"a list":                          {201, "[" + approval + "]"},
		"an empty object":                 {201, "{}"},
		"a page":                          {200, "<!DOCTYPE html><title>Sign in to the network</title>"},
		"cut off":                         {201, approval[:len(approval)-1]},
		"cut off in a member":             {201, approval[:len(approval)-9]},
		"cut off in a name":               {201, approval[:7]},
		"twice":                           {201, approval + approval},
		"followed by something":           {201, approval + " x"},
		"followed by a bracket":           {201, approval + "}"},
		"behind a byte order mark":        {201, "\ufeff" + approval},
		"not UTF-8":                       {201, with("ch_1", "ch_\xff")},
		"not UTF-8 where nobody reads it": {201, with("{", "{\"x\":\"\xff\",")},
		"with a lone surrogate":           {201, with("ch_1", `ch_\ud800`)},
		"with a comment":                  {201, "/* paid */" + approval},
		"with a comma too many":           {201, with("Z\"}", "Z\",}")},
		"with a name that is no text":     {201, with(`"status"`, `1`)},
		"with a member twice":             {201, with("{", `{"amount":1000,`)},
		"with a member twice, escaped":    {201, with("{", `{"\u0061mount":1000,`)},
		"nested too deeply": {
			201, with("{", `{"x":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`,`),
		},
		"longer than 64 KiB":               {201, approval + strings.Repeat(" ", 64<<10-len(approval)+1)},
		"without the charge's id":          {201, without("chargeId")},
		"without a status":                 {201, without("status")},
		"without an amount":                {201, without("amount")},
		"without a currency":               {201, without("currency")},
		"without a time":                   {201, without("chargedAt")},
		"with a name in other letters":     {201, with("chargeId", "chargeID")},
		"with an empty id":                 {201, with("ch_1", "")},
		"with an id of null":               {201, with(`"ch_1"`, "null")},
		"with an id that is a number":      {201, with(`"ch_1"`, "1")},
		"with an id of control characters": {201, with("ch_1", `ch\u0000`)},
		"with an endless id":               {201, with("ch_1", strings.Repeat("c", 257))},
		"with an amount of text":           {201, with("1000", `"1000"`)},
		"with an amount with a fraction":   {201, with("1000", "1000.0")},
		"with an amount with an exponent":  {201, with("1000", "1e3")},
		"with an amount out of bounds":     {201, with("1000", "9223372036854775808")},
		"with a negative amount":           {201, with("1000", "-1000")},
		"with an amount of null":           {201, with("1000", "null")},
		"with a currency in small letters": {201, with("JPY", "jpy")},
		"with a currency of no unit":       {201, with("JPY", "XXX")},
		"with a time that is no time":      {201, with("2026-11-30T12:00:00Z", "2026-11-31T12:00:00Z")},
		"with a time without a zone":       {201, with("12:00:00Z", "12:00:00")},
		"with a time as a number":          {201, with(`"2026-11-30T12:00:00Z"`, "1795996800")},
		"pending":                          {201, with("approved", "pending")},
		"approved in capitals":             {201, with("approved", "Approved")},
		"declined, but with 201":           {201, with("approved", "declined")},
		"declined, but with 200":           {200, `{"status":"declined","declineCode":"d","message":"m"}`},
		"approved, but with 402":           {402, approval},
		"402 without a body":               {402, ""},
		"402 with a page":                  {402, "<h1>Payment required</h1>"},
		"402 without a status":             {402, `{"declineCode":"d","message":"m"}`},
		"402 without a code":               {402, `{"status":"declined","message":"m"}`},
		"402 with an empty code":           {402, `{"status":"declined","declineCode":"","message":"m"}`},
		"402 with a code of null":          {402, `{"status":"declined","declineCode":null,"message":"m"}`},
		"402 with a message that is none":  {402, `{"status":"declined","declineCode":"d","message":1}`},
		"402 of a problem":                 {402, `{"type":"about:blank","status":402,"title":"Payment Required"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t, answering(c.status, c.body))
			assertUnknown(t, adapterFor(t, p.url, patience), paying(""))
			assert.Len(t, p.received(), 1)
		})
	}
}

func TestAnswersThatDoNotArriveWhole(t *testing.T) {
	head := fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n", len(approval)+1)
	for name, raw := range map[string]string{
		"nothing":                "",
		"half a status line":     "HTTP/1.1 20",
		"half a header":          head,
		"no body":                head + "\r\n",
		"a body that is cut off": head + "\r\n" + approval,
		"no content":             "HTTP/1.1 204 No Content\r\n\r\n",
		"not modified":           "HTTP/1.1 304 Not Modified\r\n\r\n",
		"only interim answers":   "HTTP/1.1 103 Early Hints\r\n\r\n",
		"another protocol": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" +
			approval,
		"another language": "+OK kakutei\r\n",
		"a binary":         "\x15\x03\x01\x00\x02\x02\x16",
		"chunks without an end": fmt.Sprintf("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n",
			len(approval), approval),
		"chunks of nonsense":          "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + approval,
		"two lengths":                 "HTTP/1.1 201 Created\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" + approval,
		"a negative length":           "HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n" + approval,
		"a header without an end":     "HTTP/1.1 201 Created\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n" + approval,
		"a body without an end":       "HTTP/1.1 201 Created\r\n\r\n" + approval + strings.Repeat(" ", 1<<20),
		"the request, as its answer":  "HTTP/1.1 Bearer " + token + "\r\n\r\n",
		"the token in a broken chunk": "HTTP/1.1 201 Created\r\nTransfer-Encoding: " + token + "\r\n\r\n",
		"the token in a broken body":  "HTTP/1.1 201 Created\r\n\r\n" + token,
		"the token as the currency": "HTTP/1.1 201 Created\r\n\r\n" +
			strings.Replace(approval, "JPY", token, 1),
		"the token as the time": "HTTP/1.1 201 Created\r\n\r\n" +
			strings.Replace(approval, "2026-11-30T12:00:00Z", token, 1),
		"the token as the status": "HTTP/1.1 201 Created\r\n\r\n" +
			strings.Replace(approval, "approved", token, 1),
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t, saying(raw))
			assertUnknown(t, adapterFor(t, p.url, patience), paying(""))
			assert.Len(t, p.received(), 1)
		})
	}
}

func TestCompressedAnswersThatNobodyAskedForAreUnknown(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte(approval))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for encoding, body := range map[string]string{"gzip": zipped.String(), "br": approval, "": zipped.String()} {
		p := startProvider(t, answering(http.StatusCreated, body, "Content-Encoding", encoding))
		assertUnknown(t, adapterFor(t, p.url, patience), paying(""))
	}
}

func TestAProviderThatIsNotThereIsUnknown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	assertUnknown(t, adapterFor(t, "http://"+listener.Addr().String(), patience), paying(""))
}

func TestTheTimeoutIsForTheWholeCall(t *testing.T) {
	for name, start := range map[string]string{
		"before the answer":         "",
		"in its header":             "HTTP/1.1 201 Created\r\nContent-",
		"in its body":               "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n" + approval[:20],
		"after a whole JSON object": "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n" + approval,
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t, func(conn net.Conn, _ request) bool {
				write(conn, []byte(start))
				return true // and wait for a next request, as it were
			})
			answer, err := adapterFor(t, p.url, 100*time.Millisecond).Charge(t.Context(), paying(""))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Nil(t, answer)
			assert.Len(t, p.received(), 1)
		})
	}
}

func TestTheCallersContextEndsTheCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := startProvider(t, func(net.Conn, request) bool {
		cancel()
		return true
	})
	answer, err := adapterFor(t, p.url, patience).Charge(ctx, paying(""))
	require.ErrorIs(t, err, context.Canceled)
	assert.Nil(t, answer)
	assert.Len(t, p.received(), 1)
}

func TestAProviderThatHasClosedItsHalfIsStillHeard(t *testing.T) {
	p := startProvider(t, func(conn net.Conn, r request) bool {
		answering(http.StatusCreated, approval)(conn, r)
		return conn.(*net.TCPConn).CloseWrite() == nil
	})
	answer, err := adapterFor(t, p.url, patience).Charge(t.Context(), paying(""))
	require.NoError(t, err)
	assert.Equal(t, approved, answer)
}

// C108, from the other side: with a key on the request Go's transport would send it again by itself.
func TestAChargeIsSentOnceEvenWhenAKeptConnectionBreaks(t *testing.T) {
	for name, second := range map[string]reply{
		"without an answer":  saying(""),
		"within the header":  saying("HTTP/1.1 201"),
		"with a late 408":    saying("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
		"with a bare 408":    saying("HTTP/1.0 408 Request Time-out\r\n\r\n"),
		"with a reset":       resetting,
		"with a 503 to wait": answering(http.StatusServiceUnavailable, "", "Retry-After", "0"),
		"with a 421":         answering(http.StatusMisdirectedRequest, ""),
		"with a 425":         answering(http.StatusTooEarly, ""),
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			p := startProvider(t, func(conn net.Conn, r request) bool {
				if calls.Add(1) == 1 {
					return answering(http.StatusCreated, approval)(conn, r)
				}
				return second(conn, r)
			})
			h := adapterFor(t, p.url, patience)
			_, err := h.Charge(t.Context(), paying(""))
			require.NoError(t, err)

			a := paying("")
			assertUnknown(t, h, a)
			require.Len(t, p.received(), 2, "the first charge, and the second one once")
			assert.Equal(t, a.GatewayKey(), p.received()[1].Header.Get("Idempotency-Key"))
		})
	}
}

// resetting ends the connection with RST instead of FIN.
func resetting(conn net.Conn, _ request) bool {
	return conn.(*net.TCPConn).SetLinger(0) != nil
}

func TestRedirectsLeadNowhere(t *testing.T) {
	elsewhere := startProvider(t, answering(http.StatusCreated, approval))
	for _, status := range []int{301, 302, 303, 307, 308} {
		p := startProvider(t, answering(status, "", "Location", elsewhere.url+"/charges"))
		h := adapterFor(t, p.url, patience)
		assertUnknown(t, h, paying(""))
		_, err := h.Lookup(t.Context(), "o1")
		require.Error(t, err)
		assert.Len(t, p.received(), 2)
	}
	assert.Empty(t, elsewhere.received())
}
