package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/identity/identitytest"
)

const jwtKey = "thirty-two bytes or more, for tests only"

// jwtWith is jwt mode on a store in memory, with these settings, given as NAME, value, NAME, value …
func jwtWith(settings ...string) map[string]string {
	env := map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_AUTH": "jwt"}
	for i := 0; i < len(settings); i += 2 {
		env[settings[i]] = settings[i+1]
	}
	return env
}

func keyFile(t *testing.T, keys ...identitytest.Key) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	writeKeys(t, path, keys...)
	return path
}

func writeKeys(t *testing.T, path string, keys ...identitytest.Key) {
	t.Helper()
	var jwks []map[string]any
	for _, k := range keys {
		jwks = append(jwks, k.JWK())
	}
	require.NoError(t, os.WriteFile(path, identitytest.Set(jwks...), 0o600))
}

func TestJWTModeNeedsExactlyOneSourceOfKeysAndAnAudienceForAKeySet(t *testing.T) {
	file := keyFile(t, identitytest.NewKey(t, "k", "ES256"))
	const url = "https://login.example/keys"
	for name, c := range map[string]struct {
		env  map[string]string
		says string
	}{
		"no source": {
			jwtWith(), "KAKUTEI_AUTH=jwt needs exactly one of KAKUTEI_JWT_SECRET, KAKUTEI_JWKS_FILE and KAKUTEI_JWKS_URL; there is none",
		},
		"an audience alone": {jwtWith("KAKUTEI_JWT_AUDIENCE", "kakutei"), "there is none"},
		"secret and file": {
			jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_JWKS_FILE", file, "KAKUTEI_JWT_AUDIENCE", "kakutei"),
			"not KAKUTEI_JWT_SECRET and KAKUTEI_JWKS_FILE",
		},
		"secret and URL": {
			jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_JWKS_URL", url, "KAKUTEI_JWT_AUDIENCE", "kakutei"),
			"not KAKUTEI_JWT_SECRET and KAKUTEI_JWKS_URL",
		},
		"file and URL": {
			jwtWith("KAKUTEI_JWKS_FILE", file, "KAKUTEI_JWKS_URL", url, "KAKUTEI_JWT_AUDIENCE", "kakutei"),
			"not KAKUTEI_JWKS_FILE and KAKUTEI_JWKS_URL",
		},
		"all of them": {
			jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_JWKS_FILE", file, "KAKUTEI_JWKS_URL", url),
			"not KAKUTEI_JWT_SECRET and KAKUTEI_JWKS_FILE and KAKUTEI_JWKS_URL",
		},
		"file without audience": {
			jwtWith("KAKUTEI_JWKS_FILE", file), "KAKUTEI_JWT_AUDIENCE is required with KAKUTEI_JWKS_FILE",
		},
		"URL without audience": {
			jwtWith("KAKUTEI_JWKS_URL", url), "KAKUTEI_JWT_AUDIENCE is required with KAKUTEI_JWKS_URL",
		},
		"a failpoint": {
			jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_FAILPOINT", "after-commit"), "KAKUTEI_FAILPOINT",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, c.env, "serve")
			assert.Equal(t, 1, got.code)
			assert.Empty(t, got.stdout)
			assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
			assert.Contains(t, got.stderr, c.says)
			assert.NotContains(t, got.stderr, jwtKey)
		})
	}
}

func TestOriginsAreComparedAsBrowsersWriteThem(t *testing.T) {
	c := readAs(t, map[string]string{
		"KAKUTEI_CORS_ORIGINS": "https://Shop.Example:443, http://localhost:80,http://[::1]:3000 ,https://a.example:80",
	})
	assert.Equal(t, []string{"https://shop.example", "http://localhost", "http://[::1]:3000", "https://a.example:80"}, c.limits.origins)
}

func TestATokenIsMintedForTheServiceThatHasTheSecret(t *testing.T) {
	env := jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_JWT_AUDIENCE", "shop", "KAKUTEI_JWT_ISSUER", "me")
	r := serving(t, env)
	mint := func(args ...string) string {
		got := alone(t, env, append([]string{"token"}, args...)...)
		require.Equal(t, 0, got.code, got.stderr)
		require.Empty(t, got.stderr)
		require.Regexp(t, `\A[\w-]+\.[\w-]+\.[\w-]+\n\z`, got.stdout)
		return strings.TrimSpace(got.stdout)
	}
	as := func(token, method, path, body string) answered {
		a, err := r.sendAs(token, method, path, "key-1", body)
		require.NoError(t, err)
		return a
	}
	const tea = `{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}`
	customer := mint("--actor", "alice", "--companies", "company-1,company-2")
	placed := as(customer, http.MethodPost, "/api/orders", tea)
	require.Equal(t, http.StatusCreated, placed.status, placed.body)
	assert.Contains(t, placed.body, `"customerId":"alice"`)
	posting := `{"companyId":"company-2","sourceDocumentType":"sales_invoice","sourceDocumentId":"1","serviceDate":"2025-01-29","total":1}`
	assert.Equal(t, http.StatusCreated, as(customer, http.MethodPost, "/api/journal-entries/post", posting).status)
	assert.Equal(t, http.StatusForbidden, as(customer, http.MethodGet, "/api/unresolved", "").status)
	operator := mint("--actor", "olga", "--scope", "openid operator", "--ttl", "5m")
	assert.Equal(t, http.StatusOK, as(operator, http.MethodGet, "/api/unresolved", "").status)
	assert.Equal(t, http.StatusForbidden, as(operator, http.MethodPost, "/api/journal-entries/post", posting).status)

	for _, token := range []string{"demo-alice", "demo-operator", ""} {
		assert.Equal(t, http.StatusUnauthorized, as(token, http.MethodPost, "/api/orders", tea).status)
	}
	for name, value := range map[string]string{
		"KAKUTEI_JWT_SECRET": jwtKey + ".", "KAKUTEI_JWT_AUDIENCE": "", "KAKUTEI_JWT_ISSUER": "you",
	} {
		other := maps.Clone(env)
		other[name] = value
		got := alone(t, other, "token", "--actor", "alice")
		require.Equal(t, 0, got.code, got.stderr)
		assert.Equal(t, http.StatusUnauthorized, as(strings.TrimSpace(got.stdout), http.MethodPost, "/api/orders", tea).status, name)
	}
	r.stop()
}

