package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contract is the table of docs/contract.md, as far as its variables exist: names and defaults. Empty is empty.
var contract = map[string]string{
	"KAKUTEI_LISTEN":                "127.0.0.1:8080",
	"KAKUTEI_DATABASE_URL":          "sqlite:kakutei.db",
	"KAKUTEI_DB_POOL":               "16",
	"KAKUTEI_LOCK_TIMEOUT":          "1s",
	"KAKUTEI_AUTH":                  "demo",
	"KAKUTEI_DEMO_EXPOSED":          "",
	"KAKUTEI_JWT_SECRET":            "",
	"KAKUTEI_JWKS_FILE":             "",
	"KAKUTEI_JWKS_URL":              "",
	"KAKUTEI_JWT_AUDIENCE":          "",
	"KAKUTEI_JWT_ISSUER":            "",
	"KAKUTEI_RATE_LIMIT":            "0",
	"KAKUTEI_MAX_IN_FLIGHT":         "256",
	"KAKUTEI_CORS_ORIGINS":          "",
	"KAKUTEI_GATEWAY":               "simulator",
	"KAKUTEI_GATEWAY_TIMEOUT":       "10s",
	"KAKUTEI_GATEWAY_KEY_RETENTION": "12h",
	"KAKUTEI_GATEWAY_TOKEN":         "",
	"KAKUTEI_SIMULATOR_BOOK":        "store",
	"KAKUTEI_LEASE":                 "30s",
	"KAKUTEI_RETENTION":             "24h",
	"KAKUTEI_AUDIT_RETENTION":       "8760h",
	"KAKUTEI_SWEEP_INTERVAL":        "1m",
	"KAKUTEI_RECOVERY_INTERVAL":     "10s",
	"KAKUTEI_RECONCILE_INTERVAL":    "0",
	"KAKUTEI_SHUTDOWN_GRACE":        "15s",
	"KAKUTEI_COMPANY_ID":            "shop",
	"KAKUTEI_TIME_ZONE":             "Asia/Tokyo",
	"KAKUTEI_LOG_FORMAT":            "", // text on a terminal, else json
	"KAKUTEI_LOG_LEVEL":             "info",
	"KAKUTEI_FAILPOINT":             "",
	"OTEL_EXPORTER_OTLP_ENDPOINT":   "", // not the service's own: OpenTelemetry's
}

func TestTheVariablesAreThoseOfTheContractWithItsDefaults(t *testing.T) {
	offered := map[string]string{}
	for _, c := range commands() {
		for _, v := range c.variables {
			if !v.option {
				offered[v.name] = v.initial
			}
		}
	}
	assert.Equal(t, contract, offered)
}

func TestOnlySecretsTheFailpointAndTheVariablesOfOthersHaveNoFlag(t *testing.T) {
	for _, c := range commands() {
		for _, v := range c.variables {
			secret := v.name == "KAKUTEI_GATEWAY_TOKEN" || v.name == "KAKUTEI_JWT_SECRET"
			assert.Equal(t, secret, v.secret, v.name)
			assert.Equal(t, secret || v.name == "KAKUTEI_FAILPOINT" || strings.HasPrefix(v.name, "OTEL_"), !v.flagged(), v.name)
		}
	}
	for _, flag := range []string{"--gateway-token", "--jwt-secret"} {
		for _, args := range [][]string{{flag, "s3cret"}, {flag + "=s3cret"}} {
			got := call(t, nil, append([]string{"serve"}, args...)...)
			assert.Equal(t, 1, got.code)
			assert.Contains(t, got.stderr, "unknown flag "+flag)
			assert.NotContains(t, got.stderr, "s3cret")
		}
	}
}

