package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// What a page of another origin may send and read (Fetch Standard, "CORS protocol"). Nothing here allows credentials:
// tokens are sent by the page itself, never by the browser.
var (
	sharedRequestHeaders = strings.Join([]string{
		echo.HeaderAuthorization, echo.HeaderContentType, headerKey, headerPrefer,
	}, ", ")
	sharedAnswerHeaders = strings.Join([]string{
		headerKey, headerReplayed, echo.HeaderRetryAfter, echo.HeaderLocation, headerLink, echo.HeaderXRequestID,
		echo.HeaderWWWAuthenticate, headerPreferenceApplied,
	}, ", ")
)

// preflightFor is how long a browser may remember the answer to its question, in seconds.
const preflightFor = "600"

// sharing lets the pages of the configured origins read the answer, whatever it will be.
func (s *Server) sharing(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if len(s.config.Origins) > 0 && isAPI(c.Request()) {
			header := c.Response().Header()
			header.Add(echo.HeaderVary, echo.HeaderOrigin) // a cache shall not give one page's answer to another
			if origin, shared := s.origin(c.Request()); shared {
				header.Set(echo.HeaderAccessControlAllowOrigin, origin)
				header.Set(echo.HeaderAccessControlExposeHeaders, sharedAnswerHeaders)
			}
		}
		return next(c)
	}
}

// origin is the request's, and whether it is one of those that the answers are shared with.
func (s *Server) origin(r *http.Request) (origin string, shared bool) {
	lines := r.Header[echo.HeaderOrigin]
	if len(lines) != 1 || !slices.Contains(s.config.Origins, lines[0]) {
		return "", false
	}
	return lines[0], true
}

// isPreflight tells a browser's question, whether it may send a request, from every other use of OPTIONS.
func (s *Server) isPreflight(r *http.Request) bool {
	_, shared := s.origin(r)
	return shared && isAPI(r) && r.Method == http.MethodOptions && r.Header.Get(echo.HeaderAccessControlRequestMethod) != ""
}

// answerPreflight says what may be sent. It needs no token and no key: browsers send none with this question.
func answerPreflight(c echo.Context, methods string) error {
	header := c.Response().Header()
	header.Set(echo.HeaderAccessControlAllowMethods, methods)
	header.Set(echo.HeaderAccessControlAllowHeaders, sharedRequestHeaders)
	header.Set(echo.HeaderAccessControlMaxAge, preflightFor)
	return c.NoContent(http.StatusNoContent)
}
