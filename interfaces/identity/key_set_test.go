package identity_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/identity"
	"kakutei/interfaces/identity/identitytest"
)

// provider publishes what the test wants, as slowly as it wants. It counts how often it was asked.
type provider struct {
	mu    sync.Mutex
	keys  []map[string]any
	err   error
	takes time.Duration
	asked int
}

func (p *provider) read(ctx context.Context) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.takes > 0 {
		p.mu.Unlock()
		late := time.NewTimer(p.takes)
		defer late.Stop()
		select {
		case <-late.C:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return identitytest.Set(p.keys...), p.err
}

func (p *provider) publish(err error, keys ...identitytest.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.err = nil, err
	for _, k := range keys {
		p.keys = append(p.keys, k.JWK())
	}
}

func (p *provider) timesAsked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// trusting is a set of the provider's keys, read once, with the tokens that it lets in and its log.
func trusting(t *testing.T, p *provider) (*identity.KeySet, *identity.Tokens, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	set := identity.NewKeySet(p.read, slog.New(slog.NewTextHandler(&log, nil)))
	return set, identity.NewTokens(identity.Config{Keys: set, Audience: identitytest.Audience}), &log
}

func TestAnUnknownKeyHasTheSetReadAgainButNotMoreThanEveryTenSeconds(t *testing.T) {
	one, two, three := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "ES256"), identitytest.NewKey(t, "3", "ES256")
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.publish(nil, one)
		set, tokens, _ := trusting(t, p)
		require.NoError(t, set.Read(t.Context()))
		claims := identitytest.Claims("alice")

		p.publish(nil, two)
		assertAccepted(t, tokens, one.Sign(t, claims)) // nobody has told of the change
		assertAccepted(t, tokens, two.Sign(t, claims))
		assertRefused(t, tokens, one.Sign(t, claims), "the key is not known")
		require.Equal(t, 2, p.timesAsked())

		p.publish(nil, three)
		time.Sleep(9 * time.Second)
		for range 50 {
			assertRefused(t, tokens, three.Sign(t, claims), "the key is not known")
		}
		require.Equal(t, 2, p.timesAsked())
		time.Sleep(time.Second)
		assertAccepted(t, tokens, three.Sign(t, claims))
		assert.Equal(t, 3, p.timesAsked())
	})
}

func TestAReadingThatFailsLeavesTheKeysThatWereThere(t *testing.T) {
	one, two := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "ES256")
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.publish(nil, one)
		set, tokens, log := trusting(t, p)
		require.NoError(t, set.Read(t.Context()))
		p.publish(errors.New("the provider is away"))
		assertRefused(t, tokens, two.Sign(t, identitytest.Claims("alice")), "the key is not known")
		assertAccepted(t, tokens, one.Sign(t, identitytest.Claims("alice")))
		assert.Contains(t, log.String(), "the provider is away")
	})
}

func TestAWithdrawnKeyIsForgottenWithinAMinute(t *testing.T) {
	one, two := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "ES256")
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.publish(nil, one, two)
		set, tokens, _ := trusting(t, p)
		require.NoError(t, set.Read(t.Context()))
		ctx, stop := context.WithCancel(t.Context())
		go set.Run(ctx)
		p.publish(nil, two)
		time.Sleep(time.Minute + time.Second)
		assertAccepted(t, tokens, two.Sign(t, identitytest.Claims("alice")))
		time.Sleep(time.Hour)
		require.Equal(t, 62, p.timesAsked(), "once a minute")
		assertRefused(t, tokens, one.Sign(t, identitytest.Claims("alice")), "the key is not known")

		p.publish(nil) // all of them are withdrawn: that is no failure
		time.Sleep(time.Minute)
		assertRefused(t, tokens, two.Sign(t, identitytest.Claims("alice")), "the key is not known")
		stop()
		synctest.Wait()
	})
}

func TestASilentProviderHoldsUpUnknownKeysForTwoSecondsAndKnownOnesNotAtAll(t *testing.T) {
	one, two := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "ES256")
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.publish(nil, one)
		set, tokens, _ := trusting(t, p)
		require.NoError(t, set.Read(t.Context()))
		p.takes = time.Hour
		claims := identitytest.Claims("alice")
		begun := time.Now()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() { assertRefused(t, tokens, two.Sign(t, claims), "the key is not known") })
		}
		synctest.Wait()
		assertAccepted(t, tokens, one.Sign(t, claims))
		require.Zero(t, time.Since(begun))
		waiting.Wait()
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.Equal(t, 2, p.timesAsked(), "one reading for all of them")
		assertRefused(t, tokens, two.Sign(t, claims), "the key is not known")
		assert.Equal(t, 2*time.Second, time.Since(begun), "who comes later does not wait for a reading that has lasted so long")
		time.Sleep(5 * time.Second) // then the reading is given up
		synctest.Wait()
		assertRefused(t, tokens, two.Sign(t, claims), "the key is not known")
		assert.Equal(t, 7*time.Second, time.Since(begun), "until ten seconds are over nobody waits again")
	})
}

func TestAllWhoWaitForANewKeyGetInOnceItIsRead(t *testing.T) {
	one, two := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "ES256")
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.publish(nil, one)
		set, tokens, _ := trusting(t, p)
		require.NoError(t, set.Read(t.Context()))
		p.publish(nil, two)
		p.takes = time.Second
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				// Who has given up does not end the reading for the others.
				gone, leave := context.WithTimeout(t.Context(), time.Millisecond)
				defer leave()
				_, err := tokens.Authenticate(gone, two.Sign(t, identitytest.Claims("alice")))
				assert.ErrorIs(t, err, httpapi.ErrUnauthenticated)
			})
			waiting.Go(func() { assertAccepted(t, tokens, two.Sign(t, identitytest.Claims("alice"))) })
		}
		waiting.Wait()
		assert.Equal(t, 2, p.timesAsked())
	})
}

