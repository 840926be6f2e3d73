package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/fault"
	"kakutei/domain/money"
	"kakutei/domain/order"
)

// violationsOf are those of a request that is not valid.
func violationsOf(t *testing.T, err error) []fault.Violation {
	t.Helper()
	f, ok := fault.From(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.CodeInvalid, f.Code())
	require.NotEmpty(t, f.Violations())
	return f.Violations()
}

// sample has a member of each kind.
type sample struct {
	amount, count int64
	unit          money.Currency
	note          string
	lines         []string
}

func read(body string) (s sample, err error) {
	err = decode([]byte(body),
		required("amount", integer(&s.amount, 1, money.MaxUnits)),
		required("currency", currency(&s.unit)),
		optional("note", text(&s.note)),
		optional("count", integer(&s.count, -5, 5)),
		optional("lines", list(2, func() reader {
			s.lines = append(s.lines, "")
			return object(required("name", text(&s.lines[len(s.lines)-1])))
		})),
	)
	return s, err
}

func TestWhatIsRead(t *testing.T) {
	for body, want := range map[string]sample{
		`{"amount":1,"currency":"JPY"}`:                          {amount: 1, unit: money.JPY},
		`{"amount":9007199254740991,"currency":"JPY"}`:           {amount: money.MaxUnits, unit: money.JPY},
		`{"amount":1,"currency":"JPY","note":null,"lines":null}`: {amount: 1, unit: money.JPY},
		`{"amount":1,"currency":"JPY","count":-5}`:               {amount: 1, unit: money.JPY, count: -5},
		`{"amount":1,"currency":"JPY","count":0}`:                {amount: 1, unit: money.JPY},
		`{"amount":1,"currency":"JPY","note":"\"\\\/\u00e9\uD83D\ude00é😀"}`: {
			amount: 1, unit: money.JPY,
			note: `"\/é😀é😀`,
		},
		`{"amount":1,"currency":"JPY","lines":[]}`: {amount: 1, unit: money.JPY},
		`{"amount":1,"currency":"JPY","lines":[{"name":"a"},{"name":"b"}]}`: {
			amount: 1, unit: money.JPY,
			lines: []string{"a", "b"},
		},
		"\r\n\t {\n\"amount\" : 1\t,\"currency\":\"JPY\" }\n ": {amount: 1, unit: money.JPY},
	} {
		got, err := read(body)
		require.NoError(t, err, body)
		assert.Equal(t, want, got, body)
	}
}

