package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kakutei/domain/money"
	"kakutei/domain/payment"
)

// maxText is the longest text of the contract, in characters.
const maxText = 256

// readAnswer reads the answer to a charge: status and status word must say the same.
func readAnswer(status int, body []byte) (payment.Answer, error) {
	switch status {
	case http.StatusOK, http.StatusCreated:
		r := read(body)
		r.is("status", string(Approved))
		charge := r.charge()
		return charge, r.err
	case http.StatusPaymentRequired:
		r := read(body)
		r.is("status", string(Declined))
		decline := r.decline()
		return decline, r.err
	default:
		return nil, errors.New("neither approved nor declined")
	}
}

// readList reads the answer to a look-up: the whole list, of this order only, and of each gateway key one line.
// Whatever else it might be cannot tell what was charged.
func readList(status int, body []byte, orderID string) ([]payment.Booking, error) {
	if status != http.StatusOK {
		return nil, errors.New("no list")
	}
	r := read(body)
	lines := r.list("charges")
	if r.has("next") {
		r.fail("next", "says that the list goes on")
	}
	bookings := readLines(lines, func(line *reading) { line.is("orderId", orderID) })
	for _, b := range bookings {
		if b.Unreadable != nil {
			return nil, b.Unreadable
		}
	}
	return bookings, r.err
}

// maxCursor is the longest cursor that is sent back, in characters.
const maxCursor = 4096

// readPage reads a page of the list since a time: what "next" says of the rest must be there, and lead on.
func readPage(status int, body []byte, after string, limit int) (page []payment.Booking, next string, err error) {
	if status != http.StatusOK {
		return nil, "", errors.New("no list")
	}
	r := read(body)
	lines := r.list("charges")
	if _, told := r.members["next"]; !told {
		r.fail("next", "is missing")
	}
	if r.has("next") {
		next = r.textUpTo("next", maxCursor)
		if next == after || len(lines) == 0 {
			r.fail("next", "leads nowhere")
		}
	}
	if len(lines) > limit {
		r.fail("charges", "has more lines than were asked for")
	}
	if r.err != nil {
		return nil, "", r.err
	}
	return readLines(lines, func(*reading) {}), next, nil
}

// readLines reads lines that also pass a check, of each gateway key one, and of each charge. What is wrong with one is no
// other's fault.
func readLines(lines []json.RawMessage, check func(*reading)) []payment.Booking {
	bookings := make([]payment.Booking, len(lines))
	known, charged := map[string]bool{}, map[string]bool{}
	for i, text := range lines {
		line := read(text)
		check(line)
		b := line.booking()
		if known[b.GatewayKey] {
			line.fail("gatewayKey", "stands in two lines")
		}
		known[b.GatewayKey] = true
		if c, ok := b.Answer.(payment.Charge); ok {
			if charged[c.ID] {
				line.fail("chargeId", "stands in two lines")
			}
			charged[c.ID] = true
		}
		if line.err != nil {
			b = payment.Booking{
				OrderID: line.hint("orderId"), GatewayKey: line.hint("gatewayKey"),
				Unreadable: fmt.Errorf("%w: line %d: %w", payment.ErrUnreadable, i, line.err),
			}
		}
		bookings[i] = b
	}
	return bookings
}

// reading is a JSON object being read: members by their exact names, null counting as absent. After the first error
// what it returns means nothing. Errors say what is wrong and where, and never quote what came: it may be the token.
type reading struct {
	members map[string]json.RawMessage
	err     error
}

func (r *reading) fail(name, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("member %q %s", name, what)
	}
}

// charge is read strictly: an approval with anything missing is none. What more it may have does not matter.
func (r *reading) charge() payment.Charge {
	return payment.Charge{ID: r.text("chargeId"), Money: r.money(), ChargedAt: r.instant("chargedAt")}
}

func (r *reading) decline() payment.Decline {
	d := payment.Decline{Code: r.text("declineCode")}
	if r.has("message") {
		d.Message = r.anyText("message")
	}
	return d
}

