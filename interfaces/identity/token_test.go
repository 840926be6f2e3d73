package identity_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/identity"
	"kakutei/interfaces/identity/identitytest"
)

const theSecret = "thirty-two bytes or more, all of them secret"

func secret(t *testing.T) identity.Secret {
	t.Helper()
	s, err := identity.NewSecret(theSecret)
	require.NoError(t, err)
	return s
}

// withSecret accepts what the secret signs.
func withSecret(t *testing.T) *identity.Tokens {
	t.Helper()
	return identity.NewTokens(identity.Config{Keys: secret(t), Audience: identitytest.Audience})
}

// withSet accepts what the keys of a set sign.
func withSet(t *testing.T, jwks ...map[string]any) *identity.Tokens {
	t.Helper()
	return identity.NewTokens(identity.Config{Keys: setOf(t, jwks...), Audience: identitytest.Audience})
}

func setOf(t *testing.T, jwks ...map[string]any) *identity.KeySet {
	t.Helper()
	text := identitytest.Set(jwks...)
	set := identity.NewKeySet(func(context.Context) ([]byte, error) { return text, nil }, slog.New(slog.DiscardHandler))
	require.NoError(t, set.Read(t.Context()))
	return set
}

// assertRefused checks that the token is refused for this reason, and that the error says nothing else.
func assertRefused(t *testing.T, tokens *identity.Tokens, token, reason string) {
	t.Helper()
	caller, err := tokens.Authenticate(t.Context(), token)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "%+v", caller)
	assert.Empty(t, caller)
	assert.Equal(t, httpapi.ErrUnauthenticated.Error()+": "+reason, err.Error())
}

func assertAccepted(t *testing.T, tokens *identity.Tokens, token string) {
	t.Helper()
	caller, err := tokens.Authenticate(t.Context(), token)
	require.NoError(t, err)
	assert.Equal(t, httpapi.Caller{Actor: "alice", Customer: true}, caller)
}

