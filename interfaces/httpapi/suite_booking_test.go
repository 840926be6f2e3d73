package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/infrastructure/storetest"
)

// bookingChecks are CONTRACT.md, A confirmed payment books itself.
var bookingChecks = []check{
	{"a confirmed payment is in the shop's books", paymentIsBooked},
	{"a payment in another currency is booked in that", paymentIsBookedInItsCurrency},
	{"a replay, a second key and a hundred requests at once book nothing more", paymentIsBookedOnce},
	{"an order that is not paid is not booked", unpaidIsNotBooked},
	{"a payment whose answer was lost is booked by the retry", lostPaymentIsBooked},
	{"an order whose document is booked already is paid all the same", bookedByHand},
}

// receivable is the document that the payment of an order over 1000 yen books.
func receivable(order string, day string) document {
	return document{
		"companyId": storetest.Company, "sourceDocumentType": "sales_invoice", "sourceDocumentId": order,
		"serviceDate": day, "total": 1000,
	}
}

// dayOf is the shop's day of an instant as the edge writes it.
func dayOf(t *testing.T, instant any) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339, instant.(string))
	require.NoError(t, err)
	return at.In(storetest.Zone).Format(time.DateOnly)
}

// cashier may read and post to the shop's books.
const cashier = "demo-auditor@" + storetest.Company

// entryOf is the entry that a payment has booked.
func (e edge) entryOf(t *testing.T, paid answer) answer {
	t.Helper()
	require.Equal(t, "PAID", paid.member(t, "status"))
	d := receivable(paid.member(t, "orderId").(string), dayOf(t, paid.member(t, "paidAt")))
	return e.entry(t, e.repeating(t, d).member(t, "journalEntryId"), cashier)
}

func paymentIsBooked(t *testing.T, e edge) {
	paid := e.send(t, confirming(e.place(t))).is(t, http.StatusOK)
	entry := e.entryOf(t, paid)
	for member, want := range map[string]any{
		"companyId": "shop", "sourceDocumentType": "sales_invoice", "sourceDocumentId": paid.member(t, "orderId"),
		"version": 0.0, "serviceDate": dayOf(t, paid.member(t, "paidAt")), "total": 1000.0, "currency": "JPY",
		"postedAt": paid.member(t, "paidAt"), "postedBy": "alice",
	} {
		assert.Equal(t, want, entry.member(t, member), member)
	}
	assert.Equal(t, []journal.Line{
		{Account: "accounts_receivable", Side: journal.Debit, Amount: 1000},
		{Account: "sales", Side: journal.Credit, Amount: 1000},
	}, linesOf(t, entry))
}

func paymentIsBookedInItsCurrency(t *testing.T, e edge) {
	r := placing().saying(`{"currency":"KWD","lines":[{"sku":"tea","name":"tea","quantity":1,"unitPrice":1000}]}`)
	id := e.send(t, r).is(t, http.StatusCreated).member(t, "orderId").(string)
	paid := e.send(t, confirming(id).saying(`{"amount":1000,"currency":"KWD"}`)).is(t, http.StatusOK)
	d := receivable(id, dayOf(t, paid.member(t, "paidAt")))
	e.send(t, d.posted()).isProblem(t, 422, "idempotency_key_reused")
	booked := e.repeating(t, d.with("currency", "KWD")).member(t, "journalEntryId")
	assert.Equal(t, "KWD", e.entry(t, booked, cashier).member(t, "currency"))
}

func paymentIsBookedOnce(t *testing.T, e edge) {
	r := confirming(e.place(t))
	requests := make([]request, 100)
	for i := range requests {
		requests[i] = r
		if i%2 == 1 {
			requests[i] = r.key(freshKey())
		}
	}
	together(t, requests, e)
	paid := e.send(t, r).is(t, http.StatusOK)
	before := e.entryOf(t, paid)
	e.send(t, r).isReplayOf(t, paid)
	second := e.send(t, r.key(freshKey())).is(t, http.StatusOK)
	assert.Equal(t, paid.body, second.body)
	assert.Equal(t, before.body, e.entryOf(t, paid).body)
	e.send(t, confirming(paid.member(t, "orderId").(string)).saying(`{"amount":999,"currency":"JPY"}`)).
		isProblem(t, 422, "amount_mismatch")
	assert.Equal(t, before.body, e.entryOf(t, paid).body)
}

