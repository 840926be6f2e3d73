package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kakutei/domain/payment"
)

// What the adapter reads of an answer at most, in bytes. A longer one is unknown.
const (
	maxAnswer = 64 << 10
	maxList   = 1 << 20
	maxPage   = 4 << 20
)

// MaxPage is how many lines a page of the list has at most, as the protocol has it.
const MaxPage = 1000

// HTTPConfig says where the provider is.
type HTTPConfig struct {
	BaseURL string        // http or https; a path before "/charges" is kept
	Token   string        // sent as a Bearer token unless empty
	Timeout time.Duration // of a whole call, from dialling to the answer's last byte
}

// HTTP is the payment provider behind docs/contract.md's gateway protocol. Only a definite answer is an answer: whatever
// else comes back, or does not, is an error. A charge is sent once per call, to the configured address and no other.
type HTTP struct {
	charges   *url.URL
	token     string
	timeout   time.Duration
	transport *http.Transport
}

// NewHTTP checks the configuration and connects to nothing yet. Its errors repeat neither the token nor the URL, which
// may hold a password where none belongs.
func NewHTTP(c HTTPConfig) (*HTTP, error) {
	base, err := parseBase(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return nil, errors.New("gateway: the token must be visible ASCII characters other than \" and \\")
	}
	if c.Timeout <= 0 {
		return nil, fmt.Errorf("gateway: the timeout must be positive, not %s", c.Timeout)
	}
	return &HTTP{
		charges: base.JoinPath("charges"), token: c.Token, timeout: c.Timeout, transport: transportFor(c.Timeout),
	}, nil
}

// Name is the provider at a base URL, whichever way the same URL is written.
func Name(baseURL string) string {
	base, err := parseBase(baseURL)
	if err != nil {
		return baseURL
	}
	base.Host = strings.ToLower(base.Host)
	if base.Scheme == "http" && base.Port() == "80" || base.Scheme == "https" && base.Port() == "443" {
		base.Host = strings.TrimSuffix(base.Host, ":"+base.Port())
	}
	return strings.TrimRight(base.String(), "/")
}

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	wrong := ""
	switch {
	case err != nil:
		wrong = "cannot be read"
	case base.Scheme != "http" && base.Scheme != "https":
		wrong = "must begin with http:// or https://"
	case base.Hostname() == "":
		wrong = "must name a host"
	case !validPort(base.Port()):
		wrong = "must have a port from 1 to 65535, or none"
	case base.User != nil:
		wrong = "must not hold a user or a password"
	case strings.ContainsAny(text, "?#"):
		wrong = "must have neither query nor fragment"
	default:
		return base, nil
	}
	return nil, fmt.Errorf("gateway: the base URL %s", wrong)
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// transportFor makes a transport without habits of its own. It speaks HTTP/1.1 only, since HTTP/2 sends a refused
// stream again by itself. It heeds no HTTP_PROXY: that may be set for other traffic, and would let a third party see
// the token and repeat a charge. It asks for no compression, so that a small answer is a small answer. Without an
// http.Client around it, it follows no redirect and keeps no cookie.
func transportFor(timeout time.Duration) *http.Transport {
	connect := min(timeout, 5*time.Second) // dialling goes on after the call has given up, for the next one's sake
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout:    connect,
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// chargeRequest is the body of POST /charges. Amounts count minor units.
type chargeRequest struct {
	OrderID       string `json:"orderId"`
	Attempt       int    `json:"attempt"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	PaymentMethod string `json:"paymentMethod,omitempty"`
}

// Charge implements payment.Gateway. An approval of other money than was asked is returned as it is: Attempt.Check
// tells.
func (h *HTTP) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	body, err := json.Marshal(chargeRequest{
		OrderID: a.OrderID, Attempt: a.Number, Amount: a.Money.Units(), Currency: a.Money.Currency().Code(),
		PaymentMethod: a.Method,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.charges.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // else the transport sends a request with an Idempotency-Key again when its connection breaks
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", a.GatewayKey())
	status, body, err := h.send(req, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("gateway: no answer to charge %s: %w", a.GatewayKey(), err)
	}
	answer, err := readAnswer(status, body)
	if err != nil {
		return nil, fmt.Errorf("gateway: no definite answer to charge %s: status %d: %w", a.GatewayKey(), status, err)
	}
	return answer, nil
}

// Lookup implements payment.Gateway.
func (h *HTTP) Lookup(ctx context.Context, orderID string) ([]payment.Booking, error) {
	status, body, err := h.list(ctx, url.Values{"orderId": {orderID}}, maxList)
	if err != nil {
		return nil, fmt.Errorf("gateway: no list for order %s: %w", orderID, err)
	}
	bookings, err := readList(status, body, orderID)
	if err != nil {
		return nil, fmt.Errorf("gateway: no definite list for order %s: status %d: %w", orderID, status, err)
	}
	return bookings, nil
}

// Charges implements payment.Statement. A page that cannot be what was asked for is an error: nobody could tell what is
// missing.
func (h *HTTP) Charges(
	ctx context.Context, since time.Time, after string, limit int,
) (page []payment.Booking, next string, err error) {
	if limit < 1 || limit > MaxPage {
		return nil, "", fmt.Errorf("gateway: a page has 1 to %d lines, not %d", MaxPage, limit)
	}
	query := url.Values{"since": {since.UTC().Format(time.RFC3339Nano)}, "limit": {strconv.Itoa(limit)}}
	if after != "" {
		query.Set("after", after)
	}
	status, body, err := h.list(ctx, query, maxPage)
	if err != nil {
		return nil, "", fmt.Errorf("gateway: no list of charges: %w", err)
	}
	page, next, err = readPage(status, body, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("gateway: no definite list of charges: status %d: %w", status, err)
	}
	return page, next, nil
}

func (h *HTTP) list(ctx context.Context, query url.Values, limit int64) (status int, body []byte, err error) {
	charges := *h.charges
	charges.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, charges.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	return h.send(req, limit)
}

// send sends the request once and reads the whole answer, up to a limit in bytes.
func (h *HTTP) send(req *http.Request, limit int64) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), h.timeout)
	defer cancel()
	req.Header.Set("Accept", "application/json")
	if h.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	res, err := h.transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return 0, nil, h.quietly(err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Encoding") != "" {
		return 0, nil, fmt.Errorf("status %d: its content is encoded, which nobody asked for", res.StatusCode)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return 0, nil, fmt.Errorf("status %d: %w", res.StatusCode, h.quietly(err))
	}
	if int64(len(body)) > limit {
		return 0, nil, fmt.Errorf("status %d: its content is longer than %d bytes", res.StatusCode, limit)
	}
	return res.StatusCode, body, nil
}

// quietly is the error without the token: net/http quotes what it cannot read, and a provider may send back what it was
// sent.
func (h *HTTP) quietly(err error) error {
	if h.token == "" || !strings.Contains(err.Error(), h.token) {
		return err
	}
	return quiet{cause: err, text: strings.ReplaceAll(err.Error(), h.token, "[token]")}
}

type quiet struct {
	cause error
	text  string
}

func (q quiet) Error() string        { return q.text }
func (q quiet) Is(target error) bool { return errors.Is(q.cause, target) }