func TestATokenStandsForItsSubject(t *testing.T) {
	tokens := withSecret(t)
	long := strings.Repeat("a", 128)
	for name, c := range map[string]struct {
		claims map[string]any
		want   httpapi.Caller
	}{
		"a customer": {identitytest.Claims("alice"), httpapi.Caller{Actor: "alice", Customer: true}},
		"one who may post for companies": {
			identitytest.Claims("alice", map[string]any{"companies": []string{"company-1", "company-2"}}),
			httpapi.Caller{Actor: "alice", Customer: true, Companies: []string{"company-1", "company-2"}},
		},
		"one whose companies are null": {
			map[string]any{"sub": "bob", "aud": identitytest.Audience, "exp": time.Now().Unix() + 60, "companies": nil},
			httpapi.Caller{Actor: "bob", Customer: true},
		},
		"an operator, who stays a customer": {
			identitytest.Claims("olga", map[string]any{"scope": "openid operator"}),
			httpapi.Caller{Actor: "olga", Customer: true, Operator: true},
		},
		"one with other scopes": {
			identitytest.Claims("alice", map[string]any{"scope": "operators operator:read Operator"}),
			httpapi.Caller{Actor: "alice", Customer: true},
		},
		// The name is reserved in demo mode, where nobody signs anything.
		"one who is called operator": {
			identitytest.Claims("operator"), httpapi.Caller{Actor: "operator", Customer: true},
		},
		"the longest name": {identitytest.Claims(long), httpapi.Caller{Actor: long, Customer: true}},
		"claims in other cases": {
			identitytest.Claims("alice", map[string]any{"SUB": "bob", "SCOPE": "operator", "Companies": []string{"c"}}),
			httpapi.Caller{Actor: "alice", Customer: true},
		},
		"one of several audiences": {
			identitytest.Claims("alice", map[string]any{"aud": []string{"billing", identitytest.Audience}}),
			httpapi.Caller{Actor: "alice", Customer: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tokens.Authenticate(t.Context(), identitytest.HS256(t, []byte(theSecret), c.claims))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestEachBadTokenIsRefusedForAReasonThatQuotesNothing(t *testing.T) {
	rsa := identitytest.NewKey(t, "rsa-1", "RS256")
	now := time.Now().Unix()
	hs := func(changes ...map[string]any) string {
		return identitytest.HS256(t, []byte(theSecret), identitytest.Claims("alice", changes...))
	}
	good := hs()
	part := strings.Split(good, ".")
	claims, err := json.Marshal(identitytest.Claims("alice"))
	require.NoError(t, err)

	for name, c := range map[string]struct{ token, reason string }{
		"empty":                       {"", "the token is malformed"},
		"a demo token":                {"demo-alice", "the token is malformed"},
		"two parts":                   {part[0] + "." + part[1], "the token is malformed"},
		"four parts":                  {good + ".x", "the token is malformed"},
		"no base64":                   {"!." + part[1] + "." + part[2], "the token is malformed"},
		"padded base64":               {part[0] + "=." + part[1] + "." + part[2], "the token is malformed"},
		"a header that is no JSON":    {identitytest.Raw("x", string(claims), nil), "the token is malformed"},
		"a header that is a list":     {identitytest.Raw("[]", string(claims), nil), "the token is malformed"},
		"a header that is null":       {identitytest.Raw("null", string(claims), nil), "the algorithm is not the key's"},
		"claims that are a text":      {identitytest.Raw(`{"alg":"HS256"}`, `"alice"`, nil), "the token is malformed"},
		"a signature with spare bits": {spareBits(good), "the token is malformed"},
		"too long": {
			hs(map[string]any{"more": strings.Repeat("x", 16<<10)}), "the token is too long",
		},
		"no algorithm":      {identitytest.Raw(`{"typ":"JWT"}`, string(claims), nil), "the algorithm is not the key's"},
		"algorithm 1":       {identitytest.Raw(`{"alg":1}`, string(claims), nil), "the algorithm is not the key's"},
		"alg none":          {identitytest.Raw(`{"alg":"none"}`, string(claims), nil), "the algorithm is not the key's"},
		"alg None":          {identitytest.Raw(`{"alg":"None"}`, string(claims), nil), "the algorithm is not the key's"},
		"alg none, signed":  {identitytest.Raw(`{"alg":"none"}`, string(claims), []byte("x")), "the algorithm is not the key's"},
		"alg hs256":         {identitytest.Raw(`{"alg":"hs256"}`, string(claims), nil), "the algorithm is not the key's"},
		"alg of later days": {identitytest.Raw(`{"alg":"ML-DSA-65"}`, string(claims), nil), "the algorithm is not the key's"},
		"HS512": {
			signed(t, jwt.SigningMethodHS512, []byte(theSecret)), "the algorithm is not the key's",
		},
		"RS256 for a secret": {rsa.Sign(t, identitytest.Claims("alice")), "the algorithm is not the key's"},
		"critical extension": {
			identitytest.HS256(t, []byte(theSecret), identitytest.Claims("alice"), map[string]any{"crit": []string{"b64"}}),
			"the token demands what is not understood here",
		},
		"kid that is no text": {
			identitytest.HS256(t, []byte(theSecret), identitytest.Claims("alice"), map[string]any{"kid": 7}),
			"the token is malformed",
		},
		"another secret": {
			identitytest.HS256(t, []byte(theSecret+"."), identitytest.Claims("alice")), "the signature is not valid",
		},
		"no signature": {part[0] + "." + part[1] + ".", "the signature is not valid"},
		"other claims": {
			part[0] + "." + strings.Split(hs(map[string]any{"sub": "bob"}), ".")[1] + "." + part[2],
			"the signature is not valid",
		},
		"expired":                 {hs(map[string]any{"exp": now - 31}), "the token is expired"},
		"expired and for others":  {hs(map[string]any{"exp": now - 31, "aud": "x"}), "the token is expired"},
		"not valid yet":           {hs(map[string]any{"nbf": now + 40}), "the token is not valid yet"},
		"without exp":             {hs(map[string]any{"exp": nil}), "a claim is missing"},
		"exp 0":                   {hs(map[string]any{"exp": 0}), "a claim is missing"},
		"exp that is a text":      {hs(map[string]any{"exp": fmt.Sprint(now + 60)}), "a claim is not what it must be"},
		"nbf that is a text":      {hs(map[string]any{"nbf": fmt.Sprint(now - 60)}), "a claim is not what it must be"},
		"exp in milliseconds":     {hs(map[string]any{"exp": (now + 60) * 1000}), "a claim is not what it must be"},
		"exp past all integers":   {hs(map[string]any{"exp": 1e300}), "the token is expired"},
		"nbf past all integers":   {hs(map[string]any{"nbf": 1e300}), "a claim is not what it must be"},
		"nbf before all integers": {hs(map[string]any{"nbf": -1e300}), "a claim is not what it must be"},
		"another audience":        {hs(map[string]any{"aud": "billing"}), "the audience is another"},
		"audiences, none of them": {hs(map[string]any{"aud": []string{"billing", "mail"}}), "the audience is another"},
		"an audience of any case": {hs(map[string]any{"aud": "Kakutei"}), "the audience is another"},
		"without audience":        {hs(map[string]any{"aud": nil}), "a claim is missing"},
		"without subject":         {hs(map[string]any{"sub": nil}), "a claim is not what it must be"},
		"an empty subject":        {hs(map[string]any{"sub": ""}), "a claim is not what it must be"},
		"a subject that is 7":     {hs(map[string]any{"sub": 7}), "a claim is not what it must be"},
		"a subject with a bar":    {hs(map[string]any{"sub": "auth0|7"}), "a claim is not what it must be"},
		"a subject with an at":    {hs(map[string]any{"sub": "a@b"}), "a claim is not what it must be"},
		"a subject with a blank":  {hs(map[string]any{"sub": "a b"}), "a claim is not what it must be"},
		"a subject that is no ASCII": {
			hs(map[string]any{"sub": "煎茶"}), "a claim is not what it must be",
		},
		"a subject of 129":       {hs(map[string]any{"sub": strings.Repeat("a", 129)}), "a claim is not what it must be"},
		"companies in one text":  {hs(map[string]any{"companies": "c1"}), "a claim is not what it must be"},
		"companies in an object": {hs(map[string]any{"companies": map[string]any{}}), "a claim is not what it must be"},
		"a company that is 7":    {hs(map[string]any{"companies": []any{"c1", 7}}), "a claim is not what it must be"},
		"a company with a bar":   {hs(map[string]any{"companies": []string{"c|1"}}), "a claim is not what it must be"},
		"an empty company":       {hs(map[string]any{"companies": []string{""}}), "a claim is not what it must be"},
		"a scope that is a list": {hs(map[string]any{"scope": []string{"operator"}}), "a claim is not what it must be"},
		"a scope that is an object": {
			hs(map[string]any{"scope": map[string]any{"operator": true}}), "a claim is not what it must be",
		},
	} {
		t.Run(name, func(t *testing.T) { assertRefused(t, withSecret(t), c.token, c.reason) })
	}
}

// spareBits changes those bits of the last character that no byte needs.
func spareBits(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[last^1])
}

func signed(t *testing.T, method jwt.SigningMethod, key any) string {
	t.Helper()
	token, err := jwt.NewWithClaims(method, jwt.MapClaims(identitytest.Claims("alice"))).SignedString(key)
	require.NoError(t, err)
	return token
}

func TestClocksMayDifferByThirtySeconds(t *testing.T) {
	now := time.Now().Unix()
	for _, times := range []map[string]any{{"exp": now - 25}, {"nbf": now + 25}, {"iat": now + 3600}, {"exp": 253402300799}} {
		assertAccepted(t, withSecret(t), identitytest.HS256(t, []byte(theSecret), identitytest.Claims("alice", times)))
	}
}

func TestEveryAlgorithmOfAKeySetIsAccepted(t *testing.T) {
	for _, algorithm := range []string{
		"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
	} {
		t.Run(algorithm, func(t *testing.T) {
			key := identitytest.NewKey(t, "k", algorithm)
			token := key.Sign(t, identitytest.Claims("alice"))
			assertAccepted(t, withSet(t, key.JWK()), token)
			anyUse := key.JWK()
			delete(anyUse, "alg")
			delete(anyUse, "use")
			assertAccepted(t, withSet(t, anyUse), token)
			assertAccepted(t, withSet(t, key.JWK()), key.Sign(t, identitytest.Claims("alice"), map[string]any{"kid": nil}))
		})
	}
}

func TestAPublicKeyIsNoSecret(t *testing.T) {
	key := identitytest.NewKey(t, "k", "RS256")
	der, err := x509.MarshalPKIXPublicKey(key.Private.Public())
	require.NoError(t, err)
	inPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	published, err := json.Marshal(key.JWK())
	require.NoError(t, err)
	n, err := base64.RawURLEncoding.DecodeString(key.JWK()["n"].(string))
	require.NoError(t, err)
	withoutAlgorithm := key.JWK()
	delete(withoutAlgorithm, "alg")
	for _, jwk := range []map[string]any{key.JWK(), withoutAlgorithm} {
		tokens := withSet(t, jwk)
		assertAccepted(t, tokens, key.Sign(t, identitytest.Claims("alice")))
		for _, public := range [][]byte{inPEM, der, published, n, {}} {
			for _, header := range []map[string]any{{"kid": "k"}, {}} {
				forged := identitytest.HS256(t, public, identitytest.Claims("alice"), header)
				assertRefused(t, tokens, forged, "the algorithm is not the key's")
			}
		}
	}
}

func TestAKeyHasItsOwnAlgorithmOnly(t *testing.T) {
	key := identitytest.NewKey(t, "k", "RS256")
	tokens := withSet(t, key.JWK())
	for _, other := range []string{"RS384", "RS512", "PS256", "PS512"} {
		token := identitytest.Key{ID: "k", Algorithm: other, Private: key.Private}.Sign(t, identitytest.Claims("alice"))
		assertRefused(t, tokens, token, "the algorithm is not the key's")
	}
	for _, other := range []string{"ES256", "EdDSA"} {
		token := identitytest.NewKey(t, "k", other).Sign(t, identitytest.Claims("alice"))
		assertRefused(t, tokens, token, "the algorithm is not the key's")
	}
	assertRefused(t, tokens, identitytest.Raw(`{"alg":"none","kid":"k"}`, `{}`, nil), "the algorithm is not the key's")
}

func TestATokenThatNamesAnotherKeyIsRefused(t *testing.T) {
	one, two := identitytest.NewKey(t, "one", "ES256"), identitytest.NewKey(t, "two", "ES256")
	tokens := withSet(t, one.JWK(), two.JWK())
	assertAccepted(t, tokens, one.Sign(t, identitytest.Claims("alice")))
	assertAccepted(t, tokens, two.Sign(t, identitytest.Claims("alice")))
	claims := identitytest.Claims("alice")
	assertRefused(t, tokens, one.Sign(t, claims, map[string]any{"kid": "two"}), "the signature is not valid")
	assertRefused(t, tokens, one.Sign(t, claims, map[string]any{"kid": "three"}), "the key is not known")
	assertRefused(t, tokens, one.Sign(t, claims, map[string]any{"kid": nil}), "the key is not known")
	assertRefused(t, tokens, one.Sign(t, claims, map[string]any{"kid": ""}), "the token is malformed")
}

func TestAKeyThatCameWithTheTokenIsNotBelieved(t *testing.T) {
	known, own := identitytest.NewKey(t, "k", "ES256"), identitytest.NewKey(t, "k", "ES256")
	forged := own.Sign(t, identitytest.Claims("alice"), map[string]any{
		"jwk": own.JWK(), "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/certificate",
	})
	assertRefused(t, withSet(t, known.JWK()), forged, "the signature is not valid")
}

func TestTheIssuerCountsIfOneIsConfigured(t *testing.T) {
	tokens := identity.NewTokens(identity.Config{Keys: secret(t), Issuer: "https://login.example/"})
	from := func(issuer any) string {
		return identitytest.HS256(t, []byte(theSecret), identitytest.Claims("alice", map[string]any{"iss": issuer, "aud": "x"}))
	}
	assertAccepted(t, tokens, from("https://login.example/"))
	assertRefused(t, tokens, from("https://login.example"), "the issuer is another")
	assertRefused(t, tokens, from(nil), "a claim is missing")
	assertRefused(t, tokens, from([]string{"https://login.example/"}), "a claim is not what it must be")
}

// The examples of RFC 7515, Appendix A, are signed by others' code, and long expired: what is refused about them is that.
func TestTheExamplesOfTheStandardAreSignedWell(t *testing.T) {
	const claims = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	hmac, err := base64.RawURLEncoding.DecodeString(
		"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
	require.NoError(t, err)
	shared, err := identity.NewSecret(string(hmac))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		keys              identity.Keys
		header, signature string
	}{
		"A.1": {shared, "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
		"A.2": {
			setOf(t, map[string]any{
				"kty": "RSA", "e": "AQAB",
				"n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZ" +
					"S-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2" +
					"R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcD" +
					"TW9gb54h4FRWyuXpoQ",
			}),
			"eyJhbGciOiJSUzI1NiJ9",
			"cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t" +
				"1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j" +
				"zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ" +
				"Ge77Rw",
		},
		"A.3": {
			setOf(t, map[string]any{
				"kty": "EC", "crv": "P-256",
				"x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
			}),
			"eyJhbGciOiJFUzI1NiJ9",
			"DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := identity.NewTokens(identity.Config{Keys: c.keys})
			assertRefused(t, tokens, c.header+"."+claims+"."+c.signature, "the token is expired")
			assertRefused(t, tokens, c.header+"."+claims+"."+"A"+c.signature[1:], "the signature is not valid")
		})
	}
}

func TestASecretHasThirtyTwoBytesAndDoesNotPrintItself(t *testing.T) {
	_, err := identity.NewSecret(theSecret[:31])
	require.Error(t, err)
	assert.NotContains(t, err.Error(), theSecret[:8])
	s, err := identity.NewSecret(theSecret[:32])
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Error("it", "secret", s, "in", errors.New(fmt.Sprint(s)))
	for _, printed := range []string{
		log.String(), fmt.Sprintf("%v %+v %#v %s %q", s, s, s, s, s), fmt.Sprintf("%v %+v %#v", &s, &s, identity.Config{Keys: s}),
	} {
		assert.NotContains(t, printed, theSecret[:8])
		assert.NotContains(t, printed, "116 104 105 114", "nor its bytes")
	}
}

func TestAMintedTokenIsAccepted(t *testing.T) {
	tokens := identity.NewTokens(identity.Config{Keys: secret(t), Audience: "shop", Issuer: "me"})
	token, err := secret(t).Mint(identity.Grant{
		Actor: "olga", Companies: []string{"c1", "c2"}, Scope: "operator", Until: time.Now().Add(time.Minute),
		Audience: "shop", Issuer: "me",
	})
	require.NoError(t, err)
	caller, err := tokens.Authenticate(t.Context(), token)
	require.NoError(t, err)
	assert.Equal(t, httpapi.Caller{Actor: "olga", Companies: []string{"c1", "c2"}, Customer: true, Operator: true}, caller)
	for _, g := range []identity.Grant{
		{Actor: ""},
		{Actor: "a b"},
		{Actor: "a|b"},
		{Actor: "a", Companies: []string{""}},
		{Actor: "a", Scope: strings.Repeat("x ", 8<<10)},
	} {
		_, err := secret(t).Mint(g)
		require.Error(t, err, g)
	}
}
