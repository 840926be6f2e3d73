package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/web"
)

// shown is the key policy as a browser gets it.
func shown(t *testing.T, address string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	r.Header = header
	w := httptest.NewRecorder()
	require.NoError(t, web.Policy.Send(w, r, "policy.title", web.PolicyContent{MaxLength: 255, Retention: "24h", Lease: "30s"}))
	return w
}

func TestAPageIsInTheLanguageThatItsReaderPrefers(t *testing.T) {
	for name, c := range map[string]struct {
		query, cookie, browser string
		want                   string
	}{
		"nothing is known":                          {want: "en"},
		"the browser's first that there is":         {browser: "fr-CH, ja-JP;q=0.9, en;q=0.8", want: "ja"},
		"the browser knows none of them":            {browser: "fr, de;q=0.5", want: "en"},
		"what was chosen before, not the browser's": {cookie: "ja", browser: "en", want: "ja"},
		"what is chosen now, not before":            {query: "en", cookie: "ja", browser: "ja", want: "en"},
		"what is no language is nothing":            {query: "xx", cookie: "yy", browser: "zz", want: "en"},
	} {
		header := http.Header{"Accept-Language": {c.browser}}
		if c.cookie != "" {
			header.Set("Cookie", "lang="+c.cookie)
		}
		w := shown(t, "/docs/idempotency?lang="+c.query, header)
		assert.Equal(t, c.want, w.Header().Get("Content-Language"), name)
		assert.Contains(t, w.Body.String(), `<html lang="`+c.want+`">`, name)
	}
}

func TestAChosenLanguageIsRemembered(t *testing.T) {
	cookies := shown(t, "/docs/idempotency?lang=ja", nil).Result().Cookies()
	require.Len(t, cookies, 1)
	assert.Equal(t, "ja", cookies[0].Value)
	assert.True(t, cookies[0].HttpOnly)
	assert.Empty(t, shown(t, "/docs/idempotency", nil).Result().Cookies(), "nothing was chosen")
}

func TestALinkToAnotherLanguageShowsTheSame(t *testing.T) {
	body := shown(t, `/docs/idempotency?storm=lost_answer&lang=en&"><b>=x`, nil).Body.String()
	assert.Contains(t, body, `href="/docs/idempotency?%22%3E%3Cb%3E=x&amp;lang=ja&amp;storm=lost_answer"`)
	assert.NotContains(t, body, `"><b>=x`)
}

func TestWhereThereIsNoShopNothingIsCalledSo(t *testing.T) {
	assert.NotContains(t, shown(t, "/docs/idempotency", nil).Body.String(), "Checkout")
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/docs/idempotency", nil)
	require.NoError(t, web.Policy.Touring().Send(w, r, "policy.title", web.PolicyContent{}))
	assert.Contains(t, w.Body.String(), "Checkout")
}

// answered is a handler's answer.
func answered(t *testing.T, h http.Handler, address string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w
}

func TestThePagesOfTheShopAreThereInEachLanguage(t *testing.T) {
	place := func(base string) (string, string) { return "ask " + base, "again" }
	for path, page := range web.Shop(place) {
		for _, l := range web.Languages {
			w := answered(t, page, path+"?lang="+string(l))
			assert.Contains(t, w.Body.String(), `<html lang="`+string(l)+`">`)
			policy := w.Header().Get("Content-Security-Policy")
			assert.Contains(t, policy, "script-src 'self'")
			assert.NotContains(t, policy, "unsafe")
			assert.NotRegexp(t, `style="|<style|\son[a-z]+="|<script>`, w.Body.String())
		}
	}
}

func TestOnlyTheSecondTabMayStandInAFrameAndOnlyInOneOfOurs(t *testing.T) {
	pages := web.Shop(func(string) (string, string) { return "", "" })
	assert.Contains(t, answered(t, pages["/"], "/").Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
	tab := answered(t, pages["/second-tab"], "/second-tab").Header()
	assert.Contains(t, tab.Get("Content-Security-Policy"), "frame-ancestors 'self'")
	assert.Equal(t, "SAMEORIGIN", tab.Get("X-Frame-Options"))
}

func TestAPageRunsAndLoadsNothingThatIsNotServedHere(t *testing.T) {
	w := shown(t, "/docs/idempotency", nil)
	policy := w.Header().Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	assert.NotContains(t, policy, "unsafe")
	assert.NotContains(t, policy, "script-src", "a page without a script runs none")
	assert.NotRegexp(t, `(src|href)="(https?:)?//`, w.Body.String())
	assert.NotRegexp(t, `style="|<style|\son[a-z]+="`, w.Body.String())
}
