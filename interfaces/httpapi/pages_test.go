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

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/lab"
	"kakutei/interfaces/web"
)

func page(t *testing.T, e edge, path string) string {
	t.Helper()
	a := e.send(t, request{method: http.MethodGet, path: path})
	require.Equal(t, http.StatusOK, a.status)
	policy := a.header.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	assert.Contains(t, policy, "style-src 'self'")
	assert.NotContains(t, policy, "unsafe")
	assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	return a.body
}

func TestTheStartPagesTwoLinesWorkWhenPasted(t *testing.T) {
	e := onMemory(t)
	lines := regexp.MustCompile(`(?s)<pre>(.*?)</pre>`).FindAllStringSubmatch(page(t, e, "/"), -1)
	require.Len(t, lines, 2)
	script := html.UnescapeString(lines[0][1]) + "\n" + html.UnescapeString(lines[1][1]) + "\n"
	path := filepath.Join(t.TempDir(), "paste.sh")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
	for range 2 {
		out, err := exec.CommandContext(t.Context(), "sh", "-e", path).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), `"status":"PAID"`)
	}
}

func TestTheStartPageDoesNotTrustItsAddress(t *testing.T) {
	e := onMemory(t, func(c *httpapi.Config) { c.AnyHost, c.ExampleToken = true, "" })
	r := request{method: http.MethodGet, path: "/", host: "a'b&(c)"}
	a := e.send(t, r)
	assert.NotContains(t, a.body, "a'b&(c)")
	assert.Contains(t, a.body, "Bearer YOUR-TOKEN")
}

func TestThePolicyTellsWhatIsConfigured(t *testing.T) {
	for retention, text := range map[time.Duration]string{
		24 * time.Hour: "<p>24h after", 90 * time.Minute: "<p>1h30m after", 45 * time.Second: "<p>45s after",
	} {
		e := open(t, memory.New(time.Now), func(c *httpapi.Config) { c.Retention = retention })
		assert.Contains(t, page(t, e, "/docs/idempotency"), text)
	}
}

func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	inMemory := func(clock func() time.Time) port.UnitOfWork { return memory.New(clock) }
	e := open(t, memory.New(time.Now), func(c *httpapi.Config) {
		c.Pages = lab.NewPages(lab.New(inMemory), c.Logger).Handlers()
	}).undescribed() // the lab is no part of the interface
	link := regexp.MustCompile(`<a [^>]*href="([^"#]+)"`)
	seen := []string{"/", lab.Path}
	for i := 0; i < len(seen); i++ {
		for _, found := range link.FindAllStringSubmatch(page(t, e, seen[i]), -1) {
			if strings.HasPrefix(found[1], "https://github.com/") { // the lab's reports
				continue
			}
			require.True(t, strings.HasPrefix(found[1], "/"), found[1])
			if found[1] == "/openapi.json" { // no page
				e.send(t, request{method: http.MethodGet, path: found[1]}).is(t, http.StatusOK)
				continue
			}
			if path, _, _ := strings.Cut(found[1], "?"); !slices.Contains(seen, path) {
				seen = append(seen, path)
			}
		}
	}
	assert.Greater(t, len(seen), 4)
}

// A reader who has gone from the shop to the key policy finds the way on to the lab.
func TestEachPageLeadsToTheLabWhereThereIsOne(t *testing.T) {
	inMemory := func(clock func() time.Time) port.UnitOfWork { return memory.New(clock) }
	demo := open(t, memory.New(time.Now), func(c *httpapi.Config) {
		c.Pages = lab.NewPages(lab.New(inMemory), c.Logger).Handlers()
	}).undescribed() // the lab is no part of the interface
	for _, path := range []string{"/", "/docs", "/docs/idempotency", "/problems/internal", lab.Path} {
		assert.Contains(t, page(t, demo, path), `<a href="`+lab.Path+`"`, path)
		if path != lab.Path {
			assert.NotContains(t, page(t, onMemory(t), path), `href="`+lab.Path, path)
		}
	}
}

func TestEveryProblemHasItsPageInEachLanguage(t *testing.T) {
	e := onMemory(t)
	titles := map[string]bool{}
	for _, code := range httpapi.Codes() {
		for language, heading := range map[string]string{"en": "What happened", "ja": "何が起きたか"} {
			text := page(t, e, "/problems/"+code+"?lang="+language)
			assert.Contains(t, text, "<code>"+code+"</code>")
			assert.Contains(t, text, heading)
			titles[regexp.MustCompile(`<h1>(.*?)</h1>`).FindString(text)] = true
		}
	}
	assert.Len(t, titles, 2*len(httpapi.Codes()), "each has a title of its own")
}

func TestTheProblemPagesAreCalledAsTheDocuments(t *testing.T) {
	for code, title := range httpapi.Titles() {
		text, err := web.English.Text("problem.code." + code + ".title")
		require.NoError(t, err)
		assert.Equal(t, title, string(text))
	}
}

func TestAFileOfThePagesIsKeptForAsLongAsItsAddressNamesItsVersion(t *testing.T) {
	e := onMemory(t)
	path, err := web.AssetPath("style.css")
	require.NoError(t, err)
	kept := e.send(t, request{method: http.MethodGet, path: path})
	assert.Contains(t, kept.header.Get("Cache-Control"), "immutable")
	asked := e.send(t, request{method: http.MethodGet, path: "/assets/style.css?v=older"})
	assert.Equal(t, "no-cache", asked.header.Get("Cache-Control"))
	assert.Equal(t, kept.body, asked.body)
}
