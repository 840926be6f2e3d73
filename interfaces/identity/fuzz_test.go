package identity_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/identity"
	"kakutei/interfaces/identity/identitytest"
)

// Nobody can sign without the key, so whatever text is made up, it is refused, by a secret and by a key set.
func FuzzNoTextThatIsMadeUpIsAToken(f *testing.F) {
	s, err := identity.NewSecret(strings.Repeat("unknown to the fuzzer ", 2))
	require.NoError(f, err)
	key := identitytest.NewKey(f, "k", "ES256")
	text := identitytest.Set(key.JWK())
	set := identity.NewKeySet(func(context.Context) ([]byte, error) { return text, nil }, slog.New(slog.DiscardHandler))
	require.NoError(f, set.Read(f.Context()))
	claims := identitytest.Claims("alice")
	f.Add(identitytest.HS256(f, []byte(theSecret), claims))
	f.Add(identitytest.NewKey(f, "k", "ES256").Sign(f, claims))
	f.Add(identitytest.NewKey(f, "k", "RS256").Sign(f, claims))
	f.Add(identitytest.Raw(`{"alg":"none"}`, `{"sub":"alice"}`, nil))
	f.Add(identitytest.Raw(`{"alg":"ES256","kid":null,"crit":[]}`, `null`, make([]byte, 64)))
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		for _, keys := range []identity.Keys{s, set} {
			caller, err := identity.NewTokens(identity.Config{Keys: keys}).Authenticate(t.Context(), token)
			require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
			assert.Empty(t, caller)
		}
	})
}

// Whatever a provider publishes, it is read or refused.
func FuzzAKeySetIsReadOrRefused(f *testing.F) {
	for _, algorithm := range []string{"RS256", "ES256", "ES512", "EdDSA"} {
		f.Add(string(identitytest.Set(identitytest.NewKey(f, "k", algorithm).JWK())))
	}
	f.Add(`{"keys":[{"kty":"RSA","n":"","e":""},{"kty":"EC","crv":"P-256"},{"kty":"OKP","crv":"Ed25519"},null,7]}`)
	f.Fuzz(func(t *testing.T, text string) {
		set := identity.NewKeySet(func(context.Context) ([]byte, error) { return []byte(text), nil }, slog.New(slog.DiscardHandler))
		if err := set.Read(t.Context()); err != nil {
			assert.Zero(t, set.Len())
			return
		}
		assert.LessOrEqual(t, set.Len(), len(text))
		forged := identitytest.Raw(`{"alg":"RS256","kid":"k"}`, `{"sub":"alice"}`, make([]byte, 256))
		_, err := identity.NewTokens(identity.Config{Keys: set}).Authenticate(t.Context(), forged)
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
	})
}
