// Package identity tells whose token it is in jwt mode: it verifies a token's signature and claims, keeps the key set of
// an identity provider, and mints tokens for development. It decides nothing about what a caller may do.
package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kakutei/interfaces/httpapi"
)

const (
	// maxToken is the longest token that is looked at, in bytes: half of what net/http takes as a header.
	maxToken = 16 << 10
	// leeway is how far the clocks of issuer and service may differ (docs/contract.md, Authentication).
	leeway = 30 * time.Second
)

// Claims of a token, beside those of RFC 7519.
const (
	claimCompanies = "companies"
	claimScope     = "scope" // RFC 8693 §4.2
	// scopeOperator makes an operator of a caller, who stays a customer.
	scopeOperator = "operator"
)

// Keys are whom tokens are believed: a Secret or a KeySet.
type Keys interface {
	// key is the one for a token with this kid (empty: it names none) and this algorithm. The algorithm never chooses
	// the kind of the key: a key has its own, and refuses every other. Errors: a rejection, or another fault when the
	// keys cannot be had.
	key(ctx context.Context, kid, algorithm string) (any, error)
}

// Config says which tokens are accepted.
type Config struct {
	Keys     Keys
	Audience string // one of those in aud; empty: aud does not matter
	Issuer   string // iss; empty: iss does not matter
}

// Tokens is the jwt mode: whoever has a verified JWT is its subject. It implements httpapi.Authenticator.
type Tokens struct {
	keys   Keys
	parser *jwt.Parser
}

// NewTokens accepts tokens as configured.
func NewTokens(c Config) *Tokens {
	options := []jwt.ParserOption{
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(), jwt.WithIssuer(c.Issuer),
	}
	if c.Audience != "" {
		options = append(options, jwt.WithAudience(c.Audience))
	}
	return &Tokens{keys: c.Keys, parser: jwt.NewParser(options...)}
}

// rejection is why a token is refused, as a class. It is all that is logged of it: what stands in the token, and what a
// library says of that, is the sender's text or a secret.
type rejection string

// The classes of rejections.
const (
	tooLong      rejection = "the token is too long"
	malformed    rejection = "the token is malformed"
	badAlgorithm rejection = "the algorithm is not the key's"
	critical     rejection = "the token demands what is not understood here"
	unknownKey   rejection = "the key is not known"
	badSignature rejection = "the signature is not valid"
	expired      rejection = "the token is expired"
	early        rejection = "the token is not valid yet"
	badAudience  rejection = "the audience is another"
	badIssuer    rejection = "the issuer is another"
	missing      rejection = "a claim is missing"
	badClaim     rejection = "a claim is not what it must be"
)

// Error is the class.
func (r rejection) Error() string { return string(r) }

// Authenticate verifies the token. Errors: httpapi.ErrUnauthenticated, whose cause is the class of the reason; another
// fault when the keys cannot be had.
func (t *Tokens) Authenticate(ctx context.Context, token string) (httpapi.Caller, error) {
	caller, err := t.verify(ctx, token)
	var reason rejection
	if errors.As(err, &reason) {
		return httpapi.Caller{}, httpapi.ErrUnauthenticated.Because(reason)
	}
	return caller, err
}

func (t *Tokens) verify(ctx context.Context, token string) (httpapi.Caller, error) {
	if len(token) > maxToken {
		return httpapi.Caller{}, tooLong
	}
	// A map, since names of claims are case-sensitive and encoding/json is not: in a struct "SCOPE" would be scope.
	claims := jwt.MapClaims{}
	var unavailable error
	_, err := t.parser.ParseWithClaims(token, claims, func(parsed *jwt.Token) (any, error) {
		key, err := t.keyOf(ctx, parsed)
		if reason := rejection(""); err != nil && !errors.As(err, &reason) {
			unavailable = err
		}
		return key, err
	})
	switch {
	case unavailable != nil:
		return httpapi.Caller{}, unavailable
	case err != nil:
		return httpapi.Caller{}, classOf(err)
	case !onCalendar(claims):
		return httpapi.Caller{}, badClaim
	}
	return callerIn(claims)
}

// lastYear is the end of the year 9999 in seconds of Unix time, the last that RFC 3339 can write.
const lastYear = 253402300799

