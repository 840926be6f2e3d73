package httpapi_test

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	shown := html.UnescapeString(page(t, onMemory(t), "/docs"))
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
			path := filepath.Join(t.TempDir(), "paste.sh")
			require.NoError(t, os.WriteFile(path, []byte(lines+"\n"), 0o600))
			out, err := exec.CommandContext(t.Context(), "sh", "-e", path).CombinedOutput()
			require.NoError(t, err, string(out))
			last := strings.TrimSpace(string(out))
			last = last[strings.LastIndex(last, "\n")+1:]
			if operation == "getDescription" { // of many lines
				last = string(out)
			}
			assert.Contains(t, last, said)
			assert.NotEmpty(t, last)

			if _, example, _ := strings.Cut(operation, "#"); example == "" {
				own := lines[strings.LastIndex("\n"+lines, "\nKEY=")+1:]
				own = own[strings.LastIndex(strings.TrimSuffix(own, "\n"), "\n")+1:]
				anywhere := regexp.MustCompile(`127\.0\.0\.1:\d+`)
				assert.Contains(t, anywhere.ReplaceAllString(shown, "here"), anywhere.ReplaceAllString(own, "here"))
			}
		})
	}
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
