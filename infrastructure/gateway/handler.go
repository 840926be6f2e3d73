package gateway

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kakutei/domain/money"
	"kakutei/domain/payment"
)

// maxRequest is the longest body of a charge, in bytes.
const maxRequest = 64 << 10

// defaultPage is how many lines a page has where nobody says.
const defaultPage = 100

// HandlerConfig says what the simulator is served with.
type HandlerConfig struct {
	Book  Book // of this process alone
	Clock func() time.Time
	Token string // demanded as a Bearer token unless empty
	Log   *slog.Logger
}

// Handler is the simulator as others reach it: CONTRACT.md's gateway protocol over HTTP, the provider's side of it.
type Handler struct {
	http.Handler
	book      Book
	simulator *Simulator
	token     string
	log       *slog.Logger
}

// NewHandler serves a simulator over the book.
func NewHandler(c HandlerConfig) *Handler {
	book := newDated(c.Book, c.Clock)
	h := &Handler{book: book, simulator: NewSimulator(book, c.Clock), token: c.Token, log: c.Log}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /charges", h.known(h.charge))
	routes.HandleFunc("GET /charges", h.known(h.list))
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		h.say(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	h.Handler = routes
	return h
}

// known lets those in who know the token.
func (h *Handler) known(serve http.HandlerFunc) http.HandlerFunc {
	want := []byte("Bearer " + h.token)
	return func(w http.ResponseWriter, r *http.Request) {
		if h.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			h.refuse(w, http.StatusUnauthorized, errors.New("the token is missing or another"))
			return
		}
		serve(w, r)
	}
}

// charge answers POST /charges.
func (h *Handler) charge(w http.ResponseWriter, r *http.Request) {
	key, attempt, err := readCharge(w, r)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, err)
		return
	}
	reply, err := h.simulator.Ask(r.Context(), key, attempt)
	switch {
	case errors.Is(err, ErrOtherRequest):
		h.refuse(w, http.StatusUnprocessableEntity, err)
		return
	case errors.Is(err, ErrLostAnswer):
		panic(http.ErrAbortHandler) // net/http cuts the connection
	case err != nil:
		h.log.WarnContext(r.Context(), "a charge has no answer", "error", err)
		h.refuse(w, http.StatusServiceUnavailable, errors.New("the provider is not available"))
		return
	}
	switch answer := reply.Answer.(type) {
	case payment.Charge:
		status := http.StatusCreated
		if reply.Repeat {
			status = http.StatusOK
		}
		h.say(w, status, chargeAnswer{
			ChargeID: answer.ID, Status: Approved, Amount: answer.Money.Units(),
			Currency: answer.Money.Currency().Code(), ChargedAt: answer.ChargedAt,
		})
	case payment.Decline:
		h.say(w, http.StatusPaymentRequired, declineAnswer{Declined, answer.Code, answer.Message})
	}
}

