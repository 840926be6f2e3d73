package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	stdlog "log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gormstore/pgtest"
)

// allPassed is how a run ends in which every scenario has run and passed.
var allPassed = regexp.MustCompile(`\n(\d+) scenarios ran: (\d+) passed, 0 failed; \d+ steps\.\n\z`)

func TestEveryBuiltInScenarioPassesOnAServiceOfTheRunnersOwn(t *testing.T) {
	for name, args := range map[string]func(*testing.T) []string{
		"memory, as it is without arguments": func(*testing.T) []string { return nil },
		"SQLite":                             func(*testing.T) []string { return []string{"--store", "sqlite", "--format", "progress"} },
		"PostgreSQL": func(t *testing.T) []string {
			return []string{"--store", pgtest.Empty(t), "--format", "progress"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := alone(t, nil, append([]string{"scenario"}, args(t)...)...)
			require.Equal(t, 0, got.code, got.stdout)
			assert.Empty(t, got.stderr)
			ran := allPassed.FindStringSubmatch(got.stdout)
			require.NotNil(t, ran, got.stdout)
			assert.Equal(t, ran[1], ran[2], "every scenario has run")
			many, err := strconv.Atoi(ran[1])
			require.NoError(t, err)
			assert.Greater(t, many, 100)
		})
	}
}

func TestAReportReadsLikeTheScenarios(t *testing.T) {
	t.Parallel()
	got := alone(t, map[string]string{"KAKUTEI_DATABASE_URL": "nonsense"}, "scenario", "--tags", "@concurrent && @payments")
	require.Equal(t, 0, got.code, got.stdout)
	assert.Contains(t, got.stdout, "Scenario: A double click")
	assert.Contains(t, got.stdout, "    When Alice double-clicks\n")
	assert.Contains(t, got.stdout, "シナリオ: ダブルクリック")
	assert.Contains(t, got.stdout, "    もし アリスがダブルクリックする\n")
}

