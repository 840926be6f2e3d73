package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/idempotent"
	"kakutei/application/oversight"
	"kakutei/domain/journal"
	"kakutei/domain/money"
)

// journalChecks are CONTRACT.md, Journal entries, whatever the store and whatever zone it is in.
var journalChecks = []check{
	{"a document is booked, and its entry reads as it was posted", documentIsBooked},
	{"a document that is posted again is answered with its entry", repeatsAreAnswered},
	{"whoever prefers it strict is told that the document is booked", strictRepeats},
	{"an entry is read by its company alone", entriesAreTheirCompanys},
	{"an entry names who posted it first", entriesNameTheirPoster},
	{"of a hundred identical postings at once one is booked", identicalPostings},
	{"a hundred postings of ten documents at once are ten entries", postingsOfTenDocuments},
	{"each type of document has its posting rule", postingRules},
	{"the currency is booked, and is no part of the key", currencies},
	{"lines are booked in their order", linesKeepTheirOrder},
	{"dates are days, and stay the text that was sent", datesStayTexts},
	{"odd ids and accounts come back as they were sent", documentsComeBack},
	{"C90: no cleaning up forgets an entry", cleaningForgetsNoEntry},
	{"C100: a version that is left out is 0", versionsLeftOut},
	{"C103: another content under the same key is refused, and a new version is booked", contentDiffers},
	{"C106: a lost answer is found again under the same key", lostAnswers},
}

