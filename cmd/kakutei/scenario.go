package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"kakutei/interfaces/scenario"
)

// scenarioConfig is what the scenario runner can be told.
type scenarioConfig struct {
	paths    []string
	target   string
	store    string
	provider string // the base URL of the provider's list
	tokens   map[string]string
	language string
	tags     string
	format   string
	profile  string
	dryRun   bool

	secret   string // for minting
	audience string
	issuer   string
	listAuth string // the provider's token
	books    booksConfig
}

func scenarioCommand() command {
	c := scenarioConfig{tokens: map[string]string{}}
	return command{
		name: "scenario",
		does: "run scenario files (PATH…; the built-in ones by default) against a service; " +
			"scenario steps lists what they may say",
		variables: c.variables(),
		arguments: &c.paths,
		run:       c.run,
	}
}

func (c *scenarioConfig) variables() []variable {
	return slices.Concat([]variable{
		option("target", &c.target, "base URL of a service that runs already; without it one is started for the run"),
		{
			name: "store", initial: "memory", option: true, set: into(&c.store, scenarioStore),
			means: "of the service that is started: memory, sqlite (a file of its own), or a postgres:// URL",
		},
		{
			name: "token", option: true, list: true, set: c.addToken,
			means: "ACTOR=TOKEN, may be repeated; else minted from KAKUTEI_JWT_SECRET, else demo tokens",
		},
		option("gateway", &c.provider, "base URL of the provider, whose list tells how often an order was charged"),
		{
			name: "lang", option: true, set: into(&c.language, oneOf("", "en", "ja")),
			means: "en or ja: the built-in scenarios of that language alone, and what files are written in",
		},
		option("tags", &c.tags, `only scenarios with these tags: "@crash", "~@crash", "@journal && @duplicate", "@a,@b"`),
		{
			name: "format", initial: "pretty", option: true, set: into(&c.format, oneOf(scenario.Formats...)),
			means: "of the report: pretty, progress, junit or cucumber (of a profile: pretty or junit)",
		},
		{
			name: "profile", option: true, set: into(&c.profile, oneOf("", draft07)),
			means: "draft-07: check any endpoint, described by PATH, against the Idempotency-Key draft",
		},
		toggle("dry-run", &c.dryRun, "only look whether every step is known"),
		{
			name: "KAKUTEI_JWT_SECRET", secret: true, set: into(&c.secret, jwtSecret),
			means: "the service's secret (HS256), to mint tokens for the scenarios' people",
		},
		{name: "KAKUTEI_JWT_AUDIENCE", set: into(&c.audience, verbatim), means: "whom a token is for"},
		{name: "KAKUTEI_JWT_ISSUER", set: into(&c.issuer, verbatim), means: "who has issued a token"},
		{
			name: "KAKUTEI_GATEWAY_TOKEN", secret: true, set: into(&c.listAuth, gatewayToken),
			means: "bearer token for the provider, which kakutei gateway demands; empty: none is sent or demanded",
		},
	}, c.books.variables())
}

// verbatim takes a text as it is.
func verbatim(text string) (string, error) { return text, nil }

// shortestSecret is what a service takes (RFC 7518 §3.2).
const shortestSecret = 32

// jwtSecret reads the secret that tokens are signed with. Its errors never show it.
func jwtSecret(text string) (string, error) {
	if text != "" && len(text) < shortestSecret {
		return "", fmt.Errorf("it is shorter than %d bytes", shortestSecret)
	}
	return text, nil
}

// scenarioStore reads where the service that is started keeps its data.
func scenarioStore(text string) (string, error) {
	switch text {
	case "memory":
		return inMemory, nil
	case "sqlite":
		return text, nil
	default:
		return databaseURL(text)
	}
}

func (c *scenarioConfig) addToken(text string) error {
	name, token, found := strings.Cut(text, "=")
	if !found || name == "" || token == "" {
		return errors.New("it is not ACTOR=TOKEN") // not the text: it may hold the token
	}
	c.tokens[strings.ToLower(name)] = token
	return nil
}

