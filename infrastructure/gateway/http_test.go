package gateway_test

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/money"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

// approval is the contract's answer to paying's 1000 yen.
const approval = `{"chargeId":"ch_1","status":"approved","amount":1000,"currency":"JPY",` +
	`"chargedAt":"2026-11-30T12:00:00Z"}`

var approved = payment.Charge{
	ID: "ch_1", Money: money.Of(1000, money.JPY), ChargedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
}

func TestAChargeIsAskedForAsTheProtocolSays(t *testing.T) {
	p := startProvider(t, answering(http.StatusCreated, approval))
	a := paying("pm_ok")
	a.OrderID, a.Number = "0193a5d0-0000-7000-8000-000000000001", 3
	_, err := adapterFor(t, p.url+"/v1", patience).Charge(t.Context(), a)
	require.NoError(t, err)

	require.Len(t, p.received(), 1)
	sent := p.received()[0]
	assert.Equal(t, "POST /v1/charges", sent.Method+" "+sent.RequestURI)
	assert.Equal(t, []string{"0193a5d0-0000-7000-8000-000000000001:3"}, sent.Header["Idempotency-Key"])
	assert.Equal(t, "application/json", sent.Header.Get("Content-Type"))
	assert.Equal(t, "Bearer "+token, sent.Header.Get("Authorization"))
	assert.NotContains(t, sent.Header, "Accept-Encoding")
	assert.Equal(t, int64(len(sent.body)), sent.ContentLength)
	assert.JSONEq(t, `{"orderId":"0193a5d0-0000-7000-8000-000000000001","attempt":3,"amount":1000,"currency":"JPY",
		"paymentMethod":"pm_ok"}`, string(sent.body))
}

func TestWhatIsNotSetIsNotSent(t *testing.T) {
	p := startProvider(t, answering(http.StatusCreated, approval))
	h, err := gateway.NewHTTP(gateway.HTTPConfig{BaseURL: p.url, Timeout: patience})
	require.NoError(t, err)
	_, err = h.Charge(t.Context(), paying(""))
	require.NoError(t, err)

	require.Len(t, p.received(), 1)
	sent := p.received()[0]
	assert.NotContains(t, sent.Header, "Authorization", "without a token")
	var body map[string]any
	require.NoError(t, json.Unmarshal(sent.body, &body))
	assert.NotContains(t, body, "paymentMethod", "without a method")
}

func TestThePathOfTheBaseURLIsKept(t *testing.T) {
	for base, want := range map[string]string{
		"": "/charges", "/": "/charges", "/v1": "/v1/charges", "/v1/": "/v1/charges", "/a%2Fb/c": "/a%2Fb/c/charges",
	} {
		p := startProvider(t, answering(http.StatusOK, approval))
		_, err := adapterFor(t, p.url+base, patience).Charge(t.Context(), paying(""))
		require.NoError(t, err, base)
		assert.Equal(t, want, p.received()[0].RequestURI, base)
	}
}