func (r *reading) booking() payment.Booking {
	b := payment.Booking{
		OrderID: r.text("orderId"), Attempt: int(r.integer("attempt", 1)), GatewayKey: r.text("gatewayKey"),
	}
	switch r.text("status") {
	case string(Approved):
		b.Answer = r.charge()
	case string(Declined):
		r.money()
		b.Answer = r.decline()
	default:
		r.fail("status", "is neither approved nor declined")
	}
	return b
}

func (r *reading) money() money.Money {
	currency, err := money.ParseCurrency(r.text("currency"))
	if err != nil {
		r.fail("currency", "is not a currency")
	}
	return money.Of(r.integer("amount", 0), currency)
}

func (r *reading) is(name, word string) {
	if r.text(name) != word {
		r.fail(name, "is not "+strconv.Quote(word))
	}
}

func (r *reading) has(name string) bool {
	value, present := r.members[name]
	return present && string(value) != "null"
}

// text is 1 to 256 characters without control characters, as everywhere in the contract, and without the mark of those
// that could not be read.
func (r *reading) text(name string) string { return r.textUpTo(name, maxText) }

func (r *reading) textUpTo(name string, most int) string {
	text := r.anyText(name)
	bad := func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }
	if text == "" || utf8.RuneCountInString(text) > most || strings.ContainsFunc(text, bad) {
		r.fail(name, "is empty, too long or unreadable")
	}
	return text
}

// hint is the text if there is one, whatever else is wrong.
func (r *reading) hint(name string) string {
	alone := reading{members: r.members}
	if text := alone.text(name); alone.err == nil {
		return text
	}
	return ""
}

func (r *reading) anyText(name string) string {
	var text *string
	if err := json.Unmarshal(r.member(name), &text); err != nil || text == nil {
		r.fail(name, "is missing or no text")
		return ""
	}
	return *text
}

func (r *reading) integer(name string, least int64) int64 {
	n, err := strconv.ParseInt(string(r.member(name)), 10, 64)
	if err != nil || n < least {
		r.fail(name, "is missing or no whole number from "+strconv.FormatInt(least, 10))
	}
	return n
}

// instant is UTC in whole microseconds.
func (r *reading) instant(name string) time.Time {
	at, err := time.Parse(time.RFC3339, r.text(name))
	if err != nil {
		r.fail(name, "is no time")
	}
	return at.UTC().Truncate(time.Microsecond)
}

func (r *reading) list(name string) []json.RawMessage {
	var list []json.RawMessage
	if err := json.Unmarshal(r.member(name), &list); err != nil || list == nil {
		r.fail(name, "is missing or no list")
	}
	return list
}

func (r *reading) member(name string) json.RawMessage {
	if value, present := r.members[name]; present {
		return value
	}
	return json.RawMessage("null")
}

// read takes the object apart: one object and nothing after it, in valid UTF-8, each member once. encoding/json alone
// would let the last of two members win, and take "AMOUNT" for "amount".
func read(text []byte) *reading {
	r := &reading{members: map[string]json.RawMessage{}}
	if !utf8.Valid(text) {
		r.err = errors.New("not UTF-8")
		return r
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if first, err := in.Token(); err != nil || first != json.Delim('{') {
		r.err = errors.New("not a JSON object")
		return r
	}
	for r.err == nil && in.More() {
		r.readMember(in)
	}
	if r.err != nil {
		return r
	}
	if _, err := in.Token(); err != nil {
		r.err = errors.New("a JSON object without an end")
	} else if _, err := in.Token(); !errors.Is(err, io.EOF) {
		r.err = errors.New("something after the JSON object")
	}
	return r
}

func (r *reading) readMember(in *json.Decoder) {
	token, err := in.Token()
	name, isName := token.(string)
	if err != nil || !isName {
		r.err = errors.New("a JSON object with a broken member name")
		return
	}
	var value json.RawMessage
	if err := in.Decode(&value); err != nil {
		r.err = errors.New("a JSON object with a broken value")
		return
	}
	if _, twice := r.members[name]; twice {
		r.err = errors.New("a JSON object with a member that stands twice")
		return
	}
	r.members[name] = value
}
