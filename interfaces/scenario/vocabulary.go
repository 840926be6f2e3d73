package scenario

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Language is one that scenarios can be written in.
type Language string

// The languages.
const (
	English  Language = "en"
	Japanese Language = "ja"
)

// Languages are all of them.
var Languages = []Language{English, Japanese}

// step is one sentence of the vocabulary, in each language. The words in braces are its blanks.
type step struct {
	text    map[Language]string
	example map[Language]string
	inside  bool // only possible where the runner has started the service itself
	do      func(context.Context, *world, blanks) error
}

// sentence makes a step: its pattern and an example, in English and in Japanese.
func sentence(en, enExample, ja, jaExample string, do func(context.Context, *world, blanks) error) step {
	return step{
		text:    map[Language]string{English: en, Japanese: ja},
		example: map[Language]string{English: enExample, Japanese: jaExample},
		do:      do,
	}
}

// plain makes a step without blanks: it is its own example.
func plain(en, ja string, do func(context.Context, *world) error) step {
	return sentence(en, en, ja, ja, func(ctx context.Context, w *world, _ blanks) error { return do(ctx, w) })
}

// within makes a step that needs the inside.
func within(s step) step {
	do := s.do
	s.inside, s.do = true, func(ctx context.Context, w *world, b blanks) error {
		if w.against.Inside == nil {
			return notApplicable{"it takes a service that the runner has started itself"}
		}
		return do(ctx, w, b)
	}
	return s
}

// blank is what stands in braces, as a regular expression per language.
var blank = map[string]map[Language]string{
	"who":    {English: `[A-Z][a-z]+|she|he`, Japanese: `[\p{Katakana}ー]+|彼女|彼`},
	"amount": {English: `[\d,]+ (?:yen|[A-Z]{3})`, Japanese: `[\d,]+(?:円|[A-Z]{3})`},
	"time":   {English: `\d+ (?:second|minute|hour)s?`, Japanese: `\d+(?:秒|分|時間)`},
	"n":      {English: `\d+`, Japanese: `\d+`},
	"text":   {English: "\"[^\"]*\"|`[^`]*`", Japanese: "\"[^\"]*\"|`[^`]*`"},
	"name":   {English: `\w+(?:\.\w+)*`, Japanese: `[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*`},
	"path":   {English: `/\S*`, Japanese: `/[^\s\p{Hiragana}]*`},
}

var braces = regexp.MustCompile(`\{(\w+)\}`)

// pattern is the step's text as a regular expression.
func (s step) pattern(l Language) *regexp.Regexp {
	text, expression, at := s.text[l], strings.Builder{}, 0
	expression.WriteString("^")
	for _, found := range braces.FindAllStringSubmatchIndex(text, -1) {
		name := text[found[2]:found[3]]
		expression.WriteString(regexp.QuoteMeta(text[at:found[0]]))
		fmt.Fprintf(&expression, "(?P<%s>%s)", name, blank[name][l])
		at = found[1]
	}
	expression.WriteString(regexp.QuoteMeta(text[at:]) + "$")
	return regexp.MustCompile(expression.String())
}

// phrase is a step in one language, ready to be recognised.
type phrase struct {
	step
	language Language
	pattern  *regexp.Regexp
}

// phrases are all that a scenario may say.
func phrases() []phrase {
	var all []phrase
	for _, s := range vocabulary() {
		for _, l := range Languages {
			all = append(all, phrase{step: s, language: l, pattern: s.pattern(l)})
		}
	}
	return all
}

// vocabulary is the step library.
func vocabulary() []step {
	return slices.Concat(shopSteps(), providerSteps(), faultSteps(), rawSteps(), journalSteps(), operatorSteps(),
		answerSteps(), stateSteps())
}

// blanks is what a scenario has put where a step has blanks.
type blanks struct {
	by  map[string]string
	doc string // what stands below the step, between quotation marks
}

// blanksOf reads the blanks out of a step's text.
func (p phrase) blanksOf(text, doc string) blanks {
	b := blanks{by: map[string]string{}, doc: doc}
	found := p.pattern.FindStringSubmatch(text)
	for i, name := range p.pattern.SubexpNames() {
		if name != "" && i < len(found) {
			b.by[name] = found[i]
		}
	}
	return b
}

// pronoun is whoever acted last.
const pronoun = ""

// names that are said in Japanese are the same people.
var inJapanese = map[string]string{
	"アリス": "alice", "ボブ": "bob", "キャロル": "carol", "デイブ": "dave", "彼女": pronoun, "彼": pronoun,
}

// who is somebody's name as the callers know it.
func (b blanks) who() string {
	name := b.by["who"]
	if english, japanese := inJapanese[name]; japanese {
		return english
	}
	switch name {
	case "she", "he":
		return pronoun
	default:
		return strings.ToLower(name)
	}
}

// amount reads money. The error says what is wrong with it.
func (b blanks) amount() (amount, error) {
	text := strings.ReplaceAll(b.by["amount"], ",", "")
	digits := strings.TrimRight(text, " abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ円")
	units, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return amount{}, fmt.Errorf("%s is no amount", b.by["amount"])
	}
	currency := strings.TrimSpace(text[len(digits):])
	if currency == "yen" || currency == "円" {
		currency = "JPY"
	}
	return amount{units: units, currency: currency}, nil
}

func (b blanks) n() (int, error) {
	n, err := strconv.Atoi(b.by["n"])
	if err != nil {
		return 0, fmt.Errorf("%s is no number", b.by["n"])
	}
	return n, nil
}

// text is what stands between quotation marks.
func (b blanks) text() string { return strings.Trim(b.by["text"], "\"`") }

var units = []struct {
	words []string
	unit  time.Duration
}{
	{[]string{"second", "秒"}, time.Second},
	{[]string{"minute", "分"}, time.Minute},
	{[]string{"hour", "時間"}, time.Hour},
}

func (b blanks) time() (time.Duration, error) {
	text := b.by["time"]
	digits := text[:strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("%s is no time", text)
	}
	for _, u := range units {
		for _, word := range u.words {
			if strings.Contains(text, word) {
				return time.Duration(n) * u.unit, nil
			}
		}
	}
	return 0, fmt.Errorf("%s is no time", text)
}

// PrintVocabulary lists every step with an example, in the languages that are asked for.
func PrintVocabulary(out io.Writer, languages ...Language) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range languages {
		fmt.Fprintf(table, "STEP (%s)\tEXAMPLE\n", l)
		for _, s := range vocabulary() {
			note := ""
			if s.inside {
				note = " *"
			}
			fmt.Fprintf(table, "%s%s\t%s\n", s.text[l], note, s.example[l])
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "* needs a service that the runner has started itself; with --target not applicable.")
	return err
}