func TestWithoutAnyKeySetATokenCannotBeJudged(t *testing.T) {
	one := identitytest.NewKey(t, "1", "ES256")
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.publish(errors.New("the provider is away"))
		set, tokens, _ := trusting(t, p)
		require.Error(t, set.Read(t.Context()))
		token := one.Sign(t, identitytest.Claims("alice"))
		for range 3 {
			_, err := tokens.Authenticate(t.Context(), token)
			require.ErrorIs(t, err, port.ErrUnavailable, "it may be a good one")
		}
		assert.Equal(t, 2, p.timesAsked())
		assertRefused(t, tokens, "no token at all", "the token is malformed")
		time.Sleep(10 * time.Second)
		for _, header := range []string{`{"alg":"none"}`, `{"alg":"HS256","kid":"1"}`} {
			forged := identitytest.Raw(header, `{"sub":"alice"}`, make([]byte, 32))
			assertRefused(t, tokens, forged, "the algorithm is not the key's")
		}
		assert.Equal(t, 2, p.timesAsked(), "no set could make these good")

		p.publish(nil, one)
		time.Sleep(10 * time.Second)
		assertAccepted(t, tokens, token)
	})
}

// changed is the key as it is published, changed; nil takes a member away.
func changed(k identitytest.Key, changes map[string]any) map[string]any {
	jwk := k.JWK()
	for name, value := range changes {
		jwk[name] = value
		if value == nil {
			delete(jwk, name)
		}
	}
	return jwk
}

func TestKeysThatCannotBeUsedAreLeftOut(t *testing.T) {
	good := identitytest.NewKey(t, "good", "ES256")
	ec, rsa, ed := identitytest.NewKey(t, "k", "ES256"), identitytest.NewKey(t, "k", "RS256"), identitytest.NewKey(t, "k", "EdDSA")
	x, n := ec.JWK()["x"].(string), rsa.JWK()["n"].(string)
	for name, jwk := range map[string]map[string]any{
		"for encryption":                 changed(ec, map[string]any{"use": "enc"}),
		"for signing only":               changed(ec, map[string]any{"key_ops": []string{"sign"}}),
		"a shared secret":                {"kty": "oct", "k": "c2VjcmV0", "kid": "k"},
		"of an unknown kind":             changed(ec, map[string]any{"kty": "AKP"}),
		"without a kind":                 changed(ec, map[string]any{"kty": nil}),
		"RSA that says HS256":            changed(rsa, map[string]any{"alg": "HS256"}),
		"RSA that says none":             changed(rsa, map[string]any{"alg": "none"}),
		"RSA that says ES256":            changed(rsa, map[string]any{"alg": "ES256"}),
		"a curve that says another":      changed(ec, map[string]any{"alg": "ES384"}),
		"a curve that is not known":      changed(ec, map[string]any{"crv": "secp256k1"}),
		"a point that is not on it":      changed(ec, map[string]any{"y": x}),
		"a point on another curve":       changed(ec, map[string]any{"crv": "P-384", "alg": "ES384"}),
		"a coordinate without zeros":     changed(ec, map[string]any{"x": x[:len(x)-2]}),
		"a coordinate that is no base64": changed(ec, map[string]any{"x": "!" + x[1:]}),
		"RSA of 1024 bits":               changed(rsa, map[string]any{"n": n[:len(n)/2]}),
		"RSA of 16384 bits":              changed(rsa, map[string]any{"n": strings.Repeat(n[:340], 8) + "_w"}),
		"RSA with an even modulus":       changed(rsa, map[string]any{"n": n[:len(n)-2] + "AA"}),
		"RSA with exponent 1":            changed(rsa, map[string]any{"e": "AQ"}),
		"RSA with exponent 0":            changed(rsa, map[string]any{"e": "AA"}),
		"RSA without exponent":           changed(rsa, map[string]any{"e": nil}),
		"RSA with a huge exponent":       changed(rsa, map[string]any{"e": "AQAAAAAB"}),
		"Ed25519 that is too short":      changed(ed, map[string]any{"x": ed.JWK()["x"].(string)[:40]}),
		"X25519":                         changed(ed, map[string]any{"crv": "X25519"}),
		"members of other kinds":         changed(ec, map[string]any{"kid": 7}),
		"nothing":                        {},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(t, jwk, good.JWK())
			assert.Equal(t, 1, set.Len())
			tokens := identity.NewTokens(identity.Config{Keys: set, Audience: identitytest.Audience})
			assertAccepted(t, tokens, good.Sign(t, identitytest.Claims("alice")))
		})
	}
	assert.Equal(t, 3, setOf(t, ec.JWK(), changed(rsa, map[string]any{"key_ops": []string{"verify"}}), ed.JWK()).Len())
}

func TestWhatIsNoKeySetIsNotRead(t *testing.T) {
	for _, text := range []string{"", "x", "null", "[]", "{}", `{"keys":{}}`, `{"keys":null}`, `{"keys":[`, `"keys"`} {
		set := identity.NewKeySet(func(context.Context) ([]byte, error) { return []byte(text), nil }, slog.New(slog.DiscardHandler))
		require.Error(t, set.Read(t.Context()), text)
	}
}