func TestATokenThatCannotBeMintedIsOneLineOnStderr(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		says string
	}{
		"no secret":      {nil, []string{"--actor", "alice"}, "KAKUTEI_JWT_SECRET"},
		"a short secret": {map[string]string{"KAKUTEI_JWT_SECRET": "s3cret"}, []string{"--actor", "alice"}, "KAKUTEI_JWT_SECRET"},
		"no actor":       {jwtWith("KAKUTEI_JWT_SECRET", jwtKey), nil, "--actor"},
		"no such actor":  {jwtWith("KAKUTEI_JWT_SECRET", jwtKey), []string{"--actor", "a|b"}, "actor"},
		"an empty company": {
			jwtWith("KAKUTEI_JWT_SECRET", jwtKey), []string{"--actor", "alice", "--companies", "a,,b"}, "company",
		},
		"no time": {jwtWith("KAKUTEI_JWT_SECRET", jwtKey), []string{"--actor", "alice", "--ttl", "0s"}, "--ttl"},
	} {
		got := alone(t, c.env, append([]string{"token"}, c.args...)...)
		assert.Equal(t, 1, got.code, name)
		assert.Empty(t, got.stdout, name)
		assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
		assert.Contains(t, got.stderr, c.says, name)
		assert.NotContains(t, got.stderr, "s3cret")
	}
}

func TestDemoModeWarnsOfASecretThatVerifiesNothing(t *testing.T) {
	r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_JWT_SECRET": jwtKey})
	assert.Regexp(t, `"level":"WARN","msg":"NO TOKEN IS VERIFIED: KAKUTEI_AUTH is demo","set":"KAKUTEI_JWT_SECRET"`, r.stderr.String())
	assert.NotContains(t, r.stderr.String(), jwtKey)
	r.stop()
}

func TestJWTModeMayListenEverywhereUnderAnyName(t *testing.T) {
	r := serving(t, jwtWith("KAKUTEI_JWT_SECRET", jwtKey), func(p *program) {
		p.args = []string{"serve", "--listen", "0.0.0.0:0"}
	})
	assert.NotContains(t, r.stderr.String(), "EXPOSED")
	r.stdout.await(t, "in the place of YOUR-TOKEN")
	assert.NotContains(t, r.stdout.String(), "demo-alice", "the printed lines hold no token that is not accepted")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"/healthz", nil)
	require.NoError(t, err)
	req.Host = "shop.example"
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, http.StatusOK, res.StatusCode)
}

// asked is the status of a look at an order that is not there: 404 for whoever is believed.
func (r *running) asked(token string) int {
	r.t.Helper()
	a, err := r.sendAs(token, http.MethodGet, "/api/orders/0", "", "")
	require.NoError(r.t, err)
	return a.status
}

func TestKeysInAFileAreRotatedByWritingIt(t *testing.T) {
	one, two := identitytest.NewKey(t, "1", "ES256"), identitytest.NewKey(t, "2", "EdDSA")
	path := keyFile(t, one)
	r := serving(t, jwtWith("KAKUTEI_JWKS_FILE", path, "KAKUTEI_JWT_AUDIENCE", identitytest.Audience))
	first, second := one.Sign(t, identitytest.Claims("alice")), two.Sign(t, identitytest.Claims("alice"))
	assert.Equal(t, http.StatusNotFound, r.asked(first))
	writeKeys(t, path, one, two)
	assert.Equal(t, http.StatusNotFound, r.asked(second), "an unknown key has the file read again")
	assert.Equal(t, http.StatusNotFound, r.asked(first))
	r.stop()
}

func TestAProviderThatIsAwayAtTheStartIsWaitedForByTokensAlone(t *testing.T) {
	key := identitytest.NewKey(t, "1", "RS256")
	var up atomic.Bool
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(identitytest.Set(key.JWK()))
	}))
	t.Cleanup(provider.Close)
	r := serving(t, jwtWith("KAKUTEI_JWKS_URL", provider.URL+"/keys?code=s3cret", "KAKUTEI_JWT_AUDIENCE", identitytest.Audience))
	assert.Contains(t, r.stderr.String(), "no token is accepted until it can")
	assert.Equal(t, http.StatusOK, r.get("/readyz").status)
	up.Store(true)
	assert.Equal(t, http.StatusNotFound, r.asked(key.Sign(t, identitytest.Claims("alice"))))
	assert.Equal(t, http.StatusUnauthorized, r.asked("demo-alice"))
	assert.NotContains(t, r.stderr.String(), "s3cret")
	r.stop()
}
