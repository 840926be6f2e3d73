package lab_test

import (
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/lab"
	"kakutei/interfaces/web"
)

var handlers = lab.NewPages(lab.New(inMemory), slog.New(slog.DiscardHandler)).Handlers()

func shown(t *testing.T, address string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	handler, found := handlers[r.URL.Path]
	require.True(t, found, address)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", address, w.Body)
	return w.Body.String()
}

// Storms are computed for whoever asks: more than may wait are sent away at once, instead of into a queue without an end.
func TestWhereAsManyRunStormsAsMayTheNextOneIsSentAway(t *testing.T) {
	pages := lab.NewPages(lab.New(inMemory), slog.New(slog.DiscardHandler))
	over := lab.Busy(pages)
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		pages.Handlers()[lab.Path].ServeHTTP(w, httptest.NewRequest(http.MethodGet, lab.Path, nil))
		return w
	}
	w := ask()
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	over()
	assert.Equal(t, http.StatusOK, ask().Code)
}

func TestEachPageIsThereInEachLanguage(t *testing.T) {
	for _, l := range web.Languages {
		for path := range handlers {
			assert.Contains(t, shown(t, path+"?lang="+string(l)), `<html lang="`+string(l)+`">`)
		}
	}
}

// A page whose text is missing is not shown at all. The texts of both languages are the same ones.
func TestWhateverHappensHasItsText(t *testing.T) {
	told := func(run lab.Run) {
		for _, e := range run.Timeline {
			_, err := web.English.Text("lab.step." + string(e.What))
			require.NoError(t, err)
		}
		for _, f := range run.Faults {
			_, err := web.English.Text("lab.fault." + string(f))
			require.NoError(t, err)
		}
	}
	for _, s := range lab.Storms {
		run, err := lab.New(inMemory).Kakutei(s)
		require.NoError(t, err)
		told(run)
		for _, d := range lab.Designs {
			told(d.Run(s))
		}
		for _, p := range lab.Places {
			told(p.Storm(s))
		}
	}
}

func TestADesignsPageShowsItsChargesBesideKakuteis(t *testing.T) {
	charges := regexp.MustCompile(`<p class="charges (\w+)"><b>(\d)</b>`).FindAllStringSubmatch(shown(t, "/lab/nokey"), -1)
	require.Len(t, charges, 2)
	assert.Equal(t, []string{"bad", "2"}, charges[0][1:])
	assert.Equal(t, []string{"good", "1"}, charges[1][1:])
}

func TestADesignsPageMarksTheLinesThatTheSourceMarks(t *testing.T) {
	for _, d := range lab.Designs {
		page := html.UnescapeString(shown(t, d.Path()))
		for _, line := range d.Source() {
			if line.Wrong {
				_, why, _ := strings.Cut(line.Text, "// WRONG:")
				assert.Regexp(t, `<mark>[^\n]*// WRONG:`+regexp.QuoteMeta(why), page, d.Name)
			}
		}
		assert.Contains(t, page, `href="`+d.Report+`"`)
	}
}

func TestAPageOfTheLabSaysThatItIsOne(t *testing.T) {
	assert.Contains(t, shown(t, "/lab"), `<a href="/lab" aria-current="page">`)
	assert.Contains(t, shown(t, "/lab/places"), `<a href="/lab" aria-current="true">`)
}

func TestAStormThatThereIsNotIsTheDesignsOwn(t *testing.T) {
	assert.Contains(t, shown(t, "/lab/apart?storm=none"), `?storm=crash_after_commit" aria-current="true"`)
}

func TestTheTableLeadsToEachRun(t *testing.T) {
	page := shown(t, lab.Path)
	for _, d := range lab.Designs {
		for _, s := range lab.Storms {
			assert.Contains(t, page, `href="`+d.Path()+`?storm=`+s.Name+`"`)
		}
	}
}
