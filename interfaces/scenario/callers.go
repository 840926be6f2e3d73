package scenario

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kakutei/interfaces/identity"
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

// MintedCallers have JWTs that are signed with the service's own secret.
type MintedCallers struct {
	Run      string
	Secret   identity.Secret
	Issuer   string // empty: none is named
	Audience string // empty: none is named
	Now      func() time.Time
}

// tokenLife is longer than any run.
const tokenLife = time.Hour

// Caller implements Callers.
func (m MintedCallers) Caller(name, company string) (Caller, error) {
	grant := identity.Grant{
		Actor: name + "-" + m.Run, Until: m.Now().Add(tokenLife), Issuer: m.Issuer, Audience: m.Audience,
	}
	if name == operatorName {
		grant.Scope, company = "operator", ""
	} else {
		grant.Companies = []string{company}
	}
	token, err := m.Secret.Mint(grant)
	return Caller{Actor: grant.Actor, Company: company, Token: token}, err
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
