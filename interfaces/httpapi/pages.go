package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
	"kakutei/interfaces/reference"
	"kakutei/interfaces/web"
)

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

// getStart answers GET / where there is no shop: how to connect.
func (s *Server) getStart(c echo.Context) error {
	token := cmp.Or(s.config.ExampleToken, placeholder)
	place, confirm := Examples(c.Scheme()+"://"+c.Request().Host, token)
	return s.sendPage(c, web.Start, "start.title", web.StartContent{Place: place, Confirm: confirm, Token: token})
}

// getPolicy answers GET /docs/idempotency: the published key policy.
func (s *Server) getPolicy(c echo.Context) error {
	example, err := s.reader(c).Commands("confirmPayment")
	if err != nil {
		return err
	}
	return s.sendPage(c, web.Policy, "policy.title", web.PolicyContent{
		MaxLength: idempotency.MaxKeyLength, Example: example,
		Retention: inWords(s.config.Retention), Lease: inWords(s.config.Lease),
	})
}

// getDescription answers GET /openapi.json: the interface, as programs read it.
func getDescription(c echo.Context) error {
	return send(c, http.StatusOK, typeJSON, reference.Document())
}

// getReference answers GET /docs: the interface, as people read it.
func (s *Server) getReference(c echo.Context) error {
	return s.sendPage(c, web.Reference, "reference.title", s.reader(c))
}

// reader is for whom the examples are.
func (s *Server) reader(c echo.Context) reference.Reader {
	return reference.Reader{Base: c.Scheme() + "://" + c.Request().Host, Demo: s.config.ExampleToken != ""}
}

// pathProblem is where a problem document's type leads.
const pathProblem = "/problems/:code"

// getProblem answers GET /problems/{code}.
func (s *Server) getProblem(c echo.Context) error {
	p, published := problemsByCode[fault.Code(pathName(c, "code"))]
	if !published {
		return errNoRoute.Saying("there is no problem with this code")
	}
	return s.sendPage(c, web.Problem, "problem.code."+string(p.code)+".title", web.ProblemContent{
		Code: string(p.code), Status: fmt.Sprintf("%d %s", p.status, http.StatusText(p.status)), Retry: string(p.retry),
		Example: reference.Problem(string(p.code)),
	})
}

// getAsset answers GET /assets/{name}: what the pages load.
func getAsset(c echo.Context) error {
	asset, found := web.AssetNamed(pathName(c, "name"))
	if !found {
		return errNoRoute
	}
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-cache")
	if c.QueryParam("v") == asset.Version {
		header.Set(echo.HeaderCacheControl, "public, max-age=31536000, immutable")
	}
	return send(c, http.StatusOK, asset.MediaType, asset.Body)
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

// sendPage leads to the lab where there is one.
func (s *Server) sendPage(c echo.Context, page *web.Page, title string, content any) error {
	if _, isThere := s.config.Pages[web.LabPath]; isThere {
		page = page.Touring()
	}
	return page.Send(c.Response(), c.Request(), title, content)
}
