package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

//go:embed pages
var pageFiles embed.FS

var (
	pageStyle = func() template.CSS {
		style, err := pageFiles.ReadFile("pages/style.css")
		if err != nil {
			panic(err) // it is embedded
		}
		return template.CSS(style) //nolint:gosec // ours, not a visitor's
	}()
	// pagePolicy lets a page load nothing but its own style, by its hash (CSP Level 3).
	pagePolicy = func() string {
		sum := sha256.Sum256([]byte(pageStyle))
		return "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" +
			base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}()

	startPage   = parsePage("pages/start.html")
	policyPage  = parsePage("pages/policy.html")
	problemPage = parsePage("pages/problem.html")
)

func parsePage(name string) *template.Template {
	return template.Must(template.New("layout.html").ParseFS(pageFiles, "pages/layout.html", name))
}

// placeholder stands where a reader's own token belongs.
const placeholder = "YOUR-TOKEN"

// Examples are two command lines that work when they are pasted into a shell one after the other: the first places an
// order and keeps its id for the second, which confirms its payment. Pasted again, the first one places another order; the
// second one is a retry and gets the same answer. Without a token they hold a placeholder for one.
func Examples(base, token string) (place, confirm string) {
	token = cmp.Or(token, placeholder)
	const request = `curl -sS %s -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' ` +
		`-H "Idempotency-Key: %s" -d '%s'`
	place = "ORDER=$(" + fmt.Sprintf(request, base+pathOrders, token, "place-$(date +%s%N)",
		`{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}`) +
		` | sed -n 's/.*"orderId":"\([^"]*\)".*/\1/p'); echo "order $ORDER"`
	confirm = fmt.Sprintf(request, base+pathOrders+"/$ORDER/confirm-payment", token, "pay-$ORDER",
		`{"amount":1000,"currency":"JPY"}`) + "; echo"
	return place, confirm
}

// getStart answers GET /: how to connect.
func (s *Server) getStart(c echo.Context) error {
	token := cmp.Or(s.config.ExampleToken, placeholder)
	place, confirm := Examples(c.Scheme()+"://"+c.Request().Host, token)
	return sendPage(c, startPage, struct {
		Title, Place, Confirm, Token string
	}{"Kakutei", place, confirm, token})
}

// getPolicy answers GET /docs/idempotency: the published key policy.
func (s *Server) getPolicy(c echo.Context) error {
	return sendPage(c, policyPage, struct {
		Title            string
		MaxLength        int
		Retention, Lease string
	}{
		"The idempotency key policy", idempotency.MaxKeyLength,
		inWords(s.config.Retention), inWords(s.config.Lease),
	})
}

// getProblem answers GET /problems/{code}.
func (s *Server) getProblem(c echo.Context) error {
	p, published := problemsByCode[fault.Code(pathName(c, "code"))]
	if !published {
		return errNoRoute.Saying("there is no problem with this code")
	}
	return sendPage(c, problemPage, struct {
		Title, About, Advice string
		Code                 fault.Code
		Status               string
		Retry, RetryMeaning  string
	}{
		p.title, p.about, p.advice, p.code, fmt.Sprintf("%d %s", p.status, http.StatusText(p.status)),
		string(p.retry), retryMeanings[p.retry],
	})
}

// retryMeanings are what the member retry tells a client (docs/contract.md, Problems).
var retryMeanings = map[fault.Advice]string{
	fault.SameKey:  "Send the identical request again with the same key, after Retry-After.",
	fault.NewKey:   "The answer for this key is final. Correct the intent and use a new key.",
	fault.AfterFix: "The request was wrong and the key was not used. Fix it; the same key may be used.",
	fault.Never:    "It is done already. Do not send it again.",
}

// inWords is a duration as people write it: "24h", not "24h0m0s".
func inWords(d time.Duration) string {
	text := d.String()
	if minutes, whole := strings.CutSuffix(text, "m0s"); whole {
		text = minutes + "m"
	}
	if hours, whole := strings.CutSuffix(text, "h0m"); whole {
		text = hours + "h"
	}
	return text
}

func sendPage(c echo.Context, page *template.Template, content any) error {
	var text bytes.Buffer
	err := page.Execute(&text, struct {
		Style   template.CSS
		Content any
	}{pageStyle, content})
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentSecurityPolicy, pagePolicy)
	return send(c, http.StatusOK, echo.MIMETextHTMLCharsetUTF8, text.Bytes())
}
