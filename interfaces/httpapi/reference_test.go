package httpapi_test

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gateway"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/reference"
)

func TestTheDescriptionIsServedAsItIsWritten(t *testing.T) {
	e := onMemory(t)
	assert.Equal(t, string(reference.Document()), e.send(t, visiting("/openapi.json")(t, e)).is(t, http.StatusOK).body)
}

// What every operation's lines say, on a service of its own with the simulator as its provider.
var saidWhenPasted = map[string]string{
	"placeOrder": "", "getOrder": `"status":"PLACED"`, "confirmPayment": `"status":"PAID"`,
	"confirmPayment#declined": `"code":"payment_declined"`, "confirmPayment#down": `"code":"outcome_unknown"`,
	"cancelOrder": `"status":"CANCELLED"`, "getOutcome": `"status":"SUCCEEDED"`,
	"postJournalEntry": "", "getJournalEntry": `"sourceDocumentId":"inv-2025-001"`,
	"getAudit": `"entries":[`, "getUnresolved": `"records":[]`,
	"releaseRecord": `"leaseExpiredAt"`, "resolveRecord": `"response":{`,
	"getHealth": `"alive"`, "getReadiness": `"ready"`, "getDescription": `"openapi": "3.1.0"`,
}

func TestTheExamplesOfTheReferenceWorkWhenPasted(t *testing.T) {
	for _, path := range described.Paths.Map() {
		for _, operation := range path.Operations() {
			if _, err := (reference.Reader{}).Commands(operation.OperationID); err == nil {
				assert.Contains(t, saidWhenPasted, operation.OperationID)
			}
		}
	}
	for operation, said := range saidWhenPasted {
		t.Run(operation, func(t *testing.T) {
			e := onMemory(t, func(c *httpapi.Config) {
				c.Till.Gateway = gateway.NewSimulator(gateway.NewMemoryBook(), time.Now)
			})
			lines, err := reference.Reader{Base: "http://" + e.address, Demo: true}.Commands(operation)
			require.NoError(t, err)
			out := pasted(t, lines)
			if operation != "getDescription" { // of many lines
				out = out[strings.LastIndex(out, "\n")+1:]
			}
			assert.NotEmpty(t, out)
			assert.Contains(t, out, said)
		})
	}
}

// pasted is what the lines say in a shell.
func pasted(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "paste.sh")
	require.NoError(t, os.WriteFile(path, []byte(lines+"\n"), 0o600))
	out, err := exec.CommandContext(t.Context(), "sh", "-e", path).CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// blocks are the page's blocks of lines, as a browser copies them.
func blocks(page string) (all []string) {
	for _, block := range regexp.MustCompile(`(?s)<pre>(.*?)</pre>`).FindAllStringSubmatch(page, -1) {
		all = append(all, html.UnescapeString(block[1]))
	}
	return all
}

func TestTheReferenceShowsTheExamplesOfAllOperationsForItsOwnAddress(t *testing.T) {
	e := onMemory(t)
	shown := blocks(page(t, e, "/docs"))
	for operation := range saidWhenPasted {
		lines, err := reference.Reader{Base: "http://" + e.address, Demo: true}.Commands(operation)
		require.NoError(t, err)
		if strings.Contains(operation, "#") { // only what others need
			continue
		}
		ends := func(block string) bool { return strings.HasSuffix("\n"+lines, "\n"+block) }
		assert.True(t, slices.ContainsFunc(shown, ends), "%s in %v", lines, operation)
	}
}

func TestThePolicysExampleIsReplayedWhenItsLastLineIsPastedAgain(t *testing.T) {
	e := onMemory(t)
	lines := blocks(page(t, e, "/docs/idempotency"))[0]
	last := lines[strings.LastIndex(lines, "\n")+1:]
	out := strings.Split(pasted(t, lines+"\n"+last+"\n"+strings.Replace(last, "1000", "1001", 1)), "\n")
	require.Len(t, out, 4)
	assert.Contains(t, out[1], `"status":"PAID"`)
	assert.Equal(t, out[1], out[2])
	assert.Contains(t, out[3], `"code":"idempotency_key_reused"`)
	assert.Equal(t, 1, e.provider.Charges())
}

func TestTheReferenceNeedsNoScriptAndIsReadInBothLanguages(t *testing.T) {
	e := onMemory(t)
	for language, title := range map[string]string{"en": "Place an order", "ja": "注文する"} {
		text := page(t, e, "/docs?lang="+language)
		assert.Contains(t, text, title)
		assert.NotContains(t, text, "<script")
		for _, target := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(text, -1) {
			assert.Contains(t, text, `id="`+target[1]+`"`)
		}
		ids := map[string]bool{}
		for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(text, -1) {
			assert.False(t, ids[id[1]], "twice: %s", id[1])
			ids[id[1]] = true
		}
	}
}

func TestTheReferenceDoesNotTrustItsAddress(t *testing.T) {
	e := onMemory(t, func(c *httpapi.Config) { c.AnyHost, c.ExampleToken = true, "" })
	a := e.send(t, request{method: http.MethodGet, path: "/docs", host: "a'b&(c)"})
	assert.NotContains(t, a.body, "a'b&(c)")
	assert.Contains(t, a.body, "Bearer YOUR-TOKEN")
}

func TestAProblemsPageShowsItsDocument(t *testing.T) {
	e := onMemory(t)
	for _, code := range httpapi.Codes() {
		assert.Contains(t, html.UnescapeString(page(t, e, "/problems/"+code)), `"code": "`+code+`"`)
	}
}
