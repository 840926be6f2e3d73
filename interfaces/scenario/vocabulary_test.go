package scenario

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cucumber/godog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryExampleIsSaidByItsOwnStepAlone(t *testing.T) {
	all := phrases()
	for _, s := range vocabulary() {
		for _, l := range Languages {
			var found []string
			for _, p := range all {
				if p.pattern.MatchString(s.example[l]) {
					found = append(found, p.text[p.language])
				}
			}
			assert.Equal(t, []string{s.text[l]}, found, s.example[l])
		}
	}
}

func TestAStepHasTheSameBlanksInEachLanguage(t *testing.T) {
	for _, s := range vocabulary() {
		var in [][]string
		for _, l := range Languages {
			var names []string
			for _, found := range braces.FindAllStringSubmatch(s.text[l], -1) {
				names = append(names, found[1])
			}
			slices.Sort(names)
			in = append(in, names)
		}
		assert.Equal(t, in[0], in[1], s.text[English])
	}
}

func TestTheVocabularyIsListedWithAnExampleOfEachStep(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, PrintVocabulary(&out, Languages...))
	for _, s := range vocabulary() {
		for _, l := range Languages {
			assert.Regexp(t, "(?m)^"+regexp.QuoteMeta(s.text[l])+`( \*)?  +`+regexp.QuoteMeta(s.example[l])+"$", out.String())
		}
	}
}

// told is a built-in scenario as its steps: which of the vocabulary, and what is in their blanks.
type told struct {
	tags  []string
	steps []string
}

// builtInScenarios are the built-in scenarios of a language, by file.
func builtInScenarios(t *testing.T, l Language) map[string][]told {
	t.Helper()
	read, err := Config{Language: l}.read()
	require.NoError(t, err)
	documents, err := godog.TestSuite{Options: &read.options}.RetrieveFeatures()
	require.NoError(t, err)
	all, found := phrases(), map[string][]told{}
	for _, d := range documents {
		file := strings.TrimPrefix(d.Uri, "features/"+string(l)+"/")
		for _, p := range d.Pickles {
			var one told
			for _, tag := range p.Tags {
				one.tags = append(one.tags, tag.Name)
			}
			for _, s := range p.Steps {
				doc := ""
				if s.Argument != nil {
					doc = s.Argument.DocString.Content
				}
				one.steps = append(one.steps, meaning(t, all, l, s.Text, doc))
			}
			found[file] = append(found[file], one)
		}
	}
	return found
}

// meaning is a step without its language.
func meaning(t *testing.T, all []phrase, l Language, text, doc string) string {
	t.Helper()
	for _, p := range all {
		if p.language != l || !p.pattern.MatchString(text) {
			continue
		}
		b := p.blanksOf(text, doc)
		said := p.text[English] + " " + doc
		for name := range b.by {
			value := b.by[name]
			switch name {
			case "who":
				value = b.who()
			case "amount":
				money, err := b.amount()
				require.NoError(t, err)
				value = money.currency + b.by[name][:strings.IndexAny(b.by[name], " 円U")]
			case "time":
				d, err := b.time()
				require.NoError(t, err)
				value = d.String()
			case "text":
				if freeText.MatchString(value) {
					value = "a text" // it is translated
				}
			}
			said = strings.ReplaceAll(said, "{"+name+"}", value)
		}
		return said
	}
	require.FailNow(t, "a built-in step is not in the vocabulary of its language", "%s: %s", l, text)
	return ""
}

// freeText is what people write in their own words: no code, key or name of a header.
var freeText = regexp.MustCompile(`^"(changed my mind|\P{ASCII}+)"$`)

func TestEnglishAndJapaneseHaveTheSameScenarios(t *testing.T) {
	english, japanese := builtInScenarios(t, English), builtInScenarios(t, Japanese)
	assert.Equal(t, english, japanese)
	assert.Greater(t, len(english), 5, "files")
}

func TestTheFivePartsOfTheRecipeAreCoveredForPaymentsAndForTheJournal(t *testing.T) {
	covered := map[string]bool{}
	for _, scenarios := range builtInScenarios(t, English) {
		for _, s := range scenarios {
			for _, recipe := range []string{"@payments", "@journal"} {
				for _, part := range []string{"@normal", "@duplicate", "@concurrent", "@reuse", "@expiry"} {
					if slices.Contains(s.tags, recipe) && slices.Contains(s.tags, part) {
						covered[recipe+part] = true
					}
				}
			}
		}
	}
	assert.Len(t, covered, 10)
}
