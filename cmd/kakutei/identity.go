package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"kakutei/interfaces/httpapi"
	"kakutei/interfaces/identity"
)

// mintConfig is what tokens say of their issuer, and the secret that signs them.
type mintConfig struct {
	secret   identity.Secret
	audience string
	issuer   string
}

func (c *mintConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_JWT_SECRET", secret: true, set: into(&c.secret, jwtSecret),
			means: "with jwt: the key of HS256, 32 bytes at least",
		},
		{
			name: "KAKUTEI_JWT_AUDIENCE", set: into(&c.audience, claimText),
			means: "with jwt: what aud must name; required with a key set, whose provider signs for others, too",
		},
		{
			name: "KAKUTEI_JWT_ISSUER", set: into(&c.issuer, claimText),
			means: "with jwt: what iss must be; empty: anything",
		},
	}
}

// tokenConfig says which tokens are accepted in jwt mode.
type tokenConfig struct {
	mint mintConfig
	file string // of a key set
	url  string // of a key set
}

func (c *tokenConfig) variables() []variable {
	return append(c.mint.variables(),
		variable{
			name: "KAKUTEI_JWKS_FILE", set: into(&c.file, keySetFile),
			means: "with jwt: the key set of an identity provider (JWKS), a file that may change",
		},
		variable{
			name: "KAKUTEI_JWKS_URL", set: into(&c.url, keySetURL),
			means: "with jwt: where the provider publishes its key set, http:// or https://",
		},
	)
}

// check refuses tokens that nobody, or not only the one who is meant, could sign.
func (c *tokenConfig) check(auth string) error {
	if auth != jwtMode {
		return nil
	}
	const one = "KAKUTEI_AUTH=jwt needs exactly one of KAKUTEI_JWT_SECRET, KAKUTEI_JWKS_FILE and KAKUTEI_JWKS_URL"
	given := c.sources()
	switch {
	case len(given) == 0:
		return errors.New(one + "; there is none")
	case len(given) > 1:
		return errors.New(one + ", not " + strings.Join(given, " and "))
	case c.mint.secret.IsZero() && c.mint.audience == "":
		return fmt.Errorf("KAKUTEI_JWT_AUDIENCE is required with %s: the provider signs tokens for other services, too",
			given[0])
	}
	return nil
}

// sources are the variables that say whose signature counts, as far as they are set.
func (c *tokenConfig) sources() (given []string) {
	for _, source := range []struct {
		name string
		set  bool
	}{
		{"KAKUTEI_JWT_SECRET", !c.mint.secret.IsZero()},
		{"KAKUTEI_JWKS_FILE", c.file != ""},
		{"KAKUTEI_JWKS_URL", c.url != ""},
	} {
		if source.set {
			given = append(given, source.name)
		}
	}
	return given
}

// callers are who is believed.
type callers struct {
	httpapi.Authenticator
	keep func(ctx context.Context) // what has to run meanwhile
}

// callers is whom the service believes. It warns of what may be a mistake. Error: a key set in a file cannot be read.
func (c *serveConfig) callers(ctx context.Context, log *slog.Logger) (callers, error) {
	if c.access.auth == demo {
		if c.access.exposed == exposed {
			log.Warn("DEMO MODE IS EXPOSED: whoever reaches this address may act as anybody", "listen", c.access.listen)
		}
		if given := c.tokens.sources(); len(given) > 0 {
			log.Warn("NO TOKEN IS VERIFIED: KAKUTEI_AUTH is demo", "set", strings.Join(given, " "))
		}
		return callers{httpapi.DemoTokens{}, func(context.Context) {}}, nil
	}
	return c.tokens.callers(ctx, log)
}

func (c *tokenConfig) callers(ctx context.Context, log *slog.Logger) (callers, error) {
	accepted := identity.Config{Keys: c.mint.secret, Audience: c.mint.audience, Issuer: c.mint.issuer}
	if !c.mint.secret.IsZero() {
		return callers{identity.NewTokens(accepted), func(context.Context) {}}, nil
	}
	set, err := c.keySet(ctx, log)
	if err != nil {
		return callers{}, err
	}
	accepted.Keys = set
	return callers{identity.NewTokens(accepted), set.Run}, nil
}

// keySet is the provider's, read once. A provider that is away is no reason not to start: what has begun can be finished
// without it, and tokens are answered 503 until it is back.
func (c *tokenConfig) keySet(ctx context.Context, log *slog.Logger) (*identity.KeySet, error) {
	if c.file != "" {
		set := identity.NewKeySet(identity.File(c.file), log)
		if err := set.Read(ctx); err != nil {
			return nil, fmt.Errorf("KAKUTEI_JWKS_FILE: %w", err)
		}
		return set, nil
	}
	set := identity.NewKeySet(identity.URL(c.url), log)
	if strings.HasPrefix(c.url, "http://") && !onLoopback(hostOf(c.url)) {
		log.Warn("THE KEY SET COMES UNENCRYPTED: whoever is on the way can make tokens", "host", hostOf(c.url))
	}
	if err := set.Read(ctx); err != nil {
		log.Warn("the key set could not be read, no token is accepted until it can", "host", hostOf(c.url), "error", err.Error())
	}
	return set, nil
}

// hostOf is the URL's host with a port: the rest may hold a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname() + ":" + cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// anyHost tells whether requests are answered whatever host name they are addressed to. A token that is no secret needs
// the name as a protection, one that is verified does not.
func (c *accessConfig) anyHost() bool { return c.auth == jwtMode || c.exposed == exposed }

// jwtSecret reads the key of HS256; empty is none. The error never shows it.
func jwtSecret(text string) (identity.Secret, error) {
	if text == "" {
		return identity.Secret{}, nil
	}
	return identity.NewSecret(text)
}

// claimText reads what a claim must be: a text as a person would write it into a setting.
func claimText(text string) (string, error) {
	if len(text) > 256 || strings.ContainsFunc(text, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return "", fmt.Errorf("%.80q is not 1 to 256 visible ASCII characters", text)
	}
	return text, nil
}

// keySetFile reads the path of a key set with a key that can be used.
func keySetFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	set := identity.NewKeySet(identity.File(path), slog.New(slog.DiscardHandler))
	if err := set.Read(context.Background()); err != nil {
		return "", fmt.Errorf("%.200q: %w", path, err)
	}
	if set.Len() == 0 {
		return "", fmt.Errorf("%.200q has no key that can be used", path)
	}
	return path, nil
}

// keySetURL reads where a key set is. The error never shows the text: it may hold a password.
func keySetURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		return "", errors.New("it must be a URL, http:// or https://")
	case u.User != nil:
		return "", errors.New("it must be without user and password")
	case u.Fragment != "":
		return "", errors.New("it must be without a fragment")
	}
	return text, nil
}
