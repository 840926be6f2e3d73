package scenario

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// operatorName is who looks after the service.
const operatorName = "operator"

// DemoCallers are believed as they are, in demo mode. A run has names of its own: what an earlier one has left under
// its names does not matter to it.
type DemoCallers struct{ Run string }

// Caller implements Callers.
func (d DemoCallers) Caller(name, company string) (Caller, error) {
	if name == operatorName {
		return Caller{Actor: operatorName, Token: "demo-operator"}, nil
	}
	actor := name + "-" + d.Run
	return Caller{Actor: actor, Company: company, Token: "demo-" + actor + "@" + company}, nil
}

// MintedCallers have JWTs that are signed with the service's own secret (HS256).
type MintedCallers struct {
	Run      string
	Secret   []byte
	Issuer   string // empty: none is named
	Audience string // empty: none is named
	Now      func() time.Time
}

// tokenLife is longer than any run.
const tokenLife = time.Hour

// Caller implements Callers.
func (m MintedCallers) Caller(name, company string) (Caller, error) {
	claims := map[string]any{"sub": name + "-" + m.Run, "exp": m.Now().Add(tokenLife).Unix()}
	if name == operatorName {
		claims["scope"], company = "operator", ""
	} else {
		claims["companies"] = []string{company}
	}
	if m.Issuer != "" {
		claims["iss"] = m.Issuer
	}
	if m.Audience != "" {
		claims["aud"] = m.Audience
	}
	token, err := signed(claims, m.Secret)
	return Caller{Actor: name + "-" + m.Run, Company: company, Token: token}, err
}

// signed is a JWT (RFC 7519) with an HS256 signature.
func signed(claims map[string]any, secret []byte) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(payload)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// GivenCallers have the tokens that the user has given, by name. Whoever has none is asked for elsewhere.
type GivenCallers struct {
	Tokens map[string]string // by the name in lower case
	Else   Callers           // nil: whoever has no token is not there
}

// Caller implements Callers.
func (g GivenCallers) Caller(name, company string) (Caller, error) {
	token, given := g.Tokens[name]
	switch {
	case !given && g.Else != nil:
		return g.Else.Caller(name, company)
	case !given:
		return Caller{}, notApplicable{"there is no token for " + name}
	}
	if actor, demo := strings.CutPrefix(token, "demo-"); demo {
		actor, own, _ := strings.Cut(actor, "@")
		return Caller{Actor: actor, Company: own, Token: token}, nil
	}
	claims, err := claimsOf(token)
	if err != nil {
		return Caller{}, fmt.Errorf("the token of %s: %w", name, err)
	}
	own := ""
	switch {
	case slices.Contains(claims.Companies, company):
		own = company
	case len(claims.Companies) > 0:
		own = claims.Companies[0]
	}
	return Caller{Actor: claims.Subject, Company: own, Token: token}, nil
}

type claims struct {
	Subject   string   `json:"sub"`
	Companies []string `json:"companies"`
}

var errNoJWT = errors.New("it is neither a demo token nor a JWT")

// claimsOf reads a token without verifying it: that is the service's part.
func claimsOf(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errNoJWT
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errNoJWT
	}
	var c claims
	if json.Unmarshal(payload, &c) != nil || c.Subject == "" {
		return claims{}, errNoJWT
	}
	return c, nil
}