func TestDefiniteAnswers(t *testing.T) {
	other := func(from, to string) string { return strings.Replace(approval, from, to, 1) }
	money2000 := approved
	money2000.Money = money.Of(2000, money.JPY)
	nothing := approved
	nothing.Money = money.Of(0, money.JPY)
	eur, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	inEuro := approved
	inEuro.Money = money.Of(1000, eur)
	toTheMicrosecond := approved
	toTheMicrosecond.ChargedAt = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

	for name, c := range map[string]struct {
		status int
		body   string
		want   payment.Answer
	}{
		"a new charge": {201, approval, approved},
		"a repeat":     {200, approval, approved},
		"with white space": {201, " {\n\"chargeId\" :\t\"ch_1\" , \"status\": \"approved\", \"amount\" : 1000 ,\r\n" +
			"\"currency\":\"JPY\",\"chargedAt\":\"2026-11-30T12:00:00Z\" }\n", approved},
		"with escapes": {201, other(`"status"`, `"st\u0061tus"`), approved},
		"with members of its own": {
			201, other(`{`, `{"livemode":false,"Amount":7,"card":{"amount":9,"amount":8},"x":null,`), approved,
		},
		"in another zone":         {201, other("12:00:00Z", "21:00:00+09:00"), approved},
		"finer than a µs":         {201, other("12:00:00Z", "12:00:00.1234567Z"), toTheMicrosecond},
		"other money":             {201, other("1000", "2000"), money2000},
		"other money in a repeat": {200, other("1000", "2000"), money2000},
		"no money":                {201, other("1000", "0"), nothing},
		"another currency":        {201, other("JPY", "EUR"), inEuro},
		"a decline": {402, `{"status":"declined","declineCode":"card_declined","message":"no"}`, payment.Decline{
			Code: "card_declined", Message: "no",
		}},
		"a decline with an empty message": {
			402, `{"status":"declined","declineCode":"d","message":""}`, payment.Decline{Code: "d"},
		},
		"a decline without a message": {402, `{"status":"declined","declineCode":"d"}`, payment.Decline{Code: "d"}},
		"a decline with a long message": {
			402, `{"status":"declined","declineCode":"d","message":"` + strings.Repeat("no\\n", 500) + `"}`,
			payment.Decline{Code: "d", Message: strings.Repeat("no\n", 500)},
		},
		"as long as may be": {201, approval + strings.Repeat(" ", 64<<10-len(approval)), approved},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t, answering(c.status, c.body))
			answer, err := adapterFor(t, p.url, patience).Charge(t.Context(), paying(""))
			require.NoError(t, err)
			assert.Equal(t, c.want, answer)
			assert.Len(t, p.received(), 1)
		})
	}
}

func TestAnAnswerInPiecesIsAnAnswer(t *testing.T) {
	chunked := "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, b := range []byte(approval) {
		chunked += "1\r\n" + string(b) + "\r\n"
	}
	for name, raw := range map[string]string{
		"chunked, after an interim answer":     chunked + "0\r\n\r\n",
		"as long as the connection, HTTP 1.0":  "HTTP/1.0 200 OK\r\n\r\n" + approval,
		"without a content type or its length": "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n" + approval,
	} {
		p := startProvider(t, saying(raw))
		answer, err := adapterFor(t, p.url, patience).Charge(t.Context(), paying(""))
		require.NoError(t, err, name)
		assert.Equal(t, approved, answer, name)
	}
}

func TestOtherMoneyIsForTheAttemptToTell(t *testing.T) {
	p := startProvider(t, answering(http.StatusCreated, strings.Replace(approval, "1000", "2000", 1)))
	a := paying("")
	answer, err := adapterFor(t, p.url, patience).Charge(t.Context(), a)
	require.NoError(t, err)
	assert.ErrorIs(t, a.Check(answer), payment.ErrAmountConflict)
}

func TestConnectionsAreUsedAgainAndCookiesAreNot(t *testing.T) {
	p := startProvider(t, answering(http.StatusOK, approval, "Set-Cookie", "session=1; Path=/"))
	h := adapterFor(t, p.url, patience)
	for range 3 {
		_, err := h.Charge(t.Context(), paying(""))
		require.NoError(t, err)
	}
	connections := map[string]bool{}
	for _, sent := range p.received() {
		connections[sent.RemoteAddr] = true
		assert.NotContains(t, sent.Header, "Cookie")
	}
	assert.Len(t, p.received(), 3)
	assert.Len(t, connections, 1)
}