func documentIsBooked(t *testing.T, e edge) {
	const key = "60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23"
	first := e.booking(t, taxed("inv-2025-001"))
	id := first.member(t, "journalEntryId").(string)
	receipt := fmt.Sprintf(`{"journalEntryId":%q,"idempotencyKey":%q,"status":"created"}`, id, key)
	assert.Equal(t, receipt, first.body)
	assert.Equal(t, pathEntries+id, first.header.Get("Location"))
	assert.Empty(t, first.header.Get("Preference-Applied"))
	_, err := journal.ParseID(id)
	require.NoError(t, err)

	entry := e.send(t, get(first.header.Get("Location")).token(accountant)).is(t, http.StatusOK)
	at := entry.member(t, "postedAt").(string)
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`, at)
	want := fmt.Sprintf(`{"journalEntryId":%q,"idempotencyKey":%q,"companyId":"company-uuid",`+
		`"sourceDocumentType":"sales_invoice","sourceDocumentId":"inv-2025-001","version":1,"serviceDate":"2025-01-29",`+
		`"total":110000,"currency":"JPY","lines":[{"account":"accounts_receivable","side":"debit","amount":110000},`+
		`{"account":"sales","side":"credit","amount":100000},{"account":"consumption_tax","side":"credit","amount":10000}],`+
		`"postedAt":%q,"postedBy":"alice"}`, id, key, at)
	assert.Equal(t, want, entry.body)
}

func repeatsAreAnswered(t *testing.T, e edge) {
	d := taxed("inv-1")
	first := e.booking(t, d)
	id := first.member(t, "journalEntryId")
	want := fmt.Sprintf(`{"message":"Operation already processed","journalEntryId":%q,"idempotencyKey":%q,`+
		`"originalTimestamp":%q,"isRetry":true}`,
		id, first.member(t, "idempotencyKey"), e.entry(t, id, accountant).member(t, "postedAt"))
	for _, token := range []string{accountant, "demo-bob@" + company} {
		again := e.send(t, d.posted().token(token)).is(t, http.StatusOK)
		assert.Equal(t, want, again.body)
		assert.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		assert.Empty(t, again.header.Get("Location"))
		assert.Empty(t, again.header.Get("Preference-Applied"))
	}
}

func strictRepeats(t *testing.T, e edge) {
	d := taxed("inv-1")
	strict := d.posted().with("Prefer", "handling=strict")
	first := e.send(t, strict).is(t, http.StatusCreated)
	assert.Empty(t, first.header.Get("Preference-Applied"), "nothing is handled otherwise")
	again := e.send(t, strict).isProblem(t, http.StatusConflict, "duplicate_operation")
	assert.Equal(t, "never", again.member(t, "retry"))
	assert.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	assert.Equal(t, "handling=strict", again.header.Get("Preference-Applied"))
	assert.Empty(t, again.header.Get("Retry-After"))
	assertNames(t, again, "DUPLICATE_OPERATION", e.repeating(t, d))
	assertGeneral(t, again)
}

// assertNames checks that the problem's member error names the entry that a repeat is answered with.
func assertNames(t *testing.T, problem answer, code string, repeat answer) {
	t.Helper()
	assert.Equal(t, code, problem.member(t, "error/code"))
	assert.NotEmpty(t, problem.member(t, "error/message"))
	assert.Equal(t, map[string]any{
		"originalJournalEntryId": repeat.member(t, "journalEntryId"),
		"originalTimestamp":      repeat.member(t, "originalTimestamp"),
		"idempotencyKey":         repeat.member(t, "idempotencyKey"),
	}, problem.member(t, "error/details"))
}

func entriesAreTheirCompanys(t *testing.T, e edge) {
	path := e.booking(t, invoice("inv-1")).header.Get("Location")
	e.send(t, get(path).token("demo-bob@"+company)).is(t, http.StatusOK)
	nobodys := get(pathEntries+string(journal.NewID())).token(accountant).with("X-Request-Id", "one")
	none := e.send(t, nobodys).isProblem(t, http.StatusNotFound, "not_found")
	for _, token := range []string{"demo-alice", "demo-alice@other", "demo-alice@Company-uuid"} {
		theirs := e.send(t, get(path).token(token).with("X-Request-Id", "one")).isProblem(t, http.StatusNotFound, "not_found")
		assert.Equal(t, none.body, theirs.body, "no different from none")
	}
	for _, id := range []string{"post", "x", "%00", "%ff", "..", "a%2Fb", strings.ToUpper(path[len(pathEntries):])} {
		e.send(t, get(pathEntries+id).token(accountant)).isProblem(t, http.StatusNotFound, "not_found")
	}
}

func entriesNameTheirPoster(t *testing.T, e edge) {
	d := invoice("inv-1")
	id := e.send(t, d.posted().token("demo-bob@"+company)).is(t, http.StatusCreated).member(t, "journalEntryId")
	assert.Equal(t, id, e.repeating(t, d).member(t, "journalEntryId"), "alice's repeat")
	assert.Equal(t, "bob", e.entry(t, id, accountant).member(t, "postedBy"))
}

func postingRules(t *testing.T, e edge) {
	for kind, accounts := range map[string][2]string{
		"sales_invoice":   {"accounts_receivable", "sales"},
		"purchase_bill":   {"purchases", "accounts_payable"},
		"expense_claim":   {"expenses", "accrued_expenses"},
		"adjustment":      {"adjustments", "suspense"},
		"opening_balance": {"opening_assets", "opening_equity"},
	} {
		d := invoice("doc").with("sourceDocumentType", kind)
		id := e.booking(t, d).member(t, "journalEntryId")
		assert.Equal(t, []journal.Line{
			{Account: accounts[0], Side: journal.Debit, Amount: 110_000},
			{Account: accounts[1], Side: journal.Credit, Amount: 110_000},
		}, linesOf(t, e.entry(t, id, accountant)), kind)

		note := e.booking(t, d.with("total", -9_007_199_254_740_991)).member(t, "journalEntryId")
		entry := e.entry(t, note, accountant)
		assert.Equal(t, []journal.Line{
			{Account: accounts[0], Side: journal.Credit, Amount: money.MaxUnits},
			{Account: accounts[1], Side: journal.Debit, Amount: money.MaxUnits},
		}, linesOf(t, entry), "a credit note turns the sides round")
		assert.Contains(t, entry.body, `"total":-9007199254740991,`)

		for _, same := range []document{
			d.with("lines", nil), d.with("lines", []any{}),
			d.with("lines", []any{line(accounts[0], "debit", 110_000), line(accounts[1], "credit", 110_000)}),
		} {
			assert.Equal(t, id, e.repeating(t, same).member(t, "journalEntryId"), "what is booked is the same")
		}
	}
}

func currencies(t *testing.T, e edge) {
	yen, dinar := invoice("inv-1"), invoice("inv-2").with("currency", "KWD")
	first := e.booking(t, yen).member(t, "journalEntryId")
	assert.Equal(t, "JPY", e.entry(t, first, accountant).member(t, "currency"))
	for _, same := range []document{yen.with("currency", "JPY"), yen.with("currency", nil)} {
		assert.Equal(t, first, e.repeating(t, same).member(t, "journalEntryId"))
	}
	e.send(t, yen.with("currency", "KWD").posted()).isProblem(t, 422, "idempotency_key_reused")
	second := e.booking(t, dinar).member(t, "journalEntryId")
	assert.Equal(t, "KWD", e.entry(t, second, accountant).member(t, "currency"))
	e.send(t, dinar.without("currency").posted()).isProblem(t, 422, "idempotency_key_reused")
}

func linesKeepTheirOrder(t *testing.T, e edge) {
	lines := []any{
		line("sales", "credit", 60_000), line("accounts_receivable", "debit", 110_000), line("sales", "credit", 50_000),
	}
	d := invoice("inv-1").with("lines", lines)
	id := e.booking(t, d).member(t, "journalEntryId")
	assert.Equal(t, []journal.Line{
		{Account: "sales", Side: journal.Credit, Amount: 60_000},
		{Account: "accounts_receivable", Side: journal.Debit, Amount: 110_000},
		{Account: "sales", Side: journal.Credit, Amount: 50_000},
	}, linesOf(t, e.entry(t, id, accountant)))
	turned := d.with("lines", []any{lines[2], lines[1], lines[0]}) // C22
	e.send(t, turned.posted()).isProblem(t, 422, "idempotency_key_reused")
}

func datesStayTexts(t *testing.T, e edge) {
	for _, date := range []string{
		"2025-01-29", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "1952-01-01", "1582-10-10",
		"2026-03-08", "2026-03-29", "2026-11-01", // clocks are put forward or back
		"2011-12-30", // Samoa has left it out
	} {
		first := e.booking(t, invoice("inv-1").with("serviceDate", date))
		entry := e.entry(t, first.member(t, "journalEntryId"), accountant)
		assert.Equal(t, date, entry.member(t, "serviceDate"))
		again := e.repeating(t, invoice("inv-1").with("serviceDate", date))
		assert.Equal(t, entry.member(t, "postedAt"), again.member(t, "originalTimestamp"))
		posted, err := time.Parse(time.RFC3339, again.member(t, "originalTimestamp").(string))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), posted, time.Minute)
	}
}

func documentsComeBack(t *testing.T, e edge) {
	for _, text := range []string{
		`o<&>"é\/`, "請求書 第1号", "e\u0301", "🍵", "a\u2028\u2029b", "\ufffd\uffff", "inv 1  2", "' OR 1=1 --", "a¦b｜c",
		strings.Repeat("茶", 128), strings.Repeat("🍵", 128),
	} {
		d := invoice(text).with("lines", []any{line(text, "debit", 110_000), line(text, "credit", 110_000)})
		entry := e.entry(t, e.booking(t, d).member(t, "journalEntryId"), accountant)
		assert.Equal(t, text, entry.member(t, "sourceDocumentId"))
		assert.Equal(t, text, entry.member(t, "lines/1/account"))
		e.repeating(t, d)
	}
	visible := "!\"#$%&'()*+,-./:;<=>?[\\]^_`{}~"
	d := invoice("inv-1").with("companyId", visible)
	entry := e.entry(t, e.booking(t, d).member(t, "journalEntryId"), "demo-alice@"+visible)
	assert.Equal(t, visible, entry.member(t, "companyId"))
}