func TestATextThatIsNoJSONObjectIsWrongAsAWhole(t *testing.T) {
	for _, body := range []string{
		"", " ", "null", "1", `"x"`, "true", "[]", `[{"amount":1,"currency":"JPY"}]`, "{", "}", "{}}", "{},",
		"{} {}", "{}x", "{}null",
		"{,}", `{"amount"}`, `{"amount":}`, `{"amount":1,}`, `{"amount":1 "currency":"JPY"}`, `{amount:1}`,
		`{'amount':1}`,
		`{"amount":1;"currency":"JPY"}`, `{"amount":01,"currency":"JPY"}`, `{"amount":+1,"currency":"JPY"}`,
		`{"amount":.5,"currency":"JPY"}`, `{"amount":1.,"currency":"JPY"}`, `{"amount":1e,"currency":"JPY"}`,
		`{"amount":1e+,"currency":"JPY"}`, `{"amount":-,"currency":"JPY"}`, `{"amount":0x10,"currency":"JPY"}`,
		`{"amount":NaN,"currency":"JPY"}`, `{"amount":Infinity}`, `{"amount":nul}`, `{"amount":nullx}`,
		`{"amount":truefalse}`,
		`{"amount":1,"currency":"JPY}`, `{"amount":1,"currency":"J\xPY"}`, `{"amount":1,"currency":"\u00g0"}`,
		`{"amount":1,"currency":"\u00"}`, `{"note":"\`, `{"note":"\u`, "{\"note\":\"a\nb\"}", "{\"note\":\"a\x00b\"}",
		`{"note":"\ud800"}`, `{"note":"\ud800x"}`, `{"note":"\ud800\n"}`, `{"note":"\ud800\ud800"}`,
		`{"note":"\udc00"}`,
		`{"note":"\udc00\ud800"}`, `{"\ud800":1}`, "{\"note\":\"\xff\"}", "{\"note\":\"\xc0\x80\"}", "{\"\xff\":1}",
		"{}\xff",
		"\ufeff{}", "{}\x00", "{\v}", "{\u00a0}", "// x\n{}", "{/**/}",
	} {
		_, err := read(body)
		violations := violationsOf(t, err)
		require.Len(t, violations, 1, body)
		assert.Empty(t, violations[0].Field, body)
	}
}

func TestWhatIsWrongWithAMemberIsNamedByItsField(t *testing.T) {
	rest := `,"amount":1,"currency":"JPY"}`
	long := strings.Repeat("x", maxNameTold)
	for body, field := range map[string]string{
		`{"currency":"JPY"}`:                                         "amount",
		`{"amount":null,"currency":"JPY"}`:                           "amount",
		`{"amount":"1","currency":"JPY"}`:                            "amount",
		`{"amount":1.0,"currency":"JPY"}`:                            "amount",
		`{"amount":1e0,"currency":"JPY"}`:                            "amount",
		`{"amount":-0,"currency":"JPY"}`:                             "amount",
		`{"amount":0,"currency":"JPY"}`:                              "amount",
		`{"amount":9007199254740992,"currency":"JPY"}`:               "amount",
		`{"amount":99999999999999999999,"currency":"JPY"}`:           "amount",
		`{"amount":true,"currency":"JPY"}`:                           "amount",
		`{"amount":[],"currency":"JPY"}`:                             "amount",
		`{"amount":{"amount":1},"currency":"JPY"}`:                   "amount",
		`{"amount":1,"currency":"jpy"}`:                              "currency",
		`{"amount":1,"currency":"XXX"}`:                              "currency",
		`{"amount":1,"currency":""}`:                                 "currency",
		`{"amount":1,"currency":1}`:                                  "currency",
		`{"amount":1,"currency":"J\u0000Y"}`:                         "currency",
		`{"count":-0` + rest:                                         "count",
		`{"count":-6` + rest:                                         "count",
		`{"note":""` + rest:                                          "note",
		`{"note":1` + rest:                                           "note",
		`{"note":"` + strings.Repeat("é", 257) + `"` + rest:          "note",
		`{"note":"a\u0000"` + rest:                                   "note",
		`{"note":"a\u009f"` + rest:                                   "note",
		`{"Note":"a"` + rest:                                         "Note",
		`{"note":"a","note":"a"` + rest:                              "note",
		`{"note":null,"note":null` + rest:                            "note",
		`{"more":null` + rest:                                        "more",
		`{"more":{"amount":1,"deep":[[[1,"\ud83d\ude00"]]]}` + rest:  "more",
		`{"a~/b":1` + rest:                                           "a~0~1b",
		`{"":1` + rest:                                               "",
		`{"` + long + `":1` + rest:                                   long,
		`{"` + long + `x":1` + rest:                                  "",
		`{"lines":{}` + rest:                                         "lines",
		`{"lines":[1]` + rest:                                        "lines/0",
		`{"lines":[null]` + rest:                                     "lines/0",
		`{"lines":[{}]` + rest:                                       "lines/0/name",
		`{"lines":[{"name":1}]` + rest:                               "lines/0/name",
		`{"lines":[{"name":"a"},{"name":"a","x":1}]` + rest:          "lines/1/x",
		`{"lines":[{"name":"a"},{"name":"a"},{"name":"a"},7]` + rest: "lines",
	} {
		_, err := read(body)
		violations := violationsOf(t, err)
		require.Len(t, violations, 1, body)
		assert.Equal(t, field, violations[0].Field, body)
	}
}

func TestEverythingThatIsWrongIsNamedAtOnce(t *testing.T) {
	_, err := read(`{"note":"","more":[{}],"lines":[{"name":""},{"x":1}],"count":9,"amount":0}`)
	var fields []string
	for _, v := range violationsOf(t, err) {
		fields = append(fields, v.Field)
	}
	assert.Equal(t, []string{
		"note", "more", "lines/0/name", "lines/1/x", "lines/1/name", "count", "amount", "currency",
	}, fields)
}

func TestTheNamesOfWhatIsWrongAreBounded(t *testing.T) {
	var body strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&body, `,"x%d":1`, i)
	}
	_, err := read(`{"amount":1,"currency":"JPY"` + body.String() + `}`)
	assert.Len(t, violationsOf(t, err), maxViolations)
	_, err = read(`{"amount":1,"currency":"JPY"` + body.String() + `,}`)
	assert.Empty(t, violationsOf(t, err)[0].Field, "whatever else is wrong: it is no JSON")
}

func TestDeepNestingIsRefusedWithoutDescending(t *testing.T) { // C96
	deepest := strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)
	_, err := read(`{"amount":1,"currency":"JPY","more":` + deepest + `}`)
	assert.Equal(t, "more", violationsOf(t, err)[0].Field)
	for _, opening := range []string{"[", `{"a":`, `[{"a":`} {
		_, err := read(`{"more":` + strings.Repeat(opening, 60_000/len(opening)))
		assert.Contains(t, violationsOf(t, err)[0].Detail, "nested too deeply")
	}
	allocated := testing.AllocsPerRun(10, func() { _, _ = read(`{"more":` + strings.Repeat("[", 60_000)) })
	assert.Less(t, allocated, 100.0)
}

