// Package identitytest is an identity provider for tests: it signs tokens and publishes its keys.
package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// Audience is what the provider's tokens are for, unless a test says otherwise.
const Audience = "kakutei"

// Key signs with one algorithm under a name.
type Key struct {
	ID        string
	Algorithm string
	Private   crypto.Signer
}

// NewKey makes a key of the algorithm's kind.
func NewKey(t testing.TB, id, algorithm string) Key {
	t.Helper()
	var private crypto.Signer
	var err error
	switch algorithm {
	case "ES256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "EdDSA":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default: // RS… and PS…
		private = rsaKey()
	}
	require.NoError(t, err)
	return Key{ID: id, Algorithm: algorithm, Private: private}
}

// rsaKey is one for all tests of a package: making one takes long. Who wants two asks for two kinds.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// JWK is the public key as it is published, with its algorithm and use.
func (k Key) JWK() map[string]any {
	jwk := map[string]any{"kid": k.ID, "alg": k.Algorithm, "use": "sig"}
	switch public := k.Private.Public().(type) {
	case *rsa.PublicKey:
		maps.Copy(jwk, map[string]any{
			"kty": "RSA", "n": encoded(public.N.Bytes()), "e": encoded(big.NewInt(int64(public.E)).Bytes()),
		})
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // 4, x, y
		if err != nil {
			panic(err)
		}
		size := len(point) / 2
		maps.Copy(jwk, map[string]any{
			"kty": "EC", "crv": public.Curve.Params().Name, "x": encoded(point[1 : 1+size]), "y": encoded(point[1+size:]),
		})
	case ed25519.PublicKey:
		maps.Copy(jwk, map[string]any{"kty": "OKP", "crv": "Ed25519", "x": encoded(public)})
	}
	return jwk
}

// Sign is a token with these claims, and more in its header if it is given.
func (k Key) Sign(t testing.TB, claims map[string]any, header ...map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.GetSigningMethod(k.Algorithm), jwt.MapClaims(claims))
	token.Header["kid"] = k.ID
	for _, more := range header {
		for name, value := range more {
			token.Header[name] = value
			if value == nil {
				delete(token.Header, name)
			}
		}
	}
	signed, err := token.SignedString(k.Private)
	require.NoError(t, err)
	return signed
}

// Set is a key set as it is published.
func Set(jwks ...map[string]any) []byte {
	if jwks == nil {
		jwks = []map[string]any{}
	}
	text, err := json.Marshal(map[string]any{"keys": jwks})
	if err != nil {
		panic(err)
	}
	return text
}

// Claims are those of a good token of this actor, changed as it is said; nil takes a claim away.
func Claims(actor string, changes ...map[string]any) map[string]any {
	claims := map[string]any{"sub": actor, "aud": Audience, "exp": time.Now().Add(time.Hour).Unix()}
	for _, change := range changes {
		for name, value := range change {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
	}
	return claims
}

// HS256 is a token signed with the secret, and more in its header if it is given.
func HS256(t testing.TB, secret []byte, claims map[string]any, header ...map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(claims))
	for _, more := range header {
		maps.Copy(token.Header, more)
	}
	signed, err := token.SignedString(secret)
	require.NoError(t, err)
	return signed
}

// Raw is a token of these three parts, none of them encoded yet.
func Raw(header, claims string, signature []byte) string {
	return encoded([]byte(header)) + "." + encoded([]byte(claims)) + "." + encoded(signature)
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
