package web

import "net/http"

// The pages that belong to the service itself: how to connect, what a key is, what a problem means.
var (
	Start   = NewPage(files, "pages/start.html")   // shows StartContent
	Policy  = NewPage(files, "pages/policy.html")  // shows PolicyContent
	Problem = NewPage(files, "pages/problem.html") // shows ProblemContent
	// Reference shows a reference.Reader, which imports this package.
	Reference = NewPage(files, "pages/reference.html")
)

// The shop, where a payment can be watched and spoilt, and its second tab, which is a page of its own in a frame.
var (
	shop    = NewPage(files, "pages/shop.html", Script("shop.js", "shop"), Tour())
	shopTab = NewPage(files, "pages/tab.html", Script("shop.js", "shop"), Framed())
)

// Shop is the shop's pages, by their paths. It works in demo mode only: its customers' tokens are no secret. The
// examples are command lines that place an order and pay for it, for a service at the base address.
func Shop(examples func(base string) (place, confirm string)) map[string]http.Handler {
	return map[string]http.Handler{
		"/": handler(shop, "shop.title", func(r *http.Request) any {
			place, confirm := examples("http://" + r.Host)
			return StartContent{Place: place, Confirm: confirm}
		}),
		"/second-tab": handler(shopTab, "shop.tab.title", func(*http.Request) any { return nil }),
	}
}

func handler(p *Page, title string, content func(r *http.Request) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.Send(w, r, title, content(r)); err != nil {
			panic(err) // a template and its texts do not fit: a test would have found it
		}
	})
}

// StartContent is how to connect.
type StartContent struct {
	Place, Confirm string // command lines
	Token          string
}

// PolicyContent is what of the policy is configured, and an example.
type PolicyContent struct {
	MaxLength        int // of a key, in characters
	Retention, Lease string
	Example          string // command lines
}

// ProblemContent is a problem whose texts are under "problem.code.<Code>".
type ProblemContent struct {
	Code, Status, Retry string
	Example             string // a problem document of this kind
}