func TestCarts(t *testing.T) {
	line := `{"sku":"s","name":"n","quantity":1,"unitPrice":1}`
	lines := func(n int) string {
		return `{"currency":"JPY","lines":[` + strings.TrimSuffix(strings.Repeat(line+",", n), ",") + `]}`
	}
	for _, n := range []int{1, 200} {
		cart, err := cartIn([]byte(lines(n)))
		require.NoError(t, err)
		assert.Equal(t, money.Of(int64(n), money.JPY), cart.Total())
	}
	one := func(line string) string { return `{"currency":"JPY","lines":[` + line + `]}` }
	for body, field := range map[string]string{
		lines(0):   "lines",
		lines(201): "lines",
		one(`{"sku":"s","name":"n","quantity":0,"unitPrice":1}`):                   "lines/0/quantity",
		one(`{"sku":"s","name":"n","quantity":10000,"unitPrice":1}`):               "lines/0/quantity",
		one(`{"sku":"s","name":"n","quantity":1,"unitPrice":-1}`):                  "lines/0/unitPrice",
		one(`{"sku":"s","name":"n","quantity":1,"unitPrice":9007199254740992}`):    "lines/0/unitPrice",
		one(`{"sku":"s","name":"n","quantity":1,"unitPrice":0}`):                   "lines",
		one(`{"sku":"s","name":"n","quantity":9999,"unitPrice":9007199254740991}`): "lines",
		one(`{"sku":"s","name":"n","quantity":1}`):                                 "lines/0/unitPrice",
		one(`{"name":"n","quantity":1,"unitPrice":1}`):                             "lines/0/sku",
		one(`{"sku":"s","quantity":1,"unitPrice":1}`):                              "lines/0/name",
		one(`{"sku":"s","name":"n","unitPrice":1}`):                                "lines/0/quantity",
		`{"lines":[` + line + `]}`:                                                 "currency",
		`{"currency":"JPY"}`:                                                       "lines",
	} {
		_, err := cartIn([]byte(body))
		assert.Equal(t, field, violationsOf(t, err)[0].Field, body)
	}
	whole, err := cartIn([]byte(one(`{"sku":"s","name":"n","quantity":9999,"unitPrice":9000}`)))
	require.NoError(t, err)
	assert.Equal(t, []order.Line{{SKU: "s", Name: "n", Quantity: 9999, UnitPrice: 9000}}, whole.Lines())
}

// Whatever decode accepts, encoding/json reads as the same values, and it was within the rules.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"amount":1,"currency":"JPY"}`,
		`{"amount":1000,"currency":"EUR","note":"\ud83d\ude00 é","count":-5,"lines":[{"name":"a"}]}`,
		`{"amount":1,"currency":"JPY","note":null,"lines":[]}`, "\ufeff{}", `{"amount":1e3}`,
		`{"a":{"b":[1,2.5e-3,true,null]}}`,
		`{"note":"\ud800"}`, `{"AMOUNT":1,"amount":2,"currency":"JPY"}`, `{"amount":1,"currency":"JPY"} x`, `[[[[`,
		"{\"note\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := read(string(body))
		if err != nil {
			violationsOf(t, err)
			return
		}
		var want struct {
			Amount   *int64
			Currency *string
			Note     *string
			Count    *int64
			Lines    []struct{ Name *string }
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&want))
		require.True(t, json.Valid(body))
		require.Equal(t, *want.Amount, got.amount)
		require.Equal(t, *want.Currency, got.unit.Code())
		require.Equal(t, valueOf(want.Note), got.note)
		require.Equal(t, valueOf(want.Count), got.count)
		require.Len(t, got.lines, len(want.Lines))
		for i, line := range want.Lines {
			require.Equal(t, *line.Name, got.lines[i])
		}
		require.LessOrEqual(t, utf8.RuneCountInString(got.note), maxText)
		require.False(t, strings.ContainsFunc(got.note, unicode.IsControl))
	})
}

func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// The scanner knows the same texts as encoding/json, except for those that it refuses on purpose.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[1,-0,0.5,1e9,1E-9]`, `"\u00e9\n"`, `null`, ` true `, `{"a":[{}],"b":""}`, `01`, `"\ud800"`, `[1,]`,
		`{"a":1,}`, "\"\x01\"",
		"nul", "-", "1.", `"`, "", `{"a":"\ud83d"}`, `"\ud83d\ude00"`, `[[[]]]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return
		}
		s := scanner{text: body}
		err := s.skip(1)
		accepted := err == nil && s.end()
		if accepted {
			require.True(t, json.Valid(body))
			return
		}
		onPurpose := err != nil && (strings.Contains(err.Error(), "surrogate") || strings.Contains(err.Error(), "deeply"))
		require.True(t, onPurpose || !json.Valid(body), "%v", err)
	})
}
