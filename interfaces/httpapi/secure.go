package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// fixed is a header that says the same in many answers. They share its value, which nobody changes: who has another one
// to say replaces it, and who adds to it has a copy.
type fixed struct {
	name  string // in its canonical form
	value []string
}

func fixedHeader(name, value string) fixed {
	return fixed{http.CanonicalHeaderKey(name), []string{value}}
}

// on sets the header.
func (f fixed) on(h http.Header) { h[f.name] = f.value }

// notStored keeps an answer out of every cache.
var notStored = fixedHeader(echo.HeaderCacheControl, "no-store")

var secured = []fixed{
	fixedHeader(echo.HeaderXContentTypeOptions, "nosniff"),
	fixedHeader(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'"),
	fixedHeader(echo.HeaderXFrameOptions, "DENY"), // for browsers that do not know frame-ancestors
	fixedHeader("Cross-Origin-Resource-Policy", "same-origin"),
	fixedHeader(echo.HeaderReferrerPolicy, "no-referrer"),
}

// secure sets what a browser has to know of every answer, problems included: it is what its media type says, loads and
// runs nothing, stands in no frame, is no part of another site's page, and does not tell where a reader came from. Pages
// have a policy of their own. Strict-Transport-Security is for whoever speaks TLS: this service does not.
func secure(h http.Header) {
	for _, header := range secured {
		header.on(h)
	}
}