// onCalendar tells whether the token's times are of the years that there are. Further ones are milliseconds by mistake,
// which would let a token live for ever, or wrap around in the library's integers: then a token that is not valid for ages
// would be valid now.
func onCalendar(claims jwt.MapClaims) bool {
	for _, name := range []string{"exp", "nbf"} {
		if seconds, isNumber := claims[name].(float64); isNumber && (seconds < 0 || seconds > lastYear) {
			return false
		}
	}
	return true
}

func (t *Tokens) keyOf(ctx context.Context, parsed *jwt.Token) (any, error) {
	if _, demands := parsed.Header["crit"]; demands { // RFC 7515 §4.1.11
		return nil, critical
	}
	kid, isText := parsed.Header["kid"].(string)
	if _, given := parsed.Header["kid"]; given && (!isText || kid == "") {
		return nil, malformed
	}
	return t.keys.key(ctx, kid, parsed.Method.Alg())
}

// classOf is the class of what the parser says. The order matters: a bad signature comes before any claim, and of
// claims the one that a client can do something about comes first.
func classOf(err error) rejection {
	var own rejection
	if errors.As(err, &own) {
		return own
	}
	for _, known := range []struct {
		is    error
		class rejection
	}{
		{jwt.ErrTokenMalformed, malformed},
		{jwt.ErrTokenUnverifiable, badAlgorithm},
		{jwt.ErrTokenSignatureInvalid, badSignature},
		{jwt.ErrTokenExpired, expired},
		{jwt.ErrTokenNotValidYet, early},
		{jwt.ErrTokenInvalidAudience, badAudience},
		{jwt.ErrTokenInvalidIssuer, badIssuer},
		{jwt.ErrTokenRequiredClaimMissing, missing},
	} {
		if errors.Is(err, known.is) {
			return known.class
		}
	}
	return badClaim
}

// callerIn is whom verified claims name. A claim of the wrong kind is no claim that could be left out: the issuer means
// something by it.
func callerIn(claims jwt.MapClaims) (httpapi.Caller, error) {
	actor, isText := claims["sub"].(string)
	if !isText || !httpapi.IsName(actor) {
		return httpapi.Caller{}, badClaim
	}
	companies, err := namesIn(claims[claimCompanies])
	if err != nil {
		return httpapi.Caller{}, err
	}
	scope, isText := claims[claimScope].(string)
	if !isText && claims[claimScope] != nil {
		return httpapi.Caller{}, badClaim
	}
	return httpapi.Caller{
		Actor: actor, Companies: companies,
		Customer: true, Operator: slices.Contains(strings.Split(scope, " "), scopeOperator),
	}, nil
}

// namesIn reads a list of companies; absent or null is none.
func namesIn(claim any) ([]string, error) {
	if claim == nil {
		return nil, nil
	}
	list, isList := claim.([]any)
	if !isList {
		return nil, badClaim
	}
	names := make([]string, len(list))
	for i, element := range list {
		name, isText := element.(string)
		if !isText || !httpapi.IsName(name) {
			return nil, badClaim
		}
		names[i] = name
	}
	return names, nil
}

// Grant is what a token for development says.
type Grant struct {
	Actor     string
	Companies []string
	Scope     string // words with blanks between them
	Until     time.Time
	Audience  string // empty: none is named
	Issuer    string // empty: none is named
}

// Mint signs a token for development. The error says which part of the grant no token can have.
func (s Secret) Mint(g Grant) (string, error) {
	claims := jwt.MapClaims{"sub": g.Actor, "exp": jwt.NewNumericDate(g.Until)}
	if !httpapi.IsName(g.Actor) {
		return "", fmt.Errorf("the actor %.140q is not %s", g.Actor, aName)
	}
	for _, company := range g.Companies {
		if !httpapi.IsName(company) {
			return "", fmt.Errorf("the company %.140q is not %s", company, aName)
		}
	}
	if len(g.Companies) > 0 {
		claims[claimCompanies] = g.Companies
	}
	for name, text := range map[string]string{claimScope: g.Scope, "aud": g.Audience, "iss": g.Issuer} {
		if text != "" {
			claims[name] = text
		}
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(s.bytes)
	if err == nil && len(token) > maxToken {
		err = fmt.Errorf("the token would be longer than %d bytes", maxToken)
	}
	return token, err
}

const aName = `1 to 128 visible ASCII characters without "@" and "|"`
