package idempotency_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/idempotency"
)

func TestKeys(t *testing.T) {
	for name, text := range map[string]string{
		"a UUID":                   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		"one character":            "k",
		"255 characters (C33)":     strings.Repeat("k", 255),
		"three dots":               "...",
		"a dot and more":           ".k",
		"delimiters (C39)":         "a::b|c:d/e@f",
		"the first visible one":    "!",
		"the last visible one":     "~",
		"every other visible one":  "#$%&'()*+-./0123456789:<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`" + "abcdefghijklmnopqrstuvwxyz{|}",
		"what looks like a number": "0",
	} {
		key, err := idempotency.NewKey(text)
		require.NoError(t, err, name)
		assert.Equal(t, idempotency.Key(text), key, name)
	}
}

func TestWhatIsNoKey(t *testing.T) {
	const characters = `only visible ASCII characters except " \ , ; are allowed`
	for name, c := range map[string]struct{ text, says string }{
		"empty (C35)":           {"", "it is empty"},
		"blank (C35)":           {" ", characters},
		"a tab (C35)":           {"\t", characters},
		"256 characters (C33)":  {strings.Repeat("k", 256), "it is longer than 255 characters"},
		"4000 characters (C33)": {strings.Repeat("k", 4000), "it is longer than 255 characters"},
		"255 wide ones (C33)":   {strings.Repeat("鍵", 255), "it is longer than 255 characters"},
		"a dot":                 {".", `"." and ".." cannot stand in a URL path`},
		"two dots":              {"..", `"." and ".." cannot stand in a URL path`},
		"a space inside (C37)":  {"a b", characters},
		"a space before":        {" k", characters},
		"a space after":         {"k ", characters},
		"a line's end":          {"k\n", characters},
		"a NUL (C37)":           {"k\x00", characters},
		"a DEL":                 {"k\x7f", characters},
		"a byte above (C37)":    {"a\xffb", characters},
		"a letter of Latin-1":   {"é", characters},
		"a kanji (C37)":         {"鍵-1", characters},
		"a full-width digit":    {"１", characters},
		"a quote":               {`a"b`, characters},
		"quotes around":         {`"k"`, characters},
		"a backslash":           {`a\b`, characters},
		"a comma":               {"a,b", characters},
		"a semicolon":           {"a;b", characters},
	} {
		key, err := idempotency.NewKey(c.text)
		require.ErrorIs(t, err, idempotency.ErrInvalidKey, name)
		require.EqualError(t, err, "idempotency: not a key: "+c.says, name)
		assert.Empty(t, key, name)
	}
}

func TestTheErrorNeverRepeatsTheKey(t *testing.T) {
	for _, text := range []string{"secret-key,", "secret-key\x00", strings.Repeat("secret-key", 26)} {
		_, err := idempotency.NewKey(text)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "secret-key")
	}
}

func TestCaseMatters(t *testing.T) {
	lower, err := idempotency.NewKey("key")
	require.NoError(t, err)
	upper, err := idempotency.NewKey("KEY")
	require.NoError(t, err)
	assert.NotEqual(t, lower, upper)
}

func FuzzNewKey(f *testing.F) {
	for _, seed := range []string{"", ".", "..", "k", "a b", "鍵", "\xff", `"k"`, strings.Repeat("k", 256)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		allowed := func(c rune) bool { return c > ' ' && c < 0x7f && !strings.ContainsRune(`"\,;`, c) }
		legal := len(text) >= 1 && len(text) <= 255 && text != "." && text != ".." &&
			strings.IndexFunc(text, func(c rune) bool { return !allowed(c) }) < 0
		key, err := idempotency.NewKey(text)
		if !legal {
			require.ErrorIs(t, err, idempotency.ErrInvalidKey)
			require.Empty(t, key)
			return
		}
		require.NoError(t, err)
		require.Equal(t, text, string(key), "neither cut nor changed")
	})
}
