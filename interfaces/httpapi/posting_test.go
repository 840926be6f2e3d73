package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vector is a row of docs/posting-keys.json: an input with its key, or with the field for which it is refused.
type vector struct {
	Input json.RawMessage `json:"input"`
	Key   string          `json:"key"`
	Field string          `json:"field"`
}

func vectors(t *testing.T) (all []vector) {
	t.Helper()
	file, err := os.ReadFile("../../docs/posting-keys.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, &all))
	require.Greater(t, len(all), 100)
	return all
}

// posted is the row's request, by somebody who may post for its company.
func (v vector) posted(t *testing.T) request {
	t.Helper()
	var input struct {
		CompanyID any `json:"companyId"`
	}
	require.NoError(t, json.Unmarshal(v.Input, &input))
	r := post(pathPost, string(v.Input)).token(accountant)
	if name, isText := input.CompanyID.(string); isText && v.Field != "companyId" {
		r = r.token("demo-alice@" + name)
	}
	return r
}

// C98, C100, C101.
func TestThePublishedVectorsHaveTheirKeysOverHTTP(t *testing.T) {
	e := onMemory(t)
	booked := map[string]bool{}
	for _, v := range vectors(t) {
		if v.Field != "" {
			continue
		}
		a := e.send(t, v.posted(t))
		assert.Equal(t, v.Key, a.member(t, "idempotencyKey"), string(v.Input))
		assert.Equal(t, booked[v.Key], a.status == http.StatusOK, string(v.Input))
		booked[v.Key] = true
	}
	assert.Greater(t, len(booked), 30)
}

// C98: what could make one text of two documents is refused, and books nothing.
func TestThePublishedRefusalsAreRefusedOverHTTP(t *testing.T) {
	e := onMemory(t)
	for _, v := range vectors(t) {
		if v.Field == "" {
			continue
		}
		a := e.send(t, v.posted(t)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.Equal(t, "/"+v.Field, a.member(t, "errors/0/pointer"), string(v.Input))
		assert.False(t, a.has(t, "errors/1"), a.body)
		assert.Equal(t, "IDEMPOTENCY_KEY_GENERATION_FAILED", a.member(t, "error/code"), string(v.Input))
		assert.NotEmpty(t, a.member(t, "error/message"))
		assert.False(t, a.has(t, "error/details"), "there is no entry to name")
		assert.Equal(t, "after-fix", a.member(t, "retry"))
	}
}

// What JSON can say of a number and a list of Go values cannot.
func TestNumbersAreWrittenInOneWay(t *testing.T) { // C101
	e := onMemory(t)
	d := invoice("inv-1")
	for member, numbers := range map[string][]string{
		"total":   {"5e+06", "5e6", "5E6", "110000.0", "0110000", "+110000", "-0", "-00", "0", "1e400", "NaN", "0x1a"},
		"version": {"1.0", "1e0", "01", "+1", "-0", "-1", "1.5"},
	} {
		for _, number := range numbers {
			at := strings.Replace(d.with(member, "HERE").body(), `"HERE"`, number, 1)
			e.send(t, post(pathPost, at).token(accountant)).isProblem(t, http.StatusBadRequest, "invalid_request")
		}
	}
	for total, text := range map[string]int64{"9007199254740991": 9_007_199_254_740_991, "-1": -1} {
		at := strings.Replace(d.with("total", "HERE").body(), `"HERE"`, total, 1)
		first := e.send(t, post(pathPost, at).token(accountant)).is(t, http.StatusCreated)
		assert.Equal(t, first.member(t, "journalEntryId"), e.repeating(t, d.with("total", text)).member(t, "journalEntryId"))
	}
}

func TestEveryComponentThatIsWrongIsNamed(t *testing.T) {
	e := onMemory(t)
	a := e.send(t, post(pathPost, `{"version":-1}`).token(accountant)).isProblem(t, 400, "invalid_request")
	assert.ElementsMatch(t, []string{
		"/version", "/companyId", "/sourceDocumentType", "/sourceDocumentId", "/serviceDate", "/total",
	}, pointers(t, a))
	assert.Equal(t, "IDEMPOTENCY_KEY_GENERATION_FAILED", a.member(t, "error/code"))
	for _, body := range []string{
		"{}", `{"":1}`, `{"` + strings.Repeat("x", 100) + `":1}`, `{"lines":7}`, `{"currency":"yen"}`,
		invoice("a").with("CompanyId", company).without("companyId").body(),
		strings.Replace(invoice("a").body(), `"total":110000`, `"total":110000,"total":110000`, 1),
		strings.Replace(invoice("a").body(), `"version":1`, `"version":1,"version":2`, 1),
	} {
		a := e.send(t, post(pathPost, body).token(accountant)).isProblem(t, 400, "invalid_request")
		assert.Equal(t, "IDEMPOTENCY_KEY_GENERATION_FAILED", a.member(t, "error/code"), body)
	}
}

func pointers(t *testing.T, a answer) (all []string) {
	t.Helper()
	for i := 0; a.has(t, fmt.Sprint("errors/", i)); i++ {
		all = append(all, a.member(t, fmt.Sprint("errors/", i, "/pointer")).(string))
	}
	return all
}

func TestWhatIsWrongBesideTheComponentsSaysNothingOfTheKey(t *testing.T) {
	e := onMemory(t)
	debit, credit := line("a", "debit", 110_000), line("b", "credit", 110_000)
	one := func(l any) document { return invoice("inv-1").with("lines", []any{l, credit}) }
	for pointer, documents := range map[string][]document{
		"/more":     {invoice("inv-1").with("more", nil), invoice("inv-1").with("more", 1)},
		"/Total":    {invoice("inv-1").with("Total", 110_000)},
		"/currency": {invoice("inv-1").with("currency", "yen"), invoice("inv-1").with("currency", "XXX")},
		"":          {invoice("inv-1").with("", 1)},
		"/lines": {
			invoice("inv-1").with("lines", 1), invoice("inv-1").with("lines", document{}),
			invoice("inv-1").with("lines", []any{debit}), one(line("a", "debit", 109_999)),
			one(line("a", "credit", 110_000)), invoice("inv-1").with("lines", []any{debit, credit, debit, credit}),
			invoice("inv-1").with("lines", []any{line("a", "debit", 1), line("b", "credit", 1)}),
		},
		"/lines/0": {one(nil), one("debit"), one([]any{})},
		"/lines/0/account": {
			one(debit.without("account")), one(debit.with("account", "")), one(debit.with("account", "a|b")),
			one(debit.with("account", " a")),
		},
		"/lines/0/side": {one(debit.without("side")), one(debit.with("side", "Debit")), one(debit.with("side", 1))},
		"/lines/0/amount": {
			one(debit.without("amount")), one(debit.with("amount", 0)), one(debit.with("amount", -110_000)),
			one(debit.with("amount", "110000")), one(debit.with("amount", json.RawMessage("110000.0"))),
			one(debit.with("amount", 9_007_199_254_740_992)),
		},
		"/lines/0/more": {one(debit.with("more", 1))},
	} {
		for _, d := range documents {
			a := e.send(t, d.posted()).isProblem(t, http.StatusBadRequest, "invalid_request")
			assert.Equal(t, pointer, a.member(t, "errors/0/pointer"), d.body())
			assert.False(t, a.has(t, "error"), a.body)
		}
	}
	e.booking(t, invoice("inv-1"))
}

func TestATextThatIsNoObjectSaysNothingOfTheKey(t *testing.T) {
	e := onMemory(t)
	for _, body := range []string{
		"", "null", "[]", "{", `{"companyId":`, `{"companyId":"\ud800"}`, "{}{}", "{}x", `"x"`, "\ufeff{}", `{"total":01}`,
	} {
		a := e.send(t, post(pathPost, body).token(accountant)).isProblem(t, http.StatusBadRequest, "invalid_request")
		assert.Empty(t, a.member(t, "errors/0/pointer"), body)
		assert.False(t, a.has(t, "error"), body)
	}
}

// A body can have more mistakes than an answer should list; those of the key come first.
func TestALongListOfMistakesIsCutOffBehindTheComponents(t *testing.T) {
	e := onMemory(t)
	bad := make([]any, 500)
	for i := range bad {
		bad[i] = line("", "both", 0)
	}
	// encoding/json sorts the members: the lines come before the version.
	a := e.send(t, invoice("inv-1").with("lines", bad).with("version", "1").posted()).isProblem(t, 400, "invalid_request")
	all := pointers(t, a)
	assert.LessOrEqual(t, len(all), 32)
	assert.Equal(t, "/version", all[0])
	assert.Equal(t, "IDEMPOTENCY_KEY_GENERATION_FAILED", a.member(t, "error/code"))
	assert.Contains(t, a.member(t, "error/message"), "version")

	a = e.send(t, invoice("inv-1").with("lines", bad).posted()).isProblem(t, 400, "invalid_request")
	assert.LessOrEqual(t, len(pointers(t, a)), 32)
	assert.False(t, a.has(t, "error"))
}

func TestAPostingMayHaveAsManyLinesAsItsBodyHolds(t *testing.T) {
	e := onMemory(t)
	lines := []any{line("a", "debit", 1000)}
	for range 1000 {
		lines = append(lines, line("b", "credit", 1))
	}
	d := invoice("inv-1").with("total", 1000).with("lines", lines)
	id := e.booking(t, d).member(t, "journalEntryId")
	assert.Len(t, linesOf(t, e.entry(t, id, accountant)), 1001)
}
