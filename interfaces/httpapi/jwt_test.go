package httpapi_test

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/identity"
	"kakutei/interfaces/identity/identitytest"
)

// believing opens an edge in jwt mode for the tokens that these keys sign.
func believing(t *testing.T, keys ...identitytest.Key) edge {
	t.Helper()
	var jwks []map[string]any
	for _, k := range keys {
		jwks = append(jwks, k.JWK())
	}
	path := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, os.WriteFile(path, identitytest.Set(jwks...), 0o600))
	set := identity.NewKeySet(identity.File(path), slog.New(slog.DiscardHandler))
	require.NoError(t, set.Read(t.Context()))
	return onMemory(t, func(c *httpapi.Config) {
		c.Auth = identity.NewTokens(identity.Config{Keys: set, Audience: identitytest.Audience, Issuer: "https://login.example"})
		c.AnyHost = true
	})
}

// says are the claims of a good token, changed as it is said.
func says(changes ...map[string]any) map[string]any {
	return identitytest.Claims("alice", append([]map[string]any{{"iss": "https://login.example"}}, changes...)...)
}

func TestWhateverIsWrongWithATokenTheAnswerIsTheSameAndTheLogSaysWhichKindItIs(t *testing.T) {
	rsa, ec := identitytest.NewKey(t, "rsa-1", "RS256"), identitytest.NewKey(t, "ec-1", "ES256")
	withdrawn := identitytest.NewKey(t, "ec-0", "ES256")
	e := believing(t, rsa, ec)
	now := time.Now().Unix()
	der, err := x509.MarshalPKIXPublicKey(rsa.Private.Public())
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := ec.Sign(t, says())
	claims, signature := strings.Split(good, ".")[1], strings.Split(good, ".")[2]
	kid := map[string]any{"kid": "rsa-1"}

	// A good token first, lest everything is refused.
	e.send(t, get(anOrder).token(good)).isProblem(t, http.StatusNotFound, "order_not_found")
	e.send(t, get(anOrder).token(rsa.Sign(t, says()))).isProblem(t, http.StatusNotFound, "order_not_found")

	bodies := map[string]bool{}
	for name, c := range map[string]struct{ token, reason string }{
		"alg none":                         {identitytest.Raw(`{"alg":"none","kid":"rsa-1"}`, `{"sub":"alice"}`, nil), "the algorithm is not the key's"},
		"HS256 signed with the public key": {identitytest.HS256(t, public, says(), kid), "the algorithm is not the key's"},
		"the key of another kind":          {ec.Sign(t, says(), kid), "the algorithm is not the key's"},
		"an unknown key":                   {ec.Sign(t, says(), map[string]any{"kid": "ec-9"}), "the key is not known"},
		"a withdrawn key":                  {withdrawn.Sign(t, says()), "the key is not known"},
		"a forged signature":               {withdrawn.Sign(t, says(), map[string]any{"kid": "ec-1"}), "the signature is not valid"},
		"a demo token":                     {"demo-alice", "the token is malformed"},
		"a text":                           {"letmein", "the token is malformed"},
		"three texts":                      {"a.b.c", "the token is malformed"},
		"a header of other bytes":          {"AAAA." + claims + "." + signature, "the token is malformed"},
		"nested deeply":                    {identitytest.Raw(strings.Repeat("[", 9000), `{}`, nil), "the token is malformed"},
		"too long":                         {ec.Sign(t, says(map[string]any{"x": strings.Repeat("x", 13<<10)})), "the token is too long"},
		"expired":                          {ec.Sign(t, says(map[string]any{"exp": now - 60})), "the token is expired"},
		"without exp":                      {ec.Sign(t, says(map[string]any{"exp": nil})), "a claim is missing"},
		"not valid yet":                    {ec.Sign(t, says(map[string]any{"nbf": now + 60})), "the token is not valid yet"},
		"for another service":              {ec.Sign(t, says(map[string]any{"aud": "mail"})), "the audience is another"},
		"for nobody":                       {ec.Sign(t, says(map[string]any{"aud": nil})), "a claim is missing"},
		"of another issuer":                {ec.Sign(t, says(map[string]any{"iss": "https://evil.example"})), "the issuer is another"},
		"of an actor that would be a part of key": {ec.Sign(t, says(map[string]any{"sub": "a|b"})), "a claim is not what it must be"},
		"of nobody":              {ec.Sign(t, says(map[string]any{"sub": nil})), "a claim is not what it must be"},
		"with a scope in a list": {ec.Sign(t, says(map[string]any{"scope": []string{"operator"}})), "a claim is not what it must be"},
	} {
		t.Run(name, func(t *testing.T) {
			r := placing().token(c.token).with("X-Request-Id", "bad-token-"+strings.ReplaceAll(name, " ", "-"))
			a := e.send(t, r).isProblem(t, http.StatusUnauthorized, "unauthenticated")
			assert.Equal(t, `Bearer realm="kakutei", error="invalid_token"`, a.header.Get("WWW-Authenticate"))
			assert.Equal(t, r.header.Get("Idempotency-Key"), a.header.Get("Idempotency-Key"))
			id := r.header.Get("X-Request-Id")
			bodies[strings.ReplaceAll(a.body, id, "")] = true
			var logged []string
			for _, line := range e.log.lines(t, "request failed") {
				if line["requestId"] == id {
					logged = append(logged, line["level"].(string)+" "+line["error"].(string))
				}
			}
			assert.Equal(t, []string{"INFO unauthenticated: a valid bearer token is needed: " + c.reason}, logged)
			if len(c.token) > 10 {
				assert.NotContains(t, e.log.String(), c.token[:10])
			}
		})
	}
	assert.Len(t, bodies, 1, "the answers differ: %v", bodies)
}

