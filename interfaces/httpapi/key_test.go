package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/idempotency"
)

func TestAKeyIsReadFromOneHeaderLine(t *testing.T) {
	longest := strings.Repeat("k", idempotency.MaxKeyLength)
	for line, want := range map[string]idempotency.Key{
		"8e03978e-40d5-43dd-bc93-6894a57f9324":   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`"8e03978e-40d5-43dd-bc93-6894a57f9324"`: "8e03978e-40d5-43dd-bc93-6894a57f9324",
		" \tk\t ":                                "k",
		` "k" `:                                  "k",
		longest:                                  idempotency.Key(longest),
		`"` + longest + `"`:                      idempotency.Key(longest),
		"!#$%&'()*+-./:<=>?@~|":                  "!#$%&'()*+-./:<=>?@~|",
	} {
		key, err := keyIn(http.Header{"Idempotency-Key": {line}})
		require.NoError(t, err, line)
		assert.Equal(t, want, key)
	}
}

func TestWhatIsNotOneKey(t *testing.T) {
	for _, lines := range [][]string{nil, {}, {""}, {" "}, {"\t \t"}} { // C35
		_, err := keyIn(http.Header{"Idempotency-Key": lines})
		require.ErrorIs(t, err, errKeyMissing, "%q", lines)
	}
	for _, lines := range [][]string{
		{`""`},
		{`" "`},
		{`"`},
		{`"k`},
		{`k"`},
		{`"k""`},
		{`"k"x`},
		{`"k";a`},
		{`"k";a="b"`},
		{"k;a"},
		{"k,l"},
		{`"k","l"`},
		{`"k\"l"`},
		{`"k\\l"`},
		{`\k`},
		{"a b"},
		{"a\tb"},
		{"é"},
		{"a\xffb"},
		{"a\x7fb"},
		{"."},
		{".."},
		{`"."`},
		{`".."`},
		{"k", "k"},
		{"k", ""},
		{"", ""},
		{strings.Repeat("k", idempotency.MaxKeyLength+1)},
		{":Zm9v:,"},
		{"(k l)"},
	} {
		key, err := keyIn(http.Header{"Idempotency-Key": lines})
		require.ErrorIs(t, err, errKeyInvalid, "%q", lines)
		assert.Empty(t, key)
	}
}

// A quoted key is what a Structured Field parser reads, and only such a text is one.
func FuzzKeyIn(f *testing.F) {
	for _, seed := range []string{
		"k", `"k"`, `"k\"l"`, `"k";a=1`, ` "k"	`, "k,l", "", `""`, "é", "..", `"a\\"`, "?1", ":Zm9v:", `"k" `, "1.5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, err := keyIn(http.Header{"Idempotency-Key": {line}})
		text := strings.Trim(line, " \t")
		item, parseErr := httpsfv.UnmarshalItem([]string{text})
		content, isString := "", false
		if parseErr == nil && len(item.Params.Names()) == 0 {
			content, isString = item.Value.(string)
		}
		if err != nil {
			if isString {
				_, err = idempotency.NewKey(content)
				require.Error(t, err, "a Structured Field String that is a key is accepted")
			}
			return
		}
		again, err := idempotency.NewKey(string(key))
		require.NoError(t, err)
		require.Equal(t, again, key)
		if strings.HasPrefix(text, `"`) {
			require.True(t, isString)
			require.Equal(t, content, string(key))
		} else {
			require.Equal(t, text, string(key))
		}
	})
}
