package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
)

// routeAsSent makes Echo route by the path as it was sent, so that %2F is part of a name and ends none, and a name is
// decoded once, by pathName. Echo alone would take the decoded path whenever encoding it again gives what was sent.
func routeAsSent(address *url.URL) {
	if address.RawPath == "" {
		address.RawPath = address.EscapedPath()
	}
}

// pathName is what stands in the path under the parameter's name, decoded. A text that is not all visible ASCII stays
// encoded: nothing is called like that, and not every store can keep any bytes.
func pathName(c echo.Context, parameter string) string {
	name, err := url.PathUnescape(c.Param(parameter))
	if err != nil || strings.ContainsFunc(name, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return url.PathEscape(name)
	}
	return name
}

// queryOf is the query, which may have these parameters, each once, and no others. The error is a fault.Invalid without
// pointers, which lead into bodies only.
func queryOf(r *http.Request, allowed ...string) (query url.Values, err error) {
	if r.URL.RawQuery == "" {
		return query, nil
	}
	if query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, invalidQuery("the query cannot be read")
	}
	for name, values := range query {
		if !slices.Contains(allowed, name) {
			return nil, invalidQuery("the query has a parameter that is not known here")
		}
		if len(values) > 1 {
			return nil, invalidQuery("the query has the parameter %s more than once", name)
		}
	}
	return query, nil
}

func invalidQuery(format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	return fault.Invalid().Saying("%s", detail).With("errors", []partError{{Detail: detail}})
}