// quietService is a real service that does nothing by itself, in demo mode unless a setting says otherwise, with a
// provider whose list can be read.
func quietService(t *testing.T, settings ...map[string]string) (base, provider string) {
	t.Helper()
	book := httptest.NewServer(gateway.NewHandler(gateway.HandlerConfig{
		Book: gateway.NewMemoryBook(), Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(book.Close)
	env := map[string]string{
		"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_GATEWAY": book.URL, "KAKUTEI_RECOVERY_INTERVAL": "0",
	}
	for _, more := range settings {
		maps.Copy(env, more)
	}
	return serving(t, env).base, book.URL
}

func TestOnABlackBoxWhatNeedsTheInsideIsNotApplicableAndCounted(t *testing.T) {
	t.Parallel()
	base, provider := quietService(t)
	got := alone(t, nil, "scenario", "--target", base, "--gateway", provider, "--lang", "en", "--format", "progress")
	require.Equal(t, 0, got.code, got.stdout)
	said := regexp.MustCompile(`\n(\d+) scenarios ran: (\d+) passed, 0 failed; \d+ steps\.\n` +
		`Not applicable here: (\d+) scenarios, and the end of \d+ that passed as far as it can be seen from outside; \d+ steps in all\.\n` +
		`  (\d+) ended because it takes a service that the runner has started itself\n\z`).FindStringSubmatch(got.stdout)
	require.NotNil(t, said, got.stdout)
	assert.Equal(t, said[1], said[2])
	inside := strings.Count(got.stdout, "not applicable")
	assert.Zero(t, inside, "the report proper does not repeat it")
	assert.NotEqual(t, "0", said[3])
}

func TestARunInWhichNothingCouldRunIsNoSuccess(t *testing.T) {
	t.Parallel()
	base, _ := quietService(t)
	got := alone(t, nil, "scenario", "--target", base, "--tags", "@expiry", "--lang", "en", "--format", "progress")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "0 scenarios ran: 0 passed, 0 failed; ")
	assert.Equal(t, "kakutei: no scenario could be run here\n", got.stderr)
}

func TestWithoutTheProvidersListHowOftenAShopperIsChargedIsNotApplicable(t *testing.T) {
	t.Parallel()
	base, _ := quietService(t)
	got := alone(t, nil, "scenario", "--target", base, "--lang", "ja", "--tags", "@normal && @payments", "--format", "progress")
	require.Equal(t, 0, got.code, got.stdout)
	assert.Contains(t, got.stdout, "2 scenarios ran: 2 passed, 0 failed;")
	assert.Contains(t, got.stdout, "and the end of 2 that passed as far as it can be seen from outside; 2 steps in all.\n"+
		"  2 ended because only the provider knows its charges (--gateway URL)\n")
}

// through is a service behind a proxy that changes what goes by.
func through(t *testing.T, base string, request func(*http.Request), answer func(*http.Response) error) string {
	t.Helper()
	target, err := url.Parse(base)
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if request != nil {
				request(r.Out)
			}
		},
		ModifyResponse: answer, ErrorLog: stdlog.New(io.Discard, "", 0),
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// failedScenarios are the names of those that fail in a run.
func failedScenarios(t *testing.T, args ...string) []string {
	t.Helper()
	got := alone(t, nil, slices.Concat([]string{"scenario", "--format", "junit", "--lang", "en"}, args)...)
	var document struct {
		Cases []struct {
			Name   string `xml:"name,attr"`
			Status string `xml:"status,attr"`
		} `xml:"testsuite>testcase"`
	}
	require.NoError(t, xml.Unmarshal([]byte(got.stdout), &document), got.stdout)
	var failed []string
	for _, c := range document.Cases {
		if c.Status == "failed" {
			failed = append(failed, c.Name)
		}
	}
	slices.Sort(failed)
	assert.Equal(t, len(failed) > 0, got.code == 1, got.stderr)
	return failed
}

// paddedReplay has a replay be one byte longer than the first answer.
func paddedReplay(r *http.Response) error {
	if r.Header.Get("Idempotent-Replayed") != "true" {
		return nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	text = append(text, ' ')
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

func TestABrokenServiceFailsTheScenariosThatAreAboutIt(t *testing.T) {
	t.Parallel()
	base, provider := quietService(t)
	duplicates := []string{
		"A cancellation that is sent twice is answered once", "An order that is sent twice is placed once",
		"The answer is lost on its way, and the shopper asks again", "The same request again gets the same answer",
	}
	for name, c := range map[string]struct {
		request func(*http.Request)
		answer  func(*http.Response) error
		failed  []string
	}{
		"nothing": {},
		"a replay with other bytes": {
			answer: paddedReplay,
			failed: duplicates,
		},
		"a replay that does not say so": {
			answer: func(r *http.Response) error {
				r.Header.Del("Idempotent-Replayed")
				return nil
			},
			failed: duplicates,
		},
		"every request under a key of its own": {
			request: func(r *http.Request) {
				if r.Header.Get("Idempotency-Key") != "" {
					r.Header.Set("Idempotency-Key", runName())
				}
			},
			failed: duplicates,
		},
		"keys that get lost": {
			request: func(r *http.Request) { r.Header.Del("Idempotency-Key") },
			failed:  duplicates,
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := through(t, base, c.request, c.answer)
			assert.Equal(t, c.failed,
				failedScenarios(t, "--target", at, "--gateway", provider, "--tags", "@payments && @duplicate"))
		})
	}
	t.Run("another status for a refusal", func(t *testing.T) {
		at := through(t, base, nil, func(r *http.Response) error {
			if r.StatusCode == http.StatusUnprocessableEntity {
				r.StatusCode = http.StatusBadRequest
			}
			return nil
		})
		assert.Equal(t, []string{"The amount is not the order's", "The currency is not the order's"},
			failedScenarios(t, "--target", at, "--gateway", provider, "--tags", "@answers && @payments && ~@slow"))
	})
}

func TestAFailingStepShowsTheRequestAndTheAnswerWithoutTheToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.feature")
	require.NoError(t, os.WriteFile(file, []byte(`Feature: mine
  Scenario: an unreasonable demand
    Given an order of 1,000 yen is placed
    When Alice confirms the payment of 2,000 yen
    Then the answer is 200
`), 0o600))
	got := alone(t, nil, "scenario", file)
	assert.Equal(t, 1, got.code)
	for _, part := range []string{
		"the answer is 422, not 200", "> POST /api/orders/", "> Idempotency-Key: ", `> {"amount":2000,"currency":"JPY"}`,
		"< 422 Unprocessable Entity", `"code":"amount_mismatch"`, "1 scenarios ran: 0 passed, 1 failed; 3 steps.",
	} {
		assert.Contains(t, got.stdout, part)
	}
	assert.NotContains(t, got.stdout, "demo-alice")
	assert.Equal(t, "kakutei: a scenario failed\n", got.stderr)
}

func TestWhatCannotRunIsOneClearLineAndExitCode1(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	unknown := write("unknown.feature", "Feature: f\n  Scenario: s\n    Given an order of 1,000 yen is placed\n    Then all is well\n")
	good := write("good.feature", "Feature: f\n  @mine\n  Scenario: s\n    Given an order of 1,000 yen is placed\n")
	prose := write("prose.feature", "This is no Gherkin.\n")
	marked := write("marked.feature", "\ufeffFeature: f\n  Scenario: s\n    Given an order of 1,000 yen is placed\n")
	unsaid := write("unsaid.feature", "機能: f\n  シナリオ: s\n    前提 1,000円の注文がある\n")
	empty := write("empty.feature", "")
	other := filepath.Dir(write("none/readme.txt", "nothing"))
	for name, c := range map[string]struct {
		args   []string
		stderr string
	}{
		"an unknown step": {
			[]string{unknown}, `not in the vocabulary \(see kakutei scenario steps\): .*unknown\.feature:4: all is well`,
		},
		"an unknown step in a dry run":  {[]string{"--dry-run", unknown}, `unknown\.feature:4: all is well`},
		"a missing file":                {[]string{filepath.Join(dir, "missing.feature")}, `missing\.feature" is not available`},
		"a missing file beside others":  {[]string{good, filepath.Join(dir, "missing.feature")}, `missing\.feature" is not available`},
		"no Gherkin":                    {[]string{prose}, `prose\.feature.*\(1:1\)`},
		"a byte order mark":             {[]string{marked}, `marked\.feature.*without one\)`},
		"Japanese that does not say so": {[]string{unsaid}, `unsaid\.feature.*# language: ja, or take --lang ja\)`},
		"an empty file":                 {[]string{empty}, `empty\.feature holds no scenario`},
		"a directory without features":  {[]string{other}, `none holds no scenario`},
		"tags that no scenario has":     {[]string{"--tags", "@nobodys", good}, `no scenario has such tags: @nobodys`},
		"no base URL":                   {[]string{"--target", "localhost:8080"}, `--target: "localhost:8080" is no base URL`},
		"no such store":                 {[]string{"--store", "paper"}, `--store: `},
		"no such language":              {[]string{"--lang", "fr"}, `--lang: "fr" is not "en" or "ja"`},
		"no such format":                {[]string{"--format", "html"}, `--format: "html" is not `},
		"a token of nobody":             {[]string{"--token", "secret"}, `--token: it is not ACTOR=TOKEN`},
		"a profile of nothing":          {[]string{"--profile", "draft-07"}, `--profile: needs --target URL`},
		"no such profile":               {[]string{"--profile", "draft-99", "--target", "http://127.0.0.1:1"}, `--profile: `},
	} {
		got := alone(t, nil, append([]string{"scenario"}, c.args...)...)
		assert.Equal(t, 1, got.code, name)
		assert.Regexp(t, `\Akakutei: [^\n]*`+c.stderr+`[^\n]*\n\z`, got.stderr, name)
		assert.NotContains(t, got.stderr, "secret", name)
	}
	assert.Contains(t, alone(t, nil, "scenario", unknown).stdout, "0 scenarios ran.")
}

func TestADryRunDoesNothingAndTellsHowManyCouldRun(t *testing.T) {
	got := alone(t, nil, "scenario", "--dry-run", "--target", "http://127.0.0.1:1", "--lang", "ja")
	assert.Equal(t, 0, got.code)
	assert.Regexp(t, `\A\d+ scenarios with \d+ steps could run\.\n\z`, got.stdout)
}

func TestStepsListsTheVocabularyInTheLanguageThatIsAskedFor(t *testing.T) {
	both := alone(t, nil, "scenario", "steps").stdout
	assert.Contains(t, both, "Alice double-clicks")
	assert.Contains(t, both, "アリスがダブルクリックする")
	japanese := alone(t, nil, "scenario", "steps", "--lang", "ja").stdout
	assert.NotContains(t, japanese, "Alice")
	assert.Contains(t, japanese, "アリスがダブルクリックする")
}

func TestADocumentIsAloneOnStdoutAndTheCountBesideIt(t *testing.T) {
	t.Parallel()
	got := alone(t, nil, "scenario", "--format", "cucumber", "--tags", "@defence", "--lang", "en")
	var features []struct {
		Elements []struct {
			Name string `json:"name"`
		} `json:"elements"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &features))
	require.Len(t, features, 1)
	assert.Len(t, features[0].Elements, 5)
	assert.Contains(t, got.stderr, "5 scenarios ran: 5 passed, 0 failed;")
}

// What the service believes (KAKUTEI_AUTH=jwt) is what the runner mints: the same settings go to both.
func TestEveryScenarioThatABlackBoxCanRunPassesInJWTModeToo(t *testing.T) {
	t.Parallel()
	named := jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_JWT_AUDIENCE", "kakutei", "KAKUTEI_JWT_ISSUER", "https://login.example")
	base, provider := quietService(t, named)
	got := alone(t, named, "scenario", "--target", base, "--gateway", provider, "--format", "progress", "--tags", "~@slow")
	assert.Equal(t, 0, got.code, got.stdout)
	ran := regexp.MustCompile(`\n(\d+) scenarios ran: (\d+) passed, 0 failed;`).FindStringSubmatch(got.stdout)
	require.NotNil(t, ran, got.stdout)
	assert.Equal(t, ran[1], ran[2])
	assert.Len(t, ran[1], 3, "of more than a hundred")
	assert.NotContains(t, got.stdout, "there is no token")

	unnamed := jwtWith("KAKUTEI_JWT_SECRET", jwtKey)
	base, provider = quietService(t, unnamed)
	got = alone(t, unnamed, "scenario", "--target", base, "--gateway", provider, "--format", "progress", "--tags", "@normal,@operators && ~@slow")
	assert.Equal(t, 0, got.code, got.stdout)
}

func TestATokenThatTheServiceDoesNotBelieveFailsTheRunAndIsNotShown(t *testing.T) {
	t.Parallel()
	base, provider := quietService(t, jwtWith("KAKUTEI_JWT_SECRET", jwtKey, "KAKUTEI_JWT_AUDIENCE", "kakutei"))
	for name, env := range map[string]map[string]string{
		"another secret": {"KAKUTEI_JWT_SECRET": strings.Repeat("x", 32), "KAKUTEI_JWT_AUDIENCE": "kakutei"},
		"no audience":    {"KAKUTEI_JWT_SECRET": jwtKey},
		"demo tokens":    nil,
	} {
		got := alone(t, env, "scenario", "--target", base, "--gateway", provider, "--lang", "en", "--tags", "@normal")
		assert.Equal(t, 1, got.code, name)
		assert.Contains(t, got.stdout, "401 Unauthorized", name)
		assert.NotContains(t, got.stdout+got.stderr, "eyJ", name)
	}
	short := alone(t, map[string]string{"KAKUTEI_JWT_SECRET": "too short"}, "scenario", "--target", base)
	assert.Equal(t, called{code: 1, stderr: "kakutei: KAKUTEI_JWT_SECRET: a secret has 32 bytes at least, this one has 9\n"}, short)
}

func TestWhoseTokensAreGivenActsAndTheOthersAreNotThere(t *testing.T) {
	t.Parallel()
	keys := jwtWith("KAKUTEI_JWT_SECRET", jwtKey)
	minted := alone(t, keys, "token", "--actor", "anne", "--companies", "company-7")
	require.Equal(t, 0, minted.code, minted.stderr)
	for name, c := range map[string]struct {
		settings map[string]string
		token    string
	}{
		"a demo token":             {nil, "demo-anne@company-7"},
		"a JWT of `kakutei token`": {keys, strings.TrimSpace(minted.stdout)},
	} {
		base, provider := quietService(t, c.settings)
		got := alone(t, nil, "scenario", "--target", base, "--gateway", provider, "--lang", "en", "--format", "progress",
			"--token", "Alice="+c.token, "--tags", "@duplicate")
		require.Equal(t, 0, got.code, "%s: %s", name, got.stdout)
		assert.Contains(t, got.stdout, "there is no token for operator", name)
		assert.Contains(t, got.stdout, "there is no token for bookkeeper", name)
	}
}

func TestTheServiceKeepsToTheDraft(t *testing.T) {
	t.Parallel()
	base, _ := quietService(t)
	got := alone(t, nil, "scenario", "--target", base, "--profile", "draft-07")
	require.Equal(t, 0, got.code, got.stdout)
	assert.Contains(t, got.stdout, "\n21 checks: 21 passed, 0 failed, 0 extensions missing, 0 not applicable.\n")

	keyless := through(t, base, func(r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/api/orders") && r.Header.Get("Idempotency-Key") == "" {
			r.Header.Set("Idempotency-Key", runName())
		}
	}, nil)
	got = alone(t, nil, "scenario", "--target", keyless, "--profile", "draft-07")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "\n21 checks: 18 passed, 2 failed, 1 extensions missing, 0 not applicable.\n")
	assert.Equal(t, "kakutei: 2 checks failed\n", got.stderr)
}
