package reference

import (
	_ "embed"
	"encoding/json"

	"kakutei/interfaces/web"
)

//go:embed openapi.ja.json
var japanese []byte

// translations have what the document says, in other languages, by what it says in English: whoever changes a text there
// finds by a test that its translations are gone.
var translations = map[web.Language]map[string]string{web.Japanese: textsIn(japanese)}

func textsIn(file []byte) (texts map[string]string) {
	must(json.Unmarshal(file, &texts))
	return texts
}

// Translated is a text of the document in a language; as it is where it has no translation.
func Translated(l web.Language, text string) string {
	if other, found := translations[l][text]; found {
		return other
	}
	return text
}
