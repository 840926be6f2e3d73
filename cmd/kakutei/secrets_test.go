package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
	"kakutei/interfaces/identity/identitytest"
)

// planted are secrets, by what they are. Each holds a word that stands nowhere else.
var planted = map[string]string{
	"JWT secret":        "planted-jwt-secret-planted-jwt-secret",
	"database password": "planted-database-password",
	"gateway token":     "planted-gateway-token",
	"key set's address": "planted-key-set-code",
	"idempotency key":   "planted-idempotency-key",
	"token":             "planted-token",
}

// assertKept checks that the text holds none of the secrets, and none of the further ones.
func assertKept(t *testing.T, where, text string, further ...string) {
	t.Helper()
	for name, secret := range planted {
		assert.NotContains(t, text, secret, "the %s is in %s", name, where)
		assert.NotContains(t, text, url.QueryEscape(secret), "the %s is in %s", name, where)
	}
	for _, secret := range further {
		assert.NotContains(t, text, secret, "a token is in %s", where)
	}
}

// loudProvider gives no definite answer, and tells everything that it was told.
func loudProvider(t *testing.T) string {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, "%v %s", r.Header, body)
	}))
	t.Cleanup(provider.Close)
	return provider.URL
}

func TestNoSecretIsInTheLogOrInAnAnswer(t *testing.T) {
	database, err := url.Parse(pgtest.Empty(t))
	require.NoError(t, err)
	database.User = url.UserPassword(database.User.Username(), planted["database password"])
	for _, level := range []string{"debug", "info", "warn", "error"} {
		t.Run(level, func(t *testing.T) {
			r := serving(t, map[string]string{
				"KAKUTEI_DATABASE_URL": database.String(), "KAKUTEI_LOG_LEVEL": level,
				"KAKUTEI_AUTH": "jwt", "KAKUTEI_JWT_SECRET": planted["JWT secret"], "KAKUTEI_JWT_AUDIENCE": identitytest.Audience,
				"KAKUTEI_GATEWAY": loudProvider(t), "KAKUTEI_GATEWAY_TOKEN": planted["gateway token"],
				"KAKUTEI_RECOVERY_INTERVAL": "50ms", "KAKUTEI_RATE_LIMIT": "1000",
				"KAKUTEI_CORS_ORIGINS": "https://shop.example",
			})
			secret := []byte(planted["JWT secret"])
			good := identitytest.HS256(t, secret, identitytest.Claims("alice", map[string]any{"jti": planted["token"]}))
			operator := identitytest.HS256(t, secret, identitytest.Claims("olga", map[string]any{"scope": "operator"}))
			expired := identitytest.HS256(t, secret, identitytest.Claims("alice", map[string]any{"exp": 1}))
			forged := identitytest.HS256(t, []byte("another"), identitytest.Claims("alice"))
			none := identitytest.Raw(`{"alg":"none"}`, `{"sub":"`+planted["token"]+`"}`, nil)
			tokens := []string{good, operator, expired, forged, none}

			key := planted["idempotency key"]
			var answers strings.Builder
			say := func(token, method, path, key, body string) answered {
				a, err := r.sendAs(token, method, path, key, body)
				require.NoError(t, err)
				if !strings.HasPrefix(path, "/api/idempotency-keys/") && path != "/api/audit" && path != "/api/unresolved" {
					answers.WriteString(a.body)
				}
				return a
			}
			placed := say(good, http.MethodPost, "/api/orders", key+level, `{"currency":"JPY","lines":[{"sku":"tea","name":"tea","quantity":2,"unitPrice":500}]}`)
			require.Equal(t, http.StatusCreated, placed.status, placed.body)
			order := orderIn(placed.body)
			unknown := say(good, http.MethodPost, order+"/confirm-payment", key+level, thousand)
			require.Equal(t, http.StatusServiceUnavailable, unknown.status, unknown.body)
			say(good, http.MethodPost, order+"/confirm-payment", key+level, `{"amount":1,"currency":"JPY"}`)
			say(good, http.MethodPost, order+"/confirm-payment", key+level+" \"", thousand)
			say(good, http.MethodPost, order+"/confirm-payment", key+level, `{"`+planted["token"])
			say(good, http.MethodGet, "/api/idempotency-keys/"+key+level+"?operation=ConfirmPayment", "", "")
			say(good, http.MethodGet, "/api/idempotency-keys/"+key+level+"/x", "", "")
			say(good, http.MethodGet, order+"?access_token="+planted["token"], "", "")
			for _, bad := range []string{expired, forged, none, planted["token"], planted["JWT secret"], "", good + good, good + "."} {
				require.Equal(t, http.StatusUnauthorized, say(bad, http.MethodGet, order, "", "").status)
			}
			say(operator, http.MethodGet, "/api/unresolved", "", "")
			say(operator, http.MethodGet, "/api/audit", "", "")
			scope := `{"operation":"ConfirmPayment","actor":"alice","idempotencyKey":"` + key + level + `"`
			say(operator, http.MethodPost, "/api/unresolved/release", "", scope+"}")
			resolve := scope + `,"outcome":"not_charged","note":"rang them up"}`
			require.Eventually(t, func() bool { // the recovery may be at it
				a, err := r.sendAs(operator, http.MethodPost, "/api/unresolved/resolve", "", resolve)
				return err == nil && strings.Contains(a.body, `"unavailable"`)
			}, soon, 20*time.Millisecond, "the list cannot be read")

			r.stop()
			log := r.stderr.String() + r.stdout.String()
			if level == "debug" {
				require.Contains(t, log, "the signature is not valid", "or nothing was logged at all")
				require.Contains(t, log, "outcome_unknown")
			}
			assertKept(t, "the log", log, tokens...)
			assertKept(t, "an answer", strings.ReplaceAll(answers.String(), key+level, "") /* an order's key is the client's to read */, tokens...)
		})
	}
}