type chargeAnswer struct {
	ChargeID  string    `json:"chargeId"`
	Status    Status    `json:"status"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	ChargedAt time.Time `json:"chargedAt"`
}

type declineAnswer struct {
	Status      Status `json:"status"`
	DeclineCode string `json:"declineCode"`
	Message     string `json:"message"`
}

// readCharge reads the request strictly: a provider that guesses charges something else than was meant.
func readCharge(w http.ResponseWriter, r *http.Request) (key string, a payment.Attempt, err error) {
	keys := r.Header.Values("Idempotency-Key")
	hidden := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(keys) != 1 || keys[0] == "" || len(keys[0]) > maxText || strings.ContainsFunc(keys[0], hidden) {
		return "", a, fmt.Errorf("the header Idempotency-Key must be there once: 1 to %d visible ASCII characters", maxText)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return "", a, fmt.Errorf("the body cannot be read, or is longer than %d bytes", maxRequest)
	}
	in := read(body)
	a = payment.Attempt{OrderID: in.text("orderId"), Number: int(in.integer("attempt", 1)), Money: in.money()}
	if a.Number > math.MaxInt32 {
		in.fail("attempt", "is too large")
	}
	if units := a.Money.Units(); units < 1 || units > money.MaxUnits {
		in.fail("amount", fmt.Sprintf("must be 1 to %d", money.MaxUnits))
	}
	if in.has("paymentMethod") {
		a.Method = in.text("paymentMethod")
	}
	for name := range in.members {
		if !slices.Contains([]string{"orderId", "attempt", "amount", "currency", "paymentMethod"}, name) {
			in.fail(name, "is unknown")
		}
	}
	return keys[0], a, in.err
}

// list answers GET /charges: an order's lines, or a page of all since a time.
func (h *Handler) list(w http.ResponseWriter, r *http.Request) {
	ask, err := readListQuery(r.URL.RawQuery)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, err)
		return
	}
	if ask.orderID != "" {
		lines, err := h.book.OfOrder(r.Context(), ask.orderID)
		h.sayList(w, r, err, orderList{linesOf(lines)})
		return
	}
	lines, next, err := h.book.Since(r.Context(), ask.since, ask.after, ask.limit)
	page := chargePage{Charges: linesOf(lines)}
	if next != "" {
		page.Next = &next
	}
	h.sayList(w, r, err, page)
}

func (h *Handler) sayList(w http.ResponseWriter, r *http.Request, err error, list any) {
	switch {
	case errors.Is(err, ErrCursor):
		h.refuse(w, http.StatusBadRequest, errors.New("after: no page ever ended there"))
	case err != nil:
		h.log.WarnContext(r.Context(), "the book cannot be read", "error", err)
		h.refuse(w, http.StatusServiceUnavailable, errors.New("the book cannot be read"))
	default:
		h.say(w, http.StatusOK, list)
	}
}

type orderList struct {
	Charges []listedLine `json:"charges"`
}

type chargePage struct {
	Charges []listedLine `json:"charges"`
	Next    *string      `json:"next"` // null on the last page
}

type listedLine struct {
	ChargeID    string     `json:"chargeId,omitempty"`
	OrderID     string     `json:"orderId"`
	Attempt     int        `json:"attempt"`
	GatewayKey  string     `json:"gatewayKey"`
	Amount      int64      `json:"amount"`
	Currency    string     `json:"currency"`
	Status      Status     `json:"status"`
	DeclineCode string     `json:"declineCode,omitempty"`
	ChargedAt   *time.Time `json:"chargedAt,omitempty"`
}

func linesOf(lines []Line) []listedLine {
	list := make([]listedLine, len(lines))
	for i, l := range lines {
		list[i] = listedLine{
			ChargeID: l.ChargeID, OrderID: l.OrderID, Attempt: l.Attempt, GatewayKey: l.GatewayKey, Amount: l.Amount,
			Currency: l.Currency, Status: l.Status, DeclineCode: l.DeclineCode,
		}
		if l.Status == Approved {
			list[i].ChargedAt = &l.BookedAt
		}
	}
	return list
}

// listQuery asks for an order's lines or, without an order, for a page.
type listQuery struct {
	orderID string
	since   time.Time
	after   string
	limit   int
}

func readListQuery(raw string) (ask listQuery, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return ask, errors.New("the query cannot be read")
	}
	for name, values := range query {
		if !slices.Contains([]string{"orderId", "since", "after", "limit"}, name) {
			return ask, fmt.Errorf("%.40q: there is no such parameter", name)
		}
		if len(values) > 1 {
			return ask, fmt.Errorf("%s: is there twice", name)
		}
	}
	if query.Has("orderId") == query.Has("since") {
		return ask, errors.New("orderId or since: one of them must be there")
	}
	if query.Has("orderId") {
		ask.orderID = query.Get("orderId")
		if ask.orderID == "" || len(query) > 1 {
			return ask, errors.New("orderId: must not be empty, and takes no other parameter")
		}
		return ask, nil
	}
	if ask.since, err = time.Parse(time.RFC3339, query.Get("since")); err != nil {
		return ask, errors.New("since: is no time like 2026-11-30T01:02:03Z")
	}
	ask.after, ask.limit = query.Get("after"), defaultPage
	if query.Has("limit") {
		ask.limit, err = strconv.Atoi(query.Get("limit"))
		if err != nil || ask.limit < 1 || ask.limit > MaxPage {
			return ask, fmt.Errorf("limit: must be 1 to %d", MaxPage)
		}
	}
	return ask, nil
}

func (h *Handler) refuse(w http.ResponseWriter, status int, err error) {
	h.say(w, status, map[string]string{"error": err.Error()})
}

func (h *Handler) say(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // what is said here can be written
		h.log.Error("an answer cannot be written", "error", err)
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(text, '\n')); err != nil {
		h.log.Debug("an answer did not arrive", "error", err)
	}
}
