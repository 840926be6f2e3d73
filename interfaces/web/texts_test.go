package web_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/web"
)

var place = regexp.MustCompile(`\{[a-z]+\}`)

func TestEachTextIsThereInEachLanguageWithTheSamePlaces(t *testing.T) {
	english := web.Texts(web.English)
	require.Greater(t, len(english), 100)
	for _, l := range web.Languages {
		for key, text := range web.Texts(l) {
			assert.NotEmpty(t, strings.TrimSpace(text), "%s in %s", key, l)
			assert.Contains(t, english, key, "only in %s", l)
		}
		for key, text := range english {
			other, found := web.Texts(l)[key]
			if !assert.True(t, found, "%s is missing in %s", key, l) {
				continue
			}
			places, others := place.FindAllString(text, -1), place.FindAllString(other, -1)
			slices.Sort(places)
			slices.Sort(others)
			assert.Equal(t, places, others, "%s in %s", key, l)
		}
	}
}

func TestATextThatIsMissingIsAnError(t *testing.T) {
	_, err := web.English.Text("there.is.none")
	assert.Error(t, err)
}

func TestWhatIsPutIntoATextIsNoMarkup(t *testing.T) {
	text, err := web.English.Text("policy.kept.text", "retention", "<b>&")
	require.NoError(t, err)
	assert.Contains(t, string(text), "&lt;b&gt;&amp;")
}

// Every text that a template or a script names is there, and every text that is there is named.
func TestTheTextsAreThoseThatThePagesUse(t *testing.T) {
	var sources strings.Builder
	for _, directory := range []string{"pages", "ts"} {
		err := fs.WalkDir(os.DirFS("."), directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			sources.Write(text)
			return err
		})
		require.NoError(t, err)
	}
	used := sources.String()
	for _, named := range regexp.MustCompile(`(?:\.(?:Text|Plain) "|\btext\(')([a-zA-Z0-9.-]+)["']`).FindAllStringSubmatch(used, -1) {
		assert.Contains(t, web.Texts(web.English), named[1])
	}
	for _, saying := range regexp.MustCompile(`says: ([^,\n]*)`).FindAllStringSubmatch(used, -1) {
		for _, name := range regexp.MustCompile(`'([a-z]+)'`).FindAllStringSubmatch(saying[1], -1) {
			assert.Contains(t, web.Texts(web.English), "shop.steps."+name[1])
		}
	}
	for _, told := range regexp.MustCompile(`\bsay\('([a-z]+)'`).FindAllStringSubmatch(used, -1) {
		assert.Contains(t, web.Texts(web.English), "shop.told."+told[1])
	}
	for key := range web.Texts(web.English) {
		section := key[:strings.LastIndex(key, ".")+1] // of keys that are put together: print "problem.code." .Code
		for section != "" && !strings.Contains(used, key) && !strings.Contains(used, section) {
			section = section[:strings.LastIndex(section[:len(section)-1], ".")+1]
		}
		assert.NotEmpty(t, section, "nobody uses %s", key)
	}
}