func unpaidIsNotBooked(t *testing.T, e edge) {
	declined, cancelled, refused, pending := e.place(t), e.place(t), e.place(t), e.place(t)
	e.provider.Next(storetest.Declining("card_declined"))
	e.send(t, confirming(declined)).isProblem(t, http.StatusPaymentRequired, "payment_declined")
	e.send(t, cancelling(cancelled)).is(t, http.StatusOK)
	e.send(t, confirming(refused).saying(`{"amount":999,"currency":"JPY"}`)).isProblem(t, 422, "amount_mismatch")
	e.provider.Next(storetest.Losing(storetest.Approving))
	e.send(t, confirming(pending)).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	now := time.Now().In(storetest.Zone)
	for _, id := range []string{declined, cancelled, refused, pending} {
		for _, day := range []time.Time{now.AddDate(0, 0, -1), now} { // it may have become another day
			e.booking(t, receivable(id, day.Format(time.DateOnly)))
		}
	}
}

func lostPaymentIsBooked(t *testing.T, e edge) {
	e.provider.Next(storetest.Losing(storetest.Approving))
	r := confirming(e.place(t))
	e.send(t, r).isProblem(t, http.StatusServiceUnavailable, "outcome_unknown")
	paid := e.send(t, r).is(t, http.StatusOK)
	assert.Equal(t, paid.member(t, "paidAt"), e.entryOf(t, paid).member(t, "postedAt"))
	assert.Equal(t, 1, e.provider.Charges())
}

// bookedToday posts the document of a placed order by hand, then pays the order, on one and the same day.
func (e edge) bookedToday(t *testing.T, change func(document) document) (byHand, paid answer) {
	t.Helper()
	for {
		order, day := e.place(t), time.Now().In(storetest.Zone).Format(time.DateOnly)
		byHand = e.send(t, change(receivable(order, day)).posted().token(cashier)).is(t, http.StatusCreated)
		paid = e.send(t, confirming(order)).is(t, http.StatusOK)
		if dayOf(t, paid.member(t, "paidAt")) == day {
			return byHand, paid
		}
	}
}

func bookedByHand(t *testing.T, e edge) {
	inEuro := func(d document) document { return d.with("currency", "EUR") }
	asItIs := func(d document) document { return d }
	for kind, change := range map[string]func(document) document{"duplicate": asItIs, "mismatch": inEuro} {
		byHand, paid := e.bookedToday(t, change)
		id := byHand.member(t, "journalEntryId")
		assert.Equal(t, "auditor", e.entry(t, id, cashier).member(t, "postedBy"), "the entry stays as it was")
		assert.Equal(t, "PAID", e.statusOf(t, paid.member(t, "orderId").(string)))

		audited := e.audited(t)
		require.Len(t, audited, 1, kind)
		assert.Equal(t, kind, audited[0].Kind)
		assert.Equal(t, "PostJournalEntry", audited[0].Operation)
		assert.Equal(t, "shop", audited[0].Actor)
		assert.Equal(t, byHand.member(t, "idempotencyKey"), audited[0].IdempotencyKey)
		assert.Contains(t, audited[0].Detail, id)
		e.forget(t)
	}
}

// The day ends where the shop is: fifteen hours before midnight in Greenwich it begins in Tokyo.
func TestThePaymentsDayIsTheShops(t *testing.T) {
	for instant, day := range map[string]string{
		"2025-01-29T14:59:59.999999Z": "2025-01-29",
		"2025-01-29T15:00:00Z":        "2025-01-30",
		"2024-12-31T15:00:00Z":        "2025-01-01",
		"2024-02-28T20:00:00Z":        "2024-02-29",
	} {
		at, err := time.Parse(time.RFC3339, instant)
		require.NoError(t, err)
		e := onMemoryAt(t, func() time.Time { return at })
		paid := e.send(t, confirming(e.place(t))).is(t, http.StatusOK)
		assert.Equal(t, instant, paid.member(t, "paidAt"))
		e.repeating(t, receivable(paid.member(t, "orderId").(string), day))
	}
}

func TestTheLargestPaymentIsBookedToTheYen(t *testing.T) {
	e := onMemory(t)
	most := itoa(int(money.MaxUnits))
	r := placing().saying(`{"currency":"JPY","lines":[{"sku":"s","name":"n","quantity":1,"unitPrice":` + most + `}]}`)
	id := e.send(t, r).is(t, http.StatusCreated).member(t, "orderId").(string)
	paid := e.send(t, confirming(id).saying(`{"amount":`+most+`,"currency":"JPY"}`)).is(t, http.StatusOK)
	d := receivable(id, dayOf(t, paid.member(t, "paidAt"))).with("total", money.MaxUnits)
	entry := e.entry(t, e.repeating(t, d).member(t, "journalEntryId"), cashier)
	assert.Equal(t, 3, strings.Count(entry.body, most))
}