func TestTLS(t *testing.T) {
	type provider struct {
		url     string
		roots   *x509.CertPool
		reached chan string // the protocol of each request
	}
	start := func(t *testing.T) provider {
		p := provider{roots: x509.NewCertPool(), reached: make(chan string, 10)}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.reached <- r.Proto
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, approval) //nolint:errcheck // the test sees what arrives
		}))
		server.EnableHTTP2 = true
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		p.roots.AddCert(server.Certificate())
		p.url = server.URL
		return p
	}
	t.Run("is spoken as the URL says, never HTTP/2, which sends again by itself", func(t *testing.T) {
		p := start(t)
		h := adapterFor(t, p.url, patience)
		h.Trust(p.roots)
		answer, err := h.Charge(t.Context(), paying(""))
		require.NoError(t, err)
		assert.Equal(t, approved, answer)
		assert.Len(t, p.reached, 1)
		assert.Equal(t, "HTTP/1.1", <-p.reached)
	})
	t.Run("tells nothing to a provider whose certificate nobody vouches for", func(t *testing.T) {
		p := start(t)
		assertUnknown(t, adapterFor(t, p.url, patience), paying(""))
		assert.Empty(t, p.reached)
	})
	t.Run("is not guessed from the answer", func(t *testing.T) {
		p := start(t)
		assertUnknown(t, adapterFor(t, strings.Replace(p.url, "https:", "http:", 1), patience), paying(""))
		assert.Empty(t, p.reached)
	})
}

func TestTheConfigurationIsCheckedBeforeAnythingIsSent(t *testing.T) {
	good := gateway.HTTPConfig{BaseURL: "https://pay.example/v1", Token: token, Timeout: time.Second}
	_, err := gateway.NewHTTP(good)
	require.NoError(t, err)

	for base, want := range map[string]string{
		"":                                   "must begin with http:// or https://",
		"pay.example":                        "must begin with http:// or https://",
		"/charges":                           "must begin with http:// or https://",
		"ftp://pay.example":                  "must begin with http:// or https://",
		"simulator":                          "must begin with http:// or https://",
		"http://":                            "must name a host",
		"https:///v1":                        "must name a host",
		"http:pay.example":                   "must name a host",
		"http://:8081":                       "must name a host",
		"http://pay.example:0":               "must have a port from 1 to 65535, or none",
		"http://pay.example:65536":           "must have a port from 1 to 65535, or none",
		"http://u:" + token + "@pay.example": "must not hold a user or a password",
		"http://pay.example?":                "must have neither query nor fragment",
		"http://pay.example?key=" + token:    "must have neither query nor fragment",
		"http://pay.example#":                "must have neither query nor fragment",
		"http://pay.example/#" + token:       "must have neither query nor fragment",
		"http://pay.example:" + token:        "cannot be read",
		"http://pay.example/%zz":             "cannot be read",
		"http://pay .example":                "cannot be read",
		"http://pay.example/\n":              "cannot be read",
	} {
		c := good
		c.BaseURL = base
		_, err := gateway.NewHTTP(c)
		require.EqualError(t, err, "gateway: the base URL "+want, "%q", base)
	}
	for _, bad := range []string{"a b", "a\n", "a\x00", "a\"", `a\`, "鍵", "\x7f"} {
		c := good
		c.Token = token + bad
		_, err := gateway.NewHTTP(c)
		require.ErrorContains(t, err, "the token must be visible ASCII", "%q", bad)
		assert.NotContains(t, err.Error(), token)
	}
	for _, timeout := range []time.Duration{0, -time.Second} {
		c := good
		c.Timeout = timeout
		_, err := gateway.NewHTTP(c)
		require.ErrorContains(t, err, "the timeout must be positive", timeout)
	}
}

// The same provider has one name, however its address is written.
func TestAProviderIsNamedByItsAddress(t *testing.T) {
	for text, name := range map[string]string{
		"https://PSP.example/v1/":   "https://psp.example/v1",
		"https://psp.example:443":   "https://psp.example",
		"http://psp.example:80/":    "http://psp.example",
		"http://127.0.0.1:8081":     "http://127.0.0.1:8081",
		"https://psp.example:80/v1": "https://psp.example:80/v1",
	} {
		assert.Equal(t, name, gateway.Name(text))
	}
}