func TestABadValueStopsTheStartWithOneLineThatNamesTheVariable(t *testing.T) {
	bad := map[string][]string{
		"KAKUTEI_LISTEN": {
			"8080", "localhost", "localhost:http-alt", "localhost:65536", "localhost:-1", "a b:80", "[::1:80",
			"0.0.0.0:8080", ":8080", "[::]:8080", "192.0.2.1:8080", "example.org:8080", "127.0.0.1.example.org:8080",
		},
		"KAKUTEI_DATABASE_URL": {
			"mysql://localhost/shop", "kakutei.db", "sqlite", "sqlite:", "sqlite::memory:", "sqlite://kakutei.db",
			"memory", "memory:shop", "postgres:shop", "postgres", "postgres://%zz/shop", "POSTGRES://localhost/shop",
			"file:kakutei.db", " memory:",
		},
		"KAKUTEI_DB_POOL":      {"0", "-1", "many", "1.5", "1e3", "99999999999"},
		"KAKUTEI_LOCK_TIMEOUT": {"0", "0s", "-1s", "1", "soon"},
		"KAKUTEI_AUTH":         {"jwt", "none", "DEMO", "JWT"},
		"KAKUTEI_DEMO_EXPOSED": {"no", "true", "1", "YES"},
		"KAKUTEI_JWT_SECRET":   {"s3cret", strings.Repeat("x", 31)},
		"KAKUTEI_JWKS_FILE":    {"/nowhere/keys.json", ".", "config_test.go"},
		"KAKUTEI_JWKS_URL": {
			"login.example/keys", "ftp://login.example/keys", "https://", "https:keys", "https://me:pw@login.example/keys",
			"http://%zz/keys", "https://login.example/keys#1", "/keys", "file:///keys",
		},
		"KAKUTEI_JWT_AUDIENCE":  {"two words", "line\nbreak", "煎茶", strings.Repeat("a", 257)},
		"KAKUTEI_JWT_ISSUER":    {"two words", " https://login.example", strings.Repeat("a", 257)},
		"KAKUTEI_RATE_LIMIT":    {"-1", "many", "1.5", "1e3", "10/s", "1000001", "99999999999"},
		"KAKUTEI_MAX_IN_FLIGHT": {"0", "-1", "many", "1.5", "99999999999"},
		"KAKUTEI_CORS_ORIGINS": {
			"*", "null", "shop.example", "https://shop.example/", "https://shop.example/pay", "https://shop.example?x",
			"https://*.shop.example", "https://me@shop.example", "https://", "ftp://shop.example", "https://shop.example,",
			"https://a.example https://b.example", "https://a.example;https://b.example", "https://茶.example",
			"https://shop.example:port",
		},
		"KAKUTEI_GATEWAY":               {"provider", "ftp://provider", "http://", "https://me:pw@provider", "http://p?x=1"},
		"KAKUTEI_GATEWAY_TIMEOUT":       {"0", "-10s", "10"},
		"KAKUTEI_GATEWAY_KEY_RETENTION": {"0", "-12h", "12 h"},
		"KAKUTEI_GATEWAY_TOKEN":         {"two words", "line\nbreak", "umlaut-ä"},
		"KAKUTEI_SIMULATOR_BOOK":        {"sqlite:book.db", "memory", "none"},
		"KAKUTEI_LEASE":                 {"0", "-30s", "long", "10s", "9.999s"}, // the gateway timeout is 10s
		"KAKUTEI_RETENTION":             {"0", "-24h", "1d"},
		"KAKUTEI_AUDIT_RETENTION":       {"0", "-8760h", "1y", "8760"},
		"KAKUTEI_SWEEP_INTERVAL":        {"-1m", "1", "never"},
		"KAKUTEI_RECOVERY_INTERVAL":     {"-10s", "10", "never"},
		"KAKUTEI_RECONCILE_INTERVAL":    {"-1h", "1", "daily"},
		"KAKUTEI_SHUTDOWN_GRACE":        {"0", "-15s", "15"},
		"KAKUTEI_COMPANY_ID": {
			"a|b", "alice@shop", "my shop", " shop", "shop\n", "shop\x00", "会社", strings.Repeat("c", 129),
		},
		"KAKUTEI_TIME_ZONE": {
			"Tokyo", "Asia/Nowhere", "JST", "+09:00", "UTC+9", "Local", " Asia/Tokyo", "../Asia/Tokyo", "/etc/localtime",
		},
		"KAKUTEI_LOG_FORMAT": {"xml", "JSON"},
		"KAKUTEI_LOG_LEVEL":  {"loud", "0", "INFO"},
		"KAKUTEI_FAILPOINT":  {"anywhere", "After-Commit", "1", "after-commit,after-charge"},
		"OTEL_EXPORTER_OTLP_ENDPOINT": {
			"localhost:4318", "collector", "grpc://localhost:4317", "http://", "http://%zz", "/v1/traces",
		},
	}
	require.Len(t, bad, len(contract), "every variable can have a bad value")
	for name, values := range bad {
		for _, value := range values {
			t.Run(name+"="+value, func(t *testing.T) {
				got := call(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:", name: value}, "serve")
				assert.Equal(t, 1, got.code)
				assert.Empty(t, got.stdout)
				assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
				assert.Contains(t, got.stderr, name)
			})
		}
	}
}

func TestAGoodValueIsTaken(t *testing.T) {
	good := map[string][]string{
		"KAKUTEI_LISTEN": {"127.0.0.1:0", "127.9.9.9:80", "[::1]:65535", "localhost:0", "LOCALHOST:0"},
		"KAKUTEI_DATABASE_URL": {
			"memory:", "sqlite:shop.db", "sqlite:/var/lib/shop.db", "postgres://db/shop", "postgresql://me:pw@db:5432/shop",
		},
		"KAKUTEI_DB_POOL":         {"1", "100"},
		"KAKUTEI_LOCK_TIMEOUT":    {"1ns", "8760h"},
		"KAKUTEI_DEMO_EXPOSED":    {"yes"},
		"KAKUTEI_JWT_SECRET":      {strings.Repeat("x", 32), "with blanks and\nline breaks, as bytes are"},
		"KAKUTEI_JWKS_URL":        {"https://login.example/keys?tenant=1", "http://127.0.0.1:8090/keys"},
		"KAKUTEI_JWT_AUDIENCE":    {"kakutei", "https://shop.example/api"},
		"KAKUTEI_RATE_LIMIT":      {"0", "1", "1000000"},
		"KAKUTEI_MAX_IN_FLIGHT":   {"1", "100000"},
		"KAKUTEI_CORS_ORIGINS":    {"https://shop.example", "https://shop.example, http://localhost:3000,http://[::1]:80"},
		"KAKUTEI_GATEWAY":         {"http://provider:8081", "https://provider/v1"},
		"KAKUTEI_GATEWAY_TOKEN":   {"s3cret"},
		"KAKUTEI_SIMULATOR_BOOK":  {"memory:"},
		"KAKUTEI_LEASE":           {"10001ms"},
		"KAKUTEI_SWEEP_INTERVAL":  {"0", "0s"},
		"KAKUTEI_AUDIT_RETENTION": {"1ns", "876000h"},
		"KAKUTEI_COMPANY_ID":      {"0", "Shop_1/x", "!#$%&'()*+,-./:;<=>?[]^_`{}~", strings.Repeat("c", 128)},
		"KAKUTEI_TIME_ZONE":       {"UTC", "Etc/GMT+12", "America/Argentina/Buenos_Aires", "Pacific/Kiritimati"},
		"KAKUTEI_LOG_FORMAT":      {"text", "json"},
		"KAKUTEI_LOG_LEVEL":       {"debug", "warn", "error"},
	}
	for name, values := range good {
		for _, value := range values {
			t.Run(name+"="+value, func(t *testing.T) {
				c := readAs(t, map[string]string{name: value})
				assert.NoError(t, c.check())
			})
		}
	}
}

func TestAnEmptyValueIsTheDefault(t *testing.T) {
	env := map[string]string{}
	for name := range contract {
		env[name] = ""
	}
	c := readAs(t, env)
	assert.Equal(t, "127.0.0.1:8080", c.access.listen)
	assert.Equal(t, "sqlite:kakutei.db", c.store.url)
	assert.Equal(t, 16, c.store.pool)
	assert.Equal(t, 30*time.Second, c.work.lease)
	assert.Equal(t, 365*24*time.Hour, c.work.auditFor)
	assert.Equal(t, "shop", c.books.company)
	assert.Equal(t, "Asia/Tokyo", c.books.zone.String())
	assert.Empty(t, c.gateway.token)
}

func TestAFlagOverridesTheEnvironment(t *testing.T) {
	c := readAs(t, map[string]string{
		"KAKUTEI_LISTEN": "127.0.0.1:1", "KAKUTEI_DB_POOL": "many", "KAKUTEI_LEASE": "1m", "KAKUTEI_RETENTION": "1h",
	}, "--listen", "127.0.0.1:2", "--db-pool=3", "--lease", "")
	assert.Equal(t, "127.0.0.1:2", c.access.listen)
	assert.Equal(t, 3, c.store.pool, "what is overridden is not read")
	assert.Equal(t, 30*time.Second, c.work.lease, "an empty flag is the default")
	assert.Equal(t, time.Hour, c.work.retention)
}

func TestABadFlagIsNamedAsAFlag(t *testing.T) {
	got := call(t, map[string]string{"KAKUTEI_DATABASE_URL": "memory:"}, "serve", "--lock-timeout", "soon")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, `kakutei: --lock-timeout (KAKUTEI_LOCK_TIMEOUT): "soon" is no duration like 500ms, 10s or 24h`+"\n",
		got.stderr)
}