func cleaningForgetsNoEntry(t *testing.T, e edge) {
	id := e.booking(t, invoice("inv-1")).member(t, "journalEntryId")
	e.repeating(t, invoice("inv-1"))
	_, err := idempotent.Sweep(t.Context(), e.work, idempotent.Pace{})
	require.NoError(t, err)
	_, err = oversight.SweepAudit(t.Context(), e.work, idempotent.Pace{}, -time.Hour)
	require.NoError(t, err)
	assert.Equal(t, id, e.repeating(t, invoice("inv-1")).member(t, "journalEntryId"))
}

func versionsLeftOut(t *testing.T, e edge) {
	d := invoice("inv-1")
	none := e.booking(t, d.without("version"))
	for _, same := range []any{nil, 0} {
		again := e.repeating(t, d.with("version", same))
		assert.Equal(t, none.member(t, "idempotencyKey"), again.member(t, "idempotencyKey"))
	}
	assert.NotEqual(t, none.member(t, "idempotencyKey"), e.booking(t, d).member(t, "idempotencyKey"), "version 1")
	for _, wrong := range []string{`"1"`, "1.0", "1.5", "-1", "true", "-0", "1e0", "2147483648", "[]", `""`} {
		a := e.send(t, d.with("version", json.RawMessage(wrong)).posted()).isProblem(t, 400, "invalid_request")
		assert.Equal(t, "/version", a.member(t, "errors/0/pointer"), wrong)
		assert.Equal(t, "IDEMPOTENCY_KEY_GENERATION_FAILED", a.member(t, "error/code"))
	}
}

func contentDiffers(t *testing.T, e edge) {
	first := e.booking(t, taxed("inv-1"))
	stands := e.entry(t, first.member(t, "journalEntryId"), accountant)
	other := invoice("inv-1")
	for _, r := range []request{
		other.posted(), other.posted(), other.posted().with("Prefer", "handling=strict"),
		other.posted().token("demo-bob@" + company),
	} {
		a := e.send(t, r).isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		assertNames(t, a, "DUPLICATE_OPERATION_MISMATCH", e.repeating(t, taxed("inv-1")))
		assert.Equal(t, "new-key", a.member(t, "retry"))
		assert.Empty(t, a.header.Get("Idempotent-Replayed"))
		assert.Empty(t, a.header.Get("Preference-Applied"))
		assertGeneral(t, a)
	}
	assert.Equal(t, stands.body, e.entry(t, first.member(t, "journalEntryId"), accountant).body, "it is unchanged")
	corrected := e.booking(t, other.with("version", 2))
	assert.NotEqual(t, first.member(t, "journalEntryId"), corrected.member(t, "journalEntryId"))
}

func lostAnswers(t *testing.T, e edge) {
	d := taxed("inv-1")
	w := e.dial(t)
	w.say(t, d.posted().whole())
	_, err := w.in.Peek(1) // it is answered, and nobody hears it
	require.NoError(t, err)
	require.NoError(t, w.Close())
	again := e.repeating(t, d)
	entry := e.entry(t, again.member(t, "journalEntryId"), accountant)
	assert.Equal(t, again.member(t, "idempotencyKey"), entry.member(t, "idempotencyKey"))
	assert.Equal(t, again.member(t, "originalTimestamp"), entry.member(t, "postedAt"))
	assert.InDelta(t, 1, entry.member(t, "version"), 0)
}
