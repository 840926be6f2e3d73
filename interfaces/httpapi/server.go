// Package httpapi is the HTTP edge: it reads requests strictly, has a use case answer and sends what that says. It
// decides nothing about orders, money or keys, and every status code stands in it.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/application/bookkeeping"
	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/interfaces/live"
	"kakutei/interfaces/web"
)

// Config is what the edge works with. All but Confirm, AnyHost, Live, Pages, ExampleToken, Origins, the limits and their
// clock, Metrics, Answered and TraceID is required.
type Config struct {
	Till *checkout.Till
	// Confirm takes the till's place for confirmations, to measure what the edge alone costs; nil: the till does.
	Confirm func(ctx context.Context, asked checkout.ConfirmPayment) (idempotent.Answer, error)

	Ledger *bookkeeping.Ledger
	Desk   *oversight.Desk
	// Ready tells why the store cannot work right now; it has two seconds.
	Ready func(ctx context.Context) error
	Auth  Authenticator
	// AnyHost answers requests for every host name. Without it, as demo mode wants, only those for a loopback one.
	AnyHost bool
	// Live has what happens to records shown at GET /api/live; nil: there is no such route. Demo mode only: it needs no
	// token.
	Live *live.Feed
	// Pages are what else is served at GET and HEAD, by its path. One at "/" takes the place of the start page.
	Pages map[string]http.Handler
	// ExampleToken is what the start page's examples use, and says that those of the reference may have demo tokens;
	// empty: a placeholder.
	ExampleToken string

	// Origins are those of the pages that may call from a browser, as browsers write them (Origin).
	Origins []string
	// MaxInFlight is how many requests may be at work at once; zero: any number.
	MaxInFlight int
	// Crowded tells that the store has no room for a request that has not begun; nil: it always has.
	Crowded func() bool
	// RateLimit is how many requests per second an actor may send, with a burst of twice that; zero: any number.
	RateLimit int
	// Clock is what the rate is measured by; nil: time.Now.
	Clock func() time.Time

	Deadline  time.Duration // of the work for one request: idempotent.Config.Deadline
	Lease     time.Duration // nobody is advised to wait longer
	Retention time.Duration // of keys, as published

	// Metrics answers GET /metrics; nil: there is no such route.
	Metrics http.Handler
	// Answered is told of each request once it is answered; nil: nobody is.
	Answered func(ctx context.Context, a Answered)
	// TraceID names the trace that a request is in; nil, or an empty text: none.
	TraceID func(ctx context.Context) string

	Logger *slog.Logger
}

// Server is the edge as an http.Handler.
type Server struct {
	config Config
	echo   *echo.Echo
	log    *slog.Logger
	ready  readiness
	slots  capacity
	shed   shedding // for want of a place
	turned shedding // for want of room in the store
	rates  *rates   // nil without a limit
}

// New makes the edge.
func New(config Config) *Server {
	if config.Clock == nil {
		config.Clock = time.Now
	}
	if config.Confirm == nil {
		config.Confirm = config.Till.ConfirmPayment
	}
	s := &Server{
		config: config, echo: echo.New(), log: config.Logger, ready: readiness{ask: config.Ready},
		slots: newCapacity(config.MaxInFlight), rates: newRates(config.RateLimit),
	}
	s.echo.HTTPErrorHandler = s.answerError
	s.echo.Logger.SetOutput(slog.NewLogLogger(config.Logger.Handler(), slog.LevelWarn).Writer())
	s.echo.Use(composed(s.begin, s.logged, recovered, s.sharing, s.onlyLoopback, s.onlyKnownMethods))
	s.routes()
	return s
}

func (s *Server) routes() {
	e := s.echo
	// What works on the store needs a place; what tells how the service is never does.
	api := func(method, path string, handler echo.HandlerFunc) { e.Add(method, path, s.admitted(handler)) }
	api(http.MethodPost, pathOrders, s.post(http.StatusCreated, s.placeOrder))
	api(http.MethodGet, pathOrder, s.getOrder)
	api(http.MethodPost, pathConfirm, s.post(http.StatusOK, s.confirmPayment))
	api(http.MethodPost, pathCancel, s.post(http.StatusOK, s.cancelOrder))
	api(http.MethodGet, pathOutcome, s.getOutcome)
	api(http.MethodPost, pathPost, s.postEntry)
	api(http.MethodGet, pathEntry, s.getEntry)
	// "post" names no entry, as any other text; else Allow would not tell of GET
	api(http.MethodGet, pathPost, s.getEntry)
	api(http.MethodGet, pathAudit, s.getAudit)
	api(http.MethodGet, pathUnresolved, s.getUnresolved)
	api(http.MethodPost, pathRelease, s.postRelease)
	api(http.MethodPost, pathResolve, s.postResolve)

	if s.config.Live != nil {
		e.GET(pathLive, s.getLive) // it takes no place among the requests at work
	}
	pages := map[string]echo.HandlerFunc{
		"/healthz":               getHealthz,
		"/readyz":                s.getReadyz,
		"/":                      s.getStart,
		pathPolicy:               s.getPolicy,
		"/docs":                  s.getReference,
		"/openapi.json":          getDescription,
		pathProblem:              s.getProblem,
		web.AssetsPath + ":name": getAsset,
	}
	for path, handler := range s.config.Pages {
		pages[path] = echo.WrapHandler(handler)
	}
	for path, handler := range pages {
		e.GET(path, handler)
		e.HEAD(path, handler)
	}
	s.routeMetrics()
	// A parameter at the end of a route would take the rest of the path, slashes included.
	for _, path := range []string{pathOutcome, pathEntry, pathProblem, web.AssetsPath + ":name"} {
		e.RouteNotFound(path+"/*", echo.NotFoundHandler)
	}
}

// composed is these, from the outermost to the innermost, as one that is put together once: Echo would put them together
// anew for every request. It must be the only one, since it goes on with what the router has found.
func composed(all ...echo.MiddlewareFunc) echo.MiddlewareFunc {
	whole := func(c echo.Context) error { return c.Handler()(c) }
	for _, outer := range slices.Backward(all) {
		whole = outer(whole)
	}
	return func(echo.HandlerFunc) echo.HandlerFunc { return whole }
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	routeAsSent(r.URL)
	s.echo.ServeHTTP(w, r)
}

const (
	// readTimeout is what a client has for its whole request; 64 KiB take that long at 35 kbit/s.
	readTimeout = 15 * time.Second
	// writeMargin is what a client has to take its answer.
	writeMargin = 15 * time.Second
	maxHeader   = 32 << 10 // bytes
)

// HTTPServer is the edge on a configured server that does not listen yet.
func (s *Server) HTTPServer(address string) *http.Server {
	return &http.Server{
		Addr:              address,
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		// It runs from the end of the header: over the body, the work and the answer.
		WriteTimeout:   readTimeout + s.config.Deadline + writeMargin,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		// "OPTIONS *" is answered like every other request: by the router.
		DisableGeneralOptionsHandler: true,
	}
}
