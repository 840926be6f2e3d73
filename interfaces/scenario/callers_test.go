package scenario

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/identity"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestMintedTokensAreSignedAndSayWhoAndForWhom(t *testing.T) {
	text := strings.Repeat("s", 32)
	secret, err := identity.NewSecret(text)
	require.NoError(t, err)
	minted := MintedCallers{
		Run: "r1", Secret: secret, Issuer: "us", Audience: "kakutei", Now: func() time.Time { return noon },
	}
	alice, err := minted.Caller("alice", "company-1")
	require.NoError(t, err)
	assert.Equal(t, "alice-r1", alice.Actor)
	parts := strings.Split(alice.Token, ".")
	require.Len(t, parts, 3)
	mac := hmac.New(sha256.New, []byte(text))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	assert.Equal(t, base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), parts[2], "RFC 7515 §5.1")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	assert.JSONEq(t,
		`{"sub":"alice-r1","companies":["company-1"],"iss":"us","aud":"kakutei","exp":1796043600}`, string(payload))

	operator, err := minted.Caller("operator", "")
	require.NoError(t, err)
	payload, err = base64.RawURLEncoding.DecodeString(strings.Split(operator.Token, ".")[1])
	require.NoError(t, err)
	var said map[string]any
	require.NoError(t, json.Unmarshal(payload, &said))
	assert.Equal(t, "operator", said["scope"])
	assert.NotContains(t, said, "companies")
}

func TestGivenTokensAreWhoseTheySay(t *testing.T) {
	secret, err := identity.NewSecret(strings.Repeat("s", 32))
	require.NoError(t, err)
	jwt, err := secret.Mint(identity.Grant{Actor: "u-1", Companies: []string{"c-1", "c-2"}, Until: noon})
	require.NoError(t, err)
	given := GivenCallers{Tokens: map[string]string{"alice": jwt, "bob": "demo-robert@c-3", "carol": "opaque"}}

	alice, err := given.Caller("alice", "c-2")
	require.NoError(t, err)
	assert.Equal(t, Caller{Actor: "u-1", Company: "c-2", Token: jwt}, alice)
	alice, err = given.Caller("alice", "elsewhere")
	require.NoError(t, err)
	assert.Equal(t, "c-1", alice.Company)
	bob, err := given.Caller("bob", "c-1")
	require.NoError(t, err)
	assert.Equal(t, Caller{Actor: "robert", Company: "c-3", Token: "demo-robert@c-3"}, bob)
	_, err = given.Caller("carol", "c-1")
	require.ErrorIs(t, err, errNoJWT)
	assert.NotContains(t, err.Error(), "opaque")
	_, err = given.Caller("dave", "c-1")
	require.ErrorIs(t, err, ErrNotApplicable)
	given.Else = DemoCallers{Run: "r1"}
	dave, err := given.Caller("dave", "c-1")
	require.NoError(t, err)
	assert.Equal(t, "demo-dave-r1@c-1", dave.Token)
}

func TestAnExchangeShowsRequestAndAnswerButNoToken(t *testing.T) {
	e := exchange{
		method: "POST", path: "/api/orders", body: []byte(`{"currency":"JPY"}`), status: 409,
		sent:     http.Header{"Authorization": {"Bearer secret"}, "Idempotency-Key": {"k"}},
		received: http.Header{"Retry-After": {"1"}}, answer: []byte(`{"code":"x"}`),
	}
	shown := e.String()
	for _, part := range []string{
		"> POST /api/orders\n", "> Idempotency-Key: k\n", `> {"currency":"JPY"}`, "< 409 Conflict\n", "< Retry-After: 1\n",
		`< {"code":"x"}`,
	} {
		assert.Contains(t, shown, part)
	}
	assert.NotContains(t, shown, "secret")
}