func TestNoSecretIsInAnErrorAtTheStart(t *testing.T) {
	away := "postgres://shop:" + planted["database password"] + "@127.0.0.1:1/shop"
	for name, env := range map[string]map[string]string{
		"a database that is away":     {"KAKUTEI_DATABASE_URL": away},
		"a database of another kind":  {"KAKUTEI_DATABASE_URL": strings.Replace(away, "postgres:", "mysql:", 1)},
		"an address that is broken":   {"KAKUTEI_DATABASE_URL": strings.Replace(away, "127", "%zz", 1)},
		"a setting that is none":      {"KAKUTEI_DATABASE_URL": away + "?sslmode=" + planted["token"]},
		"a host with a blank":         {"KAKUTEI_DATABASE_URL": strings.Replace(away, "127", "1 27", 1)},
		"a short secret":              {"KAKUTEI_DATABASE_URL": away, "KAKUTEI_JWT_SECRET": planted["token"]},
		"a secret and no audience":    {"KAKUTEI_DATABASE_URL": away, "KAKUTEI_AUTH": "jwt", "KAKUTEI_JWT_SECRET": planted["JWT secret"]},
		"a secret and a key set":      {"KAKUTEI_AUTH": "jwt", "KAKUTEI_JWT_SECRET": planted["JWT secret"], "KAKUTEI_JWKS_URL": "https://login.example/"},
		"a key set without audience":  {"KAKUTEI_AUTH": "jwt", "KAKUTEI_JWKS_URL": "https://login.example/?code=" + planted["key set's address"]},
		"a key set behind a password": {"KAKUTEI_JWKS_URL": "https://me:" + planted["key set's address"] + "@login.example/"},
		"a key set of another kind":   {"KAKUTEI_JWKS_URL": "ftp://login.example/?code=" + planted["key set's address"]},
		"a token with a blank":        {"KAKUTEI_GATEWAY_TOKEN": planted["gateway token"] + " x"},
		"a provider with a password":  {"KAKUTEI_GATEWAY": "https://me:" + planted["gateway token"] + "@provider.example"},
	} {
		for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}, {"sweep"}, {"stuck"}, {"reconcile"}, {"token", "--actor", ""}} {
			t.Run(name+", "+command[0], func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				env := withDefault(env, "KAKUTEI_DATABASE_URL", away)
				env["KAKUTEI_LOG_LEVEL"] = "debug"
				code := run(t.Context(), program{
					args: command, env: func(name string) string { return env[name] }, stdin: strings.NewReader(""),
					stdout: &stdout, stderr: &stderr, notify: func(chan<- os.Signal) {}, patience: time.Millisecond,
				})
				assert.Equal(t, 1, code, stderr.String())
				assert.NotEmpty(t, stderr.String())
				assertKept(t, "stderr", stderr.String())
				assert.Empty(t, stdout.String())
			})
		}
	}
}

func withDefault(env map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for n, v := range env {
		all[n] = v
	}
	return all
}