func TestAnAuthorizationHeaderThatIsNoOneTokenIsRefusedBeforeItIsLookedAt(t *testing.T) {
	key := identitytest.NewKey(t, "k", "ES256")
	e := believing(t, key)
	good := key.Sign(t, says())
	for _, lines := range [][]string{
		nil, {"Bearer " + good, "Bearer " + good}, {"Bearer " + good, ""}, {good}, {"Basic " + good}, {"Bearer"},
	} {
		r := get(anOrder)
		r.header["Authorization"] = lines
		a := e.send(t, r).isProblem(t, http.StatusUnauthorized, "unauthenticated")
		assert.Equal(t, `Bearer realm="kakutei"`, a.header.Get("WWW-Authenticate"))
	}
	e.send(t, get(anOrder).token(good+", Bearer "+good)).isProblem(t, http.StatusUnauthorized, "unauthenticated")
}

func TestAnOperatorsTokenOpensBothCountersAndACustomersOne(t *testing.T) {
	key := identitytest.NewKey(t, "k", "EdDSA")
	e := believing(t, key)
	customer := key.Sign(t, says(map[string]any{"companies": []string{"company-1"}, "scope": "openid profile"}))
	operator := key.Sign(t, says(map[string]any{"sub": "olga", "scope": "openid operator"}))

	placed := e.send(t, placing().token(customer)).is(t, http.StatusCreated)
	assert.Equal(t, "alice", placed.member(t, "customerId"))
	id, _ := placed.member(t, "orderId").(string)
	e.send(t, confirming(id).token(customer)).is(t, http.StatusOK)
	e.send(t, get("/api/orders/"+id).token(operator)).isProblem(t, http.StatusNotFound, "order_not_found")
	e.send(t, placing().token(operator)).is(t, http.StatusCreated)

	for _, path := range []string{"/api/unresolved", "/api/audit"} {
		e.send(t, get(path).token(operator)).is(t, http.StatusOK)
		e.send(t, get(path).token(customer)).isProblem(t, http.StatusForbidden, "forbidden")
	}
	release := post("/api/unresolved/release", `{"operation":"ConfirmPayment","actor":"alice","idempotencyKey":"k"}`)
	e.send(t, release.token(operator)).isProblem(t, http.StatusNotFound, "not_found")
	e.send(t, release.token(customer)).isProblem(t, http.StatusForbidden, "forbidden")
}

func TestCompaniesAreThoseOfTheToken(t *testing.T) {
	key := identitytest.NewKey(t, "k", "ES384")
	e := believing(t, key)
	of := func(companies any) string { return key.Sign(t, says(map[string]any{"companies": companies})) }
	posting := post("/api/journal-entries/post", `{"companyId":"company-1","sourceDocumentType":"sales_invoice",`+
		`"sourceDocumentId":"inv-1","serviceDate":"2025-01-29","total":110000}`)
	first := e.send(t, posting.token(of([]string{"company-2", "company-1"}))).is(t, http.StatusCreated)
	location := first.header.Get("Location")
	for _, token := range []string{of([]string{"company-2"}), of([]string{}), of(nil), of([]string{"Company-1"})} {
		e.send(t, posting.token(token)).isProblem(t, http.StatusForbidden, "forbidden")
		e.send(t, get(location).token(token)).isProblem(t, http.StatusNotFound, "not_found")
	}
	e.send(t, get(location).token(of([]string{"company-1"}))).is(t, http.StatusOK)
}

func TestAKeyIsTheActorsWhateverElseTheTokenSays(t *testing.T) {
	one, two := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "RS256")
	e := believing(t, one, two)
	r := placing().key("k")
	first := e.send(t, r.token(one.Sign(t, says()))).is(t, http.StatusCreated)
	again := two.Sign(t, says(map[string]any{"companies": []string{"c"}, "scope": "operator"}))
	e.send(t, r.token(again)).isReplayOf(t, first)
	other := e.send(t, r.token(one.Sign(t, says(map[string]any{"sub": "Alice"})))).is(t, http.StatusCreated)
	assert.NotEqual(t, first.member(t, "orderId"), other.member(t, "orderId"))
}
