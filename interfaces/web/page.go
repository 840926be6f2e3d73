// Package web is how people see the service: the layout of all pages, their texts in each language, their style and
// scripts. What a page shows is handed in; what it loads, it loads from here.
package web

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

//go:embed pages
var files embed.FS

// Page is a template within the layout.
type Page struct {
	template *template.Template
	script   string
	style    string   // beside the style of all pages
	parts    []string // files of templates that the page's own one uses
	sections []string // of the texts that the script needs
	framed   bool
	tour     bool
}

// Option is something that not every page has.
type Option func(*Page)

// Script has the page run a script of assets/, which gets the texts of these sections.
func Script(name string, sections ...string) Option {
	return func(p *Page) { p.script, p.sections = name, sections }
}

// Style has the page load a style of assets/ beside the one of all pages.
func Style(name string) Option {
	return func(p *Page) { p.style = name }
}

// Parts has the page's template use those that these files define.
func Parts(files ...string) Option {
	return func(p *Page) { p.parts = files }
}

// Tour has the page lead to the pages that are there in demo mode only, as it is itself.
func Tour() Option {
	return func(p *Page) { p.tour = true }
}

// Touring is the page where those of demo mode are there, too.
func (p *Page) Touring() *Page {
	touring := *p
	touring.tour = true
	return &touring
}

// Framed lets the service's own pages show the page in a frame.
func Framed() Option {
	return func(p *Page) { p.framed = true }
}

// NewPage reads a page's template: a file that defines "content". What the template sees is a View.
func NewPage(from fs.FS, file string, options ...Option) *Page {
	layout := template.Must(template.New("layout.html").ParseFS(files, "pages/layout.html"))
	p := &Page{}
	for _, set := range options {
		set(p)
	}
	p.template = template.Must(layout.ParseFS(from, append(p.parts, file)...))
	return p
}

// View is what a page's template sees.
type View struct {
	Language Language
	Path     string // of the page
	Title    string // the key of its text
	Content  any    // whatever the page shows
	query    url.Values
	page     *Page
}

// Text is the text under the key, as Language.Text has it.
func (v View) Text(key string, pairs ...any) (template.HTML, error) {
	return v.Language.Text(key, pairs...)
}

// Plain is the text for places where there can be no markup: an attribute, the title.
func (v View) Plain(key string, pairs ...any) (string, error) {
	text, err := v.Language.Text(key, pairs...)
	return string(text), err
}

// With is the view of a part of the page, which shows something else in the same language.
func (v View) With(content any) View {
	v.Content = content
	return v
}

// Languages are those to choose from.
func (View) Languages() []Language { return Languages }

// In is the address of the same page, showing the same, in a language.
func (v View) In(l Language) string {
	query := maps.Clone(v.query)
	query.Set(languageName, string(l))
	return v.Path + "?" + query.Encode()
}

// Asset is the address of a file of assets/.
func (View) Asset(name string) (string, error) { return AssetPath(name) }

// Style is the name of the page's own style, empty if it has none.
func (v View) Style() string { return v.page.style }

// Script is the name of the page's script, empty if it has none.
func (v View) Script() string { return v.page.script }

// Within tells whether the page is below the path.
func (v View) Within(path string) bool { return strings.HasPrefix(v.Path, path) }

// Tour tells whether the pages of demo mode are there.
func (v View) Tour() bool { return v.page.tour }

// Framed tells whether the page stands in a frame, where the layout is in the way.
func (v View) Framed() bool { return v.page.framed }

// Texts are those for the script.
func (v View) Texts() map[string]string { return v.Language.Section(v.page.sections...) }

// Send answers with the page in the reader's language. title is the key of its title's text. Error: of the template,
// then nothing was sent.
func (p *Page) Send(w http.ResponseWriter, r *http.Request, title string, content any) error {
	language, chosen := languageFor(r)
	var text bytes.Buffer
	err := p.template.Execute(&text, View{
		Language: language, Path: r.URL.Path, Title: title, Content: content, query: r.URL.Query(), page: p,
	})
	if err != nil {
		return err
	}
	if chosen {
		language.remember(w)
	}
	header := w.Header()
	header.Set("Content-Security-Policy", p.policy())
	if p.framed {
		header.Set("X-Frame-Options", "SAMEORIGIN") // for browsers that do not know frame-ancestors
	}
	header.Set("Content-Type", "text/html; charset=UTF-8")
	header.Set("Content-Language", string(language))
	header.Set("Content-Length", strconv.Itoa(text.Len()))
	header.Set("Cache-Control", "no-cache")
	header.Add("Vary", "Cookie, Accept-Language")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text.Bytes()) // the client may be gone
	return nil
}

// policy lets a page load nothing but what stands here, and run nothing but its script (CSP Level 3).
func (p *Page) policy() string {
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'self'; img-src 'self'"
	if p.script != "" {
		policy += "; script-src 'self'; connect-src 'self'; frame-src 'self'"
	}
	if p.framed {
		return policy + "; frame-ancestors 'self'"
	}
	return policy + "; frame-ancestors 'none'"
}
