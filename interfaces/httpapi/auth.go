package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"kakutei/domain/fault"
)

// Caller is who a token stands for.
type Caller struct {
	// Actor is on whose behalf the request runs: 1–128 visible ASCII characters without "@" and "|".
	Actor string
	// Companies are those whose books the caller may write and read.
	Companies []string
	// Customer and Operator are the roles; a caller may have both.
	Customer, Operator bool
}

// Authenticator tells who a bearer token stands for.
type Authenticator interface {
	// Authenticate returns the token's caller. Errors: ErrUnauthenticated; or another fault when the token could not
	// be checked.
	Authenticate(ctx context.Context, token string) (Caller, error)
}

var (
	// ErrUnauthenticated says that a token is missing or stands for nobody.
	ErrUnauthenticated = fault.New("unauthenticated", fault.AfterFix, "a valid bearer token is needed")

	errForbidden = fault.New("forbidden", fault.AfterFix, "this token may not do this")
)

// DemoTokens is the demo mode: whoever says "demo-alice" is alice, "demo-alice@company-1" is alice who may post for
// company-1, and "demo-operator" is the operator and no customer.
type DemoTokens struct{}

const demoOperator = "operator"

// Authenticate reads the caller from the token itself. Error: ErrUnauthenticated.
func (DemoTokens) Authenticate(_ context.Context, token string) (Caller, error) {
	name, isDemo := strings.CutPrefix(token, "demo-")
	actor, company, hasCompany := strings.Cut(name, "@")
	if !isDemo || !IsName(actor) || hasCompany && !IsName(company) {
		return Caller{}, ErrUnauthenticated
	}
	caller := Caller{Actor: actor, Customer: actor != demoOperator, Operator: actor == demoOperator}
	if hasCompany {
		caller.Companies = []string{company}
	}
	return caller, nil
}

// IsName is the rule for actors and companies: both become parts of keys that are joined with "|".
func IsName(text string) bool {
	return len(text) >= 1 && len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x21 || r > 0x7e || r == '@' || r == '|'
	})
}

// caller is who sent the request. Errors: ErrUnauthenticated, or whatever the authenticator says.
func (s *Server) caller(c echo.Context) (Caller, error) {
	challenge := `Bearer realm="kakutei"` // RFC 6750 §3
	token, given := bearer(c.Request().Header)
	if !given {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
		return Caller{}, ErrUnauthenticated
	}
	caller, err := s.config.Auth.Authenticate(c.Request().Context(), token)
	if err != nil {
		if f, ok := fault.From(err); ok && f.Code() == ErrUnauthenticated.Code() {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge+`, error="invalid_token"`)
		}
		return Caller{}, err
	}
	visitOf(c).actor = caller.Actor
	return caller, nil
}

// bearer is the token of the one Authorization header. The scheme's case does not matter (RFC 9110 §11.1).
func bearer(h http.Header) (token string, given bool) {
	lines := h[echo.HeaderAuthorization]
	if len(lines) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	token = strings.Trim(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// customer makes the checks 2 and 3: it is the caller, who must be a customer. Errors: as caller; errForbidden,
// errTooMany.
func (s *Server) customer(c echo.Context) (Caller, error) {
	caller, err := s.caller(c)
	if err == nil && !caller.Customer {
		err = errForbidden
	}
	if err == nil {
		err = s.withinRate(caller)
	}
	return caller, err
}

// onlyLoopback refuses requests that are addressed to another host name. In demo mode, where a token is no secret, it
// keeps other sites' pages from driving the service through a visitor's browser, DNS rebinding included.
func (s *Server) onlyLoopback(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.config.AnyHost && !isLoopback(c.Request().Host) {
			return errForbidden.Saying("the service answers requests for a loopback name or address only")
		}
		return next(c)
	}
}

// isLoopback judges a Host header, with or without a port.
func isLoopback(host string) bool {
	name, port, err := net.SplitHostPort(host)
	switch {
	case err != nil && strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"):
		name = host[1 : len(host)-1]
	case err != nil:
		name = host
	case strings.Trim(port, "0123456789") != "":
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// operator makes the checks 2 and 3: it is the name of the caller, who must be an operator. Errors: as customer.
func (s *Server) operator(c echo.Context) (name string, err error) {
	caller, err := s.caller(c)
	if err == nil && !caller.Operator {
		err = errForbidden
	}
	if err == nil {
		err = s.withinRate(caller)
	}
	return caller.Actor, err
}
