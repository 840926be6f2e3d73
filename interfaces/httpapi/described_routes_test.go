package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/live"
	"kakutei/interfaces/reference"
)

// The routes are described, all of them and no others. HEAD stands for GET outside /api/, which the description says once.
func TestTheRoutesAreThoseThatAreDescribed(t *testing.T) {
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(reference.Document(), &description))
	var described, served []string
	for path, methods := range description.Paths {
		for method := range methods {
			method = strings.ToUpper(method)
			described = append(described, method+" "+path)
			if method == http.MethodGet && !strings.HasPrefix(path, "/api/") {
				described = append(described, http.MethodHead+" "+path)
			}
		}
	}
	everything := Config{Logger: slog.New(slog.DiscardHandler), Live: live.NewFeed(time.Now), Metrics: http.NotFoundHandler()}
	parameter := regexp.MustCompile(`:(\w+)`)
	for _, route := range New(everything).echo.Routes() {
		if route.Method == echo.RouteNotFound {
			continue
		}
		served = append(served, route.Method+" "+parameter.ReplaceAllString(route.Path, "{$1}"))
	}
	// "post" is an entry's id like any other, only that Echo has to be told.
	asID := "GET " + pathPost
	require.Contains(t, served, asID)
	served = slices.DeleteFunc(served, func(route string) bool { return route == asID })
	assert.ElementsMatch(t, described, served)
}
