package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kakutei/domain/money"
)

// The checks of the suite that stem from faults of other services, by their case numbers.

func unknownOrderUsesNoKey(t *testing.T, e edge) {
	r := confirming("01930000-0000-7000-8000-000000000000")
	for range 2 { // C14
		a := e.send(t, r).isProblem(t, http.StatusNotFound, "order_not_found")
		assert.Equal(t, "after-fix", a.member(t, "retry"))
	}
	e.send(t, outcomeOf(r, "ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
	for _, id := range []string{"x", "%00", "%ff%fe", "%E9%8D%B5", "a%2Fb", "..", "%25", strings.Repeat("9", 2000)} {
		e.send(t, r.to("/api/orders/"+id+"/confirm-payment")).isProblem(t, http.StatusNotFound, "order_not_found")
		e.send(t, cancelling(id)).isProblem(t, http.StatusNotFound, "order_not_found")
		e.send(t, get("/api/orders/"+id)).isProblem(t, http.StatusNotFound, "order_not_found")
	}
	e.send(t, r.to(confirming(e.place(t)).path)).is(t, http.StatusOK)
}

func sameInstantSameText(t *testing.T, e edge) { // C51
	id := e.place(t)
	r := confirming(id)
	paid := e.send(t, r).is(t, http.StatusOK)
	text := paid.member(t, "paidAt").(string)
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`, text)
	assert.Equal(t, text, e.send(t, get("/api/orders/"+id)).member(t, "paidAt"))
	assert.Equal(t, text, e.send(t, outcomeOf(r, "ConfirmPayment")).member(t, "response/paidAt"))
	assert.Equal(t, text, e.send(t, confirming(id)).member(t, "paidAt"), "under another key")
}

func membersInAnyOrder(t *testing.T, e edge) {
	r := confirming(e.place(t)).saying(`{"amount":1000,"currency":"JPY"}`)
	first := e.send(t, r).is(t, http.StatusOK)
	for _, body := range []string{
		"{ \"currency\":\"JPY\",\n\"amount\":1000 }",
		`{"amount":1000,"currency":"\u004aPY"}`,
		`{"\u0061mount":1000,"currency":"JPY","paymentMethod":null}`,
		"\t\r\n {\"amount\" : 1000 , \"currency\":\"JPY\"}\r\n",
	} {
		e.send(t, r.saying(body)).isReplayOf(t, first)
	}
	lines := `{"currency":"JPY","lines":[{"sku":"a","name":"A","quantity":1,"unitPrice":1},` +
		`{"sku":"b","name":"B","quantity":1,"unitPrice":1}]}`
	turned := `{"currency":"JPY","lines":[{"sku":"b","name":"B","quantity":1,"unitPrice":1},` +
		`{"sku":"a","name":"A","quantity":1,"unitPrice":1}]}`
	placing := placing().saying(lines)
	e.send(t, placing).is(t, http.StatusCreated)
	e.send(t, placing.saying(turned)).isProblem(t, 422, "idempotency_key_reused")
}

func amountsAreIntegers(t *testing.T, e edge) {
	r := confirming(e.place(t))
	wrong := []string{
		"1000.0", "1e3", `"1000"`, "1000.5", "01000", "-0", "-1", "0", "9007199254740992", "1E3", "true", "[1000]",
	}
	for _, amount := range wrong {
		e.send(t, r.saying(`{"amount":`+amount+`,"currency":"JPY"}`)).isProblem(t, 400, "invalid_request")
	}
	first := e.send(t, r).is(t, http.StatusOK)
	for _, amount := range wrong {
		e.send(t, r.saying(`{"amount":`+amount+`,"currency":"JPY"}`)).isProblem(t, 400, "invalid_request")
	}
	e.send(t, r).isReplayOf(t, first)
}

func queryUsesNoKey(t *testing.T, e edge) {
	id := e.place(t)
	r := confirming(id)
	for _, query := range []string{"?dryRun=1", "?amount=1", "?=", "?a;b", "?%zz"} {
		a := e.send(t, r.to(r.path+query)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.False(t, a.has(t, "errors/0/pointer"), "pointers lead into the body only")
		assert.True(t, a.has(t, "errors/0/detail"))
	}
	assert.Equal(t, "PLACED", e.statusOf(t, id))
	assert.Empty(t, e.send(t, r.to(r.path+"?")).is(t, http.StatusOK).header.Get("Idempotent-Replayed"))
	assert.Equal(t, "PAID", e.statusOf(t, id))
}

func headersAreNotPartOfRequest(t *testing.T, e edge) {
	r := confirming(e.place(t))
	first := e.send(t, r).is(t, http.StatusOK)
	chunked := r
	chunked.chunked = true
	for _, varied := range []request{
		r.with("User-Agent", "another/1.0"),
		r.with("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
		r.with("X-Request-Id", "another-one"),
		r.with("Date", "Tue, 15 Nov 1994 08:12:31 GMT"),
		r.with("Accept-Encoding", "gzip"), // C44: no answer is compressed, so each is as it decodes
		r.with("Accept-Encoding", "identity;q=0, *;q=0"),
		r.with("Accept", "text/html"),
		r.with("Content-Type", "application/json; charset=UTF-8"),
		r.with("Content-Type", "Application/JSON"),
		r.with("Authorization", "bearer demo-alice@company-1"),
		r.with("Idempotency-Key", `"`+r.header.Get("Idempotency-Key")+`"`),
		r.with("Idempotency-Key", "  "+r.header.Get("Idempotency-Key")+"\t"), // C35
		chunked,
	} {
		replay := e.send(t, varied)
		replay.isReplayOf(t, first)
		assert.Empty(t, replay.header.Get("Content-Encoding"))
	}
}

func membersOnce(t *testing.T, e edge) {
	id := e.place(t)
	r := confirming(id)
	for body, pointer := range map[string]string{
		`{"amount":1000,"currency":"JPY","amount":2000}`:                             "/amount",
		`{"amount":1000,"currency":"JPY","\u0061mount":1000}`:                        "/amount",
		`{"amount":1000,"currency":"JPY","paymentMethod":null,"paymentMethod":null}`: "/paymentMethod",
		`{"amount":1000,"AMOUNT":2000,"currency":"JPY"}`:                             "/AMOUNT",
		`{"amout":1000,"amount":1000,"currency":"JPY"}`:                              "/amout",
		`{"amount":1000,"currency":"JPY","more":null}`:                               "/more",
		`{"amount":1000,"currency":"JPY","a/b~c":[{"deep":[1]}]}`:                    "/a~1b~0c",
	} {
		a := e.send(t, r.saying(body)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.Equal(t, pointer, a.member(t, "errors/0/pointer"), body)
	}
	assert.Equal(t, "PLACED", e.statusOf(t, id))
	e.send(t, r).is(t, http.StatusOK)
}

func longKeys(t *testing.T, e edge) {
	stem := strings.Repeat("0123456789abcdef", 16)[:254]
	for _, key := range []string{"k", stem + "x", stem + "y"} {
		e.send(t, confirming(e.place(t)).key(key)).is(t, http.StatusOK)
	}
	for _, key := range []string{stem + "xx", strings.Repeat("f", 4000), strings.Repeat("鍵", 255)} {
		a := e.send(t, confirming(e.place(t)).key(key)).isProblem(t, http.StatusBadRequest, "idempotency_key_invalid")
		assert.Empty(t, a.header.Get("Idempotency-Key"))
	}
	assert.Equal(t, 3, e.provider.Charges())
}

func bytesStoresRefuse(t *testing.T, e edge) {
	r := confirming(e.place(t))
	for _, key := range []string{"a\xffb", "鍵-1", "a b", "a\tb"} {
		e.send(t, r.key(key)).isProblem(t, http.StatusBadRequest, "idempotency_key_invalid")
	}
	for _, body := range []string{
		`{"amount":1000,"currency":"J\u0000Y"}`,
		`{"amount":1000,"currency":"JPY","paymentMethod":"x\u0000"}`,
		`{"amount":1000,"currency":"JPY","paymentMethod":"\ud800"}`,
		`{"amount":1000,"currency":"JPY","paymentMethod":"\udc00\ud800"}`,
		`{"amount":1000,"currency":"JPY","paymentMethod":"\u007f"}`,
		`{"amount":1000,"currency":"JPY","paymentMethod":"\u0085"}`,
		"{\"amount\":1000,\"currency\":\"JPY\",\"paymentMethod\":\"\xff\"}",
		"{\"amount\":1000,\"currency\":\"JPY\",\"paymentMethod\":\"\xed\xa0\x80\"}",
		"{\"amount\":1000,\"currency\":\"JPY\",\"paymentMethod\":\"a\nb\"}",
		"\ufeff{\"amount\":1000,\"currency\":\"JPY\"}",
	} {
		e.send(t, r.saying(body)).isProblem(t, http.StatusBadRequest, "invalid_request")
	}
	e.send(t, r).is(t, http.StatusOK)
}

func actorAndKeyAreNotJoined(t *testing.T, e edge) {
	for _, c := range []struct{ actor, key string }{{"u1::x", "k"}, {"u1", "x::k"}, {"u1:x", "k"}, {"u1", "x:k"}} {
		token := "demo-" + c.actor
		id := e.send(t, placing().token(token).key(c.key)).is(t, http.StatusCreated).member(t, "orderId").(string)
		paid := e.send(t, confirming(id).token(token).key(c.key)).is(t, http.StatusOK)
		assert.Empty(t, paid.header.Get("Idempotent-Replayed"))
	}
	e.send(t, placing().token("demo-u1|x")).isProblem(t, http.StatusUnauthorized, "unauthenticated")
}

func textsComeBack(t *testing.T, e edge) {
	for _, text := range []string{
		`o<&>"é\/`, " 煎茶 ", "👩‍👩‍👧", "\u2028\u2029", "\ufffd", "\uffff", strings.Repeat("茶", 256),
		strings.Repeat("😀", 256),
	} {
		quoted := quote(t, text)
		line := `{"sku":` + quoted + `,"name":` + quoted + `,"quantity":1,"unitPrice":1}`
		r := placing().saying(`{"currency":"JPY","lines":[` + line + `]}`)
		first := e.send(t, r).is(t, http.StatusCreated)
		assert.Equal(t, text, first.member(t, "lines/0/sku"))
		e.send(t, r).isReplayOf(t, first)
		read := e.send(t, get(first.header.Get("Location"))).is(t, http.StatusOK)
		assert.Equal(t, first.body, read.body)
		id := first.member(t, "orderId").(string)
		cancelled := e.send(t, cancelling(id).saying(`{"reason":`+quoted+`}`)).is(t, http.StatusOK)
		assert.Equal(t, text, cancelled.member(t, "cancelReason"))
	}
}

func invalidUsesNoKey(t *testing.T, e edge) {
	id := e.place(t)
	r := confirming(id)
	e.send(t, r.saying(`{"amount":-1,"currency":"JPY"}`)).isProblem(t, http.StatusBadRequest, "invalid_request")
	e.send(t, outcomeOf(r, "ConfirmPayment")).isProblem(t, http.StatusNotFound, "not_found")
	assert.Empty(t, e.send(t, r).is(t, http.StatusOK).header.Get("Idempotent-Replayed"))

	refused := confirming(e.place(t)).saying(`{"amount":1,"currency":"JPY"}`)
	first := e.send(t, refused).isProblem(t, 422, "amount_mismatch")
	e.send(t, refused).isReplayOf(t, first)
	e.send(t, confirming(strings.Split(refused.path, "/")[3])).is(t, http.StatusOK)
}

func yenStayYen(t *testing.T, e edge) {
	paid := e.place(t)
	e.send(t, confirming(paid)).is(t, http.StatusOK)
	assert.InDelta(t, 1000, e.send(t, get("/api/orders/"+paid)).member(t, "amount"), 0)
	for amount, status := range map[string]int{"100000": 422, "10": 422, "1000.00": 400} {
		id := e.place(t)
		a := e.send(t, confirming(id).saying(`{"amount":`+amount+`,"currency":"JPY"}`))
		assert.Equal(t, status, a.status, a.body)
		assert.Equal(t, "PLACED", e.statusOf(t, id))
	}
	most := itoa(int(money.MaxUnits))
	dear := placing().saying(`{"currency":"BHD","lines":[{"sku":"s","name":"n","quantity":1,"unitPrice":` + most + `}]}`)
	id := e.send(t, dear).is(t, http.StatusCreated).member(t, "orderId").(string)
	receipt := e.send(t, confirming(id).saying(`{"amount":`+most+`,"currency":"BHD"}`)).is(t, http.StatusOK)
	assert.Contains(t, receipt.body, `"amount":9007199254740991,`)
}

func pathNamesOrder(t *testing.T, e edge) {
	one, two := e.place(t), e.place(t)
	r := confirming(one)
	body := `{"orderId":"` + two + `","id":"` + two + `","amount":1000,"currency":"JPY"}`
	e.send(t, r.saying(body)).isProblem(t, http.StatusBadRequest, "invalid_request")
	e.send(t, r.to(r.path+"?id="+two+"&orderId="+two)).isProblem(t, http.StatusBadRequest, "invalid_request")
	e.send(t, r).is(t, http.StatusOK)
	assert.Equal(t, "PLACED", e.statusOf(t, two))
	escaped := "/api/orders/" + strings.ReplaceAll(two, "-", "%2d") + "/confirm-payment"
	e.send(t, confirming(two).to(escaped)).is(t, http.StatusOK)
	twice := "/api/orders/" + strings.ReplaceAll(one, "-", "%252d")
	e.send(t, get(twice)).isProblem(t, http.StatusNotFound, "order_not_found")
}

func largeBodyUsesNoKey(t *testing.T, e edge) {
	const large = 10 << 20
	r := confirming(e.place(t))
	valid := r.body
	for name, body := range map[string]string{
		"one long text":         `{"amount":1000,"currency":"` + strings.Repeat("J", large) + `"}`,
		"blanks after the body": valid + strings.Repeat(" ", large),
		"one byte too many":     valid + strings.Repeat("\n", 64<<10-len(valid)+1),
	} {
		for _, chunked := range []bool{false, true} {
			big := r.saying(body)
			big.chunked = chunked
			a := e.send(t, big).isProblem(t, http.StatusRequestEntityTooLarge, "payload_too_large")
			assert.Equal(t, r.header.Get("Idempotency-Key"), a.header.Get("Idempotency-Key"), name)
		}
	}
	for _, open := range []string{"[", `{"a":`, `{"amount":[[`} {
		nested := r.saying(strings.Repeat(open, 60_000/len(open)))
		e.send(t, nested).isProblem(t, http.StatusBadRequest, "invalid_request")
	}
	exact := r.saying(valid + strings.Repeat(" ", 64<<10-len(valid)))
	assert.Empty(t, e.send(t, exact).is(t, http.StatusOK).header.Get("Idempotent-Replayed"))
}
