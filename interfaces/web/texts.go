package web

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Language is one in which all pages can be read.
type Language string

// The languages, by their tags (RFC 5646).
const (
	English  Language = "en"
	Japanese Language = "ja"
)

// Languages are all of them; the first is for those who can read none.
var Languages = []Language{English, Japanese}

//go:embed texts
var textFiles embed.FS

// texts has every text of every page: one file per language, keys joined with dots.
var texts = func() map[Language]map[string]string {
	read := make(map[Language]map[string]string, len(Languages))
	for _, l := range Languages {
		file, err := textFiles.ReadFile("texts/" + string(l) + ".json")
		var sections map[string]any
		if err = errors.Join(err, json.Unmarshal(file, &sections)); err != nil {
			panic(err) // it is embedded, and tested
		}
		read[l] = map[string]string{}
		flatten(read[l], "", sections)
	}
	return read
}()

func flatten(into map[string]string, prefix string, section map[string]any) {
	for name, value := range section {
		switch value := value.(type) {
		case map[string]any:
			flatten(into, prefix+name+".", value)
		case string:
			into[prefix+name] = value
		default:
			panic(fmt.Sprintf("web: text %s%s is neither a text nor a section", prefix, name))
		}
	}
}

// Text is the text under the key. It may hold markup, which is ours, and places like {name}: each takes the value that
// follows its name in the pairs, with nothing of it read as markup. Error: there is no such text.
func (l Language) Text(key string, pairs ...any) (template.HTML, error) {
	text, known := texts[l][key]
	if !known {
		return "", fmt.Errorf("web: there is no text %q in %s", key, l)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		place := fmt.Sprintf("{%v}", pairs[i])
		text = strings.ReplaceAll(text, place, template.HTMLEscapeString(fmt.Sprint(pairs[i+1])))
	}
	return template.HTML(text), nil //nolint:gosec // from our own files, what is put into it is escaped
}

// Section has the texts whose keys begin with one of the names, for a script.
func (l Language) Section(names ...string) map[string]string {
	section := maps.Clone(texts[l])
	maps.DeleteFunc(section, func(key, _ string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(key, name+".") })
	})
	return section
}

const (
	languageName = "lang"      // of the cookie and of the query's parameter
	oneYear      = 8760 * 3600 // seconds
)

// languageFor is the reader's: chosen just now in the query, else remembered in a cookie, else the browser's.
func languageFor(r *http.Request) (l Language, chosen bool) {
	if l = Language(r.URL.Query().Get(languageName)); slices.Contains(Languages, l) {
		return l, true
	}
	if cookie, err := r.Cookie(languageName); err == nil && slices.Contains(Languages, Language(cookie.Value)) {
		return Language(cookie.Value), false
	}
	for wish := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") { // browsers send the best first
		tag, _, _ := strings.Cut(strings.TrimSpace(wish), ";")
		tag, _, _ = strings.Cut(tag, "-")
		if l = Language(strings.ToLower(tag)); slices.Contains(Languages, l) {
			return l, false
		}
	}
	return Languages[0], false
}

// remember keeps the choice in a cookie that says nothing else.
func (l Language) remember(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // it is no secret, and the service speaks plain HTTP
		Name: languageName, Value: string(l), Path: "/", MaxAge: oneYear, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}
