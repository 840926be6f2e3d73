package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// secure sets what a browser has to know of every answer, problems included: it is what its media type says, loads and
// runs nothing, stands in no frame, is no part of another site's page, and does not tell where a reader came from. Pages
// have a policy of their own. Strict-Transport-Security is for whoever speaks TLS: this service does not.
func secure(h http.Header) {
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	h.Set(echo.HeaderXFrameOptions, "DENY") // for browsers that do not know frame-ancestors
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(echo.HeaderReferrerPolicy, "no-referrer")
}
