package conformance_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/scenario/conformance"
)

// description fits both servers of this file: they make things.
const description = `
name: things
path: /things
headers: {Authorization: alice}
body: '{"a thing of":"${fresh}"}'
otherBody: '{"another thing of":"${fresh}"}'
slowBody: '{"a slow thing of":"${fresh}"}'
otherCaller: {Authorization: bob}
success: {status: [201], contains: thing}
`

// makes answers as a request that is new, each time with another number.
type makes struct {
	mu sync.Mutex
	n  int
}

func (m *makes) thing(body string) string {
	if strings.Contains(body, "slow") {
		time.Sleep(700 * time.Millisecond) // that is what is asked of it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	return fmt.Sprintf(`{"thing":%d}`, m.n)
}

// forgetful is a server that does not look at the header at all.
func forgetful() http.Handler {
	var m makes
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, m.thing(string(body)))
	})
}

// hasty is a server that keeps each answer under the bare text of the header, whoever sends it with whatever body, and
// has duplicates wait.
func hasty() http.Handler {
	var (
		m    makes
		mu   sync.Mutex
		kept = map[string]func() string{}
	)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if key == "" {
			http.Error(w, "a key is missing", http.StatusBadRequest)
			return
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		once, known := kept[key]
		if !known {
			once = sync.OnceValue(func() string { return m.thing(string(body)) })
			kept[key] = once
		}
		mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, once())
	})
}

// failing are the ids of the checks that a server fails, and of the extensions that it lacks.
func failing(t *testing.T, server http.Handler, described string) (failed, lacking []string) {
	t.Helper()
	at := httptest.NewServer(server)
	t.Cleanup(at.Close)
	endpoint, err := conformance.Read(strings.NewReader(described))
	require.NoError(t, err)
	results, err := conformance.Check(t.Context(), at.URL, endpoint)
	require.NoError(t, err)
	for _, r := range results {
		switch {
		case r.Fails():
			failed = append(failed, r.ID)
			assert.NotEmpty(t, r.Detail, r.ID)
		case r.Verdict == conformance.Failed:
			lacking = append(lacking, r.ID)
		}
	}
	return failed, lacking
}

func TestAServerThatForgetsEveryKeyFailsWhateverNeedsAMemory(t *testing.T) {
	failed, lacking := failing(t, forgetful(), description)
	assert.Equal(t, []string{
		"malformed-key", "two-keys", "replay", "replay-of-a-later-retry", "concurrent-conflict", "concurrent-status", "burst",
		"missing-key", "missing-key-link", "reuse", "reuse-status", "reuse-link", "reuse-keeps",
	}, failed)
	assert.Equal(t,
		[]string{"empty-key", "bare-key", "replay-mark", "concurrent-retry-after", "problem-documents"}, lacking)
}

func TestAServerThatLooksAtNothingButTheKeyFailsWhatTellsRequestsApart(t *testing.T) {
	failed, lacking := failing(t, hasty(), description)
	assert.Equal(t, []string{
		"malformed-key", "two-keys", "concurrent-conflict", "concurrent-status", "missing-key-link", "reuse", "reuse-status",
		"reuse-link", "isolation",
	}, failed)
	assert.Equal(t,
		[]string{"empty-key", "bare-key", "replay-mark", "concurrent-retry-after", "problem-documents"}, lacking)
}

func TestWhatADescriptionLeavesOutIsNotApplicable(t *testing.T) {
	at := httptest.NewServer(hasty())
	t.Cleanup(at.Close)
	endpoint, err := conformance.Read(strings.NewReader("path: /things\nbody: '${fresh}'\notherBody: other\nkeyOptional: true"))
	require.NoError(t, err)
	results, err := conformance.Check(t.Context(), at.URL, endpoint)
	require.NoError(t, err)
	var missing []string
	for _, r := range results {
		if r.Verdict == conformance.NotApplicable {
			missing = append(missing, r.ID)
		}
	}
	assert.Equal(t, []string{
		"concurrent-conflict", "concurrent-status", "concurrent-retry-after", "missing-key", "missing-key-link", "isolation",
	}, missing)
}

func TestAnEndpointThatNeverDoesWhatItsDescriptionSaysIsNotExamined(t *testing.T) {
	at := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(at.Close)
	endpoint, err := conformance.Read(strings.NewReader(description))
	require.NoError(t, err)
	_, err = conformance.Check(t.Context(), at.URL, endpoint)
	require.ErrorContains(t, err, "a first request is no success as the description has it: 404")
	at.Close()
	_, err = conformance.Check(t.Context(), at.URL, endpoint)
	require.ErrorContains(t, err, "no answer")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = conformance.Check(over, at.URL, endpoint)
	require.ErrorIs(t, err, context.Canceled)
}

func TestADescriptionThatSaysTooLittleIsRefused(t *testing.T) {
	for described, wrong := range map[string]string{
		"path: things\nbody: a\notherBody: b":  "a description needs a path",
		"path: /things\notherBody: b":          "a description needs a body",
		"path: /things\nbody: a":               "a description needs an otherBody",
		"path: /things\nbody: a\notherBody: a": "otherBody must be another request than body",
		"pfad: /things":                        "it is no description of an endpoint",
		"Feature: pay":                         "it is no description of an endpoint",
		"":                                     "it is no description of an endpoint",
	} {
		_, err := conformance.Read(strings.NewReader(described))
		require.ErrorContains(t, err, wrong, described)
	}
}

func TestTheReportsSayWhatFailedAndWhy(t *testing.T) {
	results := []conformance.Result{
		{ID: "replay", Level: conformance.Should, Section: "2.6", Asks: "the same", Verdict: conformance.Failed, Detail: "a < b"},
		{ID: "replay-mark", Level: conformance.Extension, Section: "–", Verdict: conformance.Failed, Detail: "none"},
		{ID: "reuse", Level: conformance.Must, Section: "2.7", Verdict: conformance.Passed},
		{ID: "isolation", Level: conformance.Should, Section: "5", Verdict: conformance.NotApplicable, Detail: "one caller"},
	}
	var table, document strings.Builder
	require.NoError(t, conformance.WriteTable(&table, "things", results))
	assert.Regexp(t, `(?m)^replay +SHOULD +2\.6 +failed +the same$`, table.String())
	assert.Contains(t, table.String(), "\nreplay, failed: a < b\n")
	assert.Contains(t, table.String(), "\n4 checks: 1 passed, 1 failed, 1 extensions missing, 1 not applicable.\n")

	require.NoError(t, conformance.WriteJUnit(&document, "things", results))
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Failure *string `xml:"failure"`
			Skipped *string `xml:"skipped"`
		} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal([]byte(document.String()), &read))
	assert.Equal(t, []int{4, 1, 2}, []int{read.Tests, read.Failures, read.Skipped})
	require.Len(t, read.Cases, 4)
	require.NotNil(t, read.Cases[0].Failure)
	assert.Equal(t, "a < b", *read.Cases[0].Failure)
	assert.NotNil(t, read.Cases[1].Skipped)
	assert.Nil(t, read.Cases[2].Failure)
}
