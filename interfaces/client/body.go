package client

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// written is a request's body: the bytes that every try sends. A text that is no text is refused, where encoding/json
// would write another one in its place. Error: errNotText.
func written(request any, texts ...string) ([]byte, error) {
	if slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) }) {
		return nil, errNotText
	}
	return json.Marshal(request)
}