func TestALeaseThatEndsBeforeTheProviderAnswersNamesBothVariables(t *testing.T) {
	got := call(t, map[string]string{
		"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_LEASE": "5s", "KAKUTEI_GATEWAY_TIMEOUT": "5s",
	}, "serve")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "kakutei: KAKUTEI_LEASE (5s) must be longer than KAKUTEI_GATEWAY_TIMEOUT (5s)\n", got.stderr)
}

func TestARefusedValueThatMayHoldASecretIsNotRepeated(t *testing.T) {
	for name, value := range map[string]string{
		"KAKUTEI_GATEWAY_TOKEN": "s3cret value",
		"KAKUTEI_GATEWAY":       "https://shop:s3cret@provider",
		"KAKUTEI_DATABASE_URL":  "mysql://shop:s3cret@localhost/shop",
	} {
		got := call(t, map[string]string{name: value}, "serve")
		assert.Equal(t, 1, got.code, name)
		assert.NotContains(t, got.stderr, "s3cret", name)
	}
	got := call(t, map[string]string{"KAKUTEI_DATABASE_URL": "postgres://shop:s3cret@%zz/shop"}, "serve")
	assert.Equal(t, 1, got.code)
	assert.NotContains(t, got.stderr, "s3cret")
}

func TestACommandReadsOnlyItsOwnVariables(t *testing.T) {
	got := call(t, map[string]string{"KAKUTEI_LEASE": "long", "KAKUTEI_DATABASE_URL": "mysql:"}, "version")
	assert.Equal(t, 0, got.code, got.stderr)
}

// readAs is what serve would work with.
func readAs(t *testing.T, env map[string]string, flags ...string) serveConfig {
	t.Helper()
	var read serveConfig
	only := command{name: "serve", variables: read.variables(), run: func(context.Context, program) error { return nil }}
	p := program{args: append([]string{"serve"}, flags...), env: func(name string) string { return env[name] }}
	require.NoError(t, execute(t.Context(), p, []command{only}))
	return read
}