// draft07 is the one profile.
const draft07 = "draft-07"

// run runs what the arguments name.
func (c *scenarioConfig) run(ctx context.Context, p program) error {
	ctx, _, end := watch(ctx, p.notify)
	defer end()
	switch {
	case c.profile != "":
		return c.runProfile(ctx, p)
	case len(c.paths) == 1 && c.paths[0] == "steps":
		return scenario.PrintVocabulary(p.stdout, c.languages()...)
	case c.target != "":
		if err := baseURL(c.target); err != nil {
			return fmt.Errorf("--target: %w", err)
		}
		return c.report(ctx, p, scenario.Against{
			URL: func() string { return c.target }, Callers: c.callers(), Charges: c.charges(),
			Company: c.books.company, Zone: c.books.zone,
		})
	case c.dryRun:
		return c.report(ctx, p, scenario.Against{})
	default:
		return c.runOwn(ctx, p)
	}
}

func (c *scenarioConfig) languages() []scenario.Language {
	if c.language != "" {
		return []scenario.Language{scenario.Language(c.language)}
	}
	return scenario.Languages
}

// report runs the scenarios. What is said about the run stands below the report, or beside it where that is a document.
func (c *scenarioConfig) report(ctx context.Context, p program, against scenario.Against) error {
	told := p.stdout
	if c.format == "junit" || c.format == "cucumber" {
		told = p.stderr
	}
	return scenario.Run(ctx, scenario.Config{
		Against: against, Paths: c.paths, Language: scenario.Language(c.language), Tags: c.tags, Format: c.format,
		DryRun: c.dryRun, Out: p.stdout, Told: told,
	})
}

// runOwn starts a service for the run and takes it away afterwards.
func (c *scenarioConfig) runOwn(ctx context.Context, p program) (err error) {
	var serve serveConfig
	defaults := serve.variables()
	if err := settle(defaults, flagsOf(defaults, false), func(string) string { return "" }); err != nil {
		return err
	}
	serve.store.url = c.store
	if c.store == "sqlite" {
		dir, err := os.MkdirTemp("", "kakutei-scenario-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		serve.store.url = "sqlite:" + filepath.Join(dir, "kakutei.db")
	}
	// What scenarios have the service meet is no news to whoever reads their report.
	h, err := newHouse(ctx, serve, slog.New(slog.DiscardHandler), p.patience)
	if err != nil {
		return err
	}
	err = c.report(ctx, p, scenario.Against{
		URL: h.base, Callers: scenario.DemoCallers{Run: runName()}, Inside: h, Charges: h.charges,
		Company: serve.books.company, Zone: serve.books.zone,
	})
	return errors.Join(err, h.close())
}

// runName makes the names of a run its own.
func runName() string { return strings.ReplaceAll(uuid.NewString(), "-", "")[:8] }

// callers are the scenarios' people at a service that runs already.
func (c *scenarioConfig) callers() scenario.Callers {
	var others scenario.Callers = scenario.DemoCallers{Run: runName()}
	switch {
	case c.secret != "":
		others = scenario.MintedCallers{
			Run: runName(), Secret: []byte(c.secret), Audience: c.audience, Issuer: c.issuer, Now: time.Now,
		}
	case len(c.tokens) > 0:
		others = nil
	}
	if len(c.tokens) == 0 {
		return others
	}
	return scenario.GivenCallers{Tokens: c.tokens, Else: others}
}

// charges asks the provider, if anybody has said where it is.
func (c *scenarioConfig) charges() func(context.Context, string) (int, error) {
	if c.provider == "" {
		return nil
	}
	return scenario.ProviderList{BaseURL: c.provider, Token: c.listAuth}.Charges
}

// baseURL tells what is wrong with a base URL.
func baseURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%.80q is no base URL, http:// or https://", text)
	}
	return nil
}
