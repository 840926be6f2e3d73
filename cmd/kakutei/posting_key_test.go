package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyOf runs posting-key with a request on its stdin.
func keyOf(t *testing.T, request string) called {
	t.Helper()
	return callReading(t.Context(), strings.NewReader(request), nil, "posting-key")
}

// published is a row of docs/posting-keys.json.
type published struct {
	Input            json.RawMessage
	Text, Key, Field string
}

func publishedVectors(t *testing.T) (all []published) {
	t.Helper()
	file, err := os.ReadFile("../../docs/posting-keys.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, &all))
	require.NotEmpty(t, all)
	return all
}

func TestPostingKeyPrintsTheTextAndTheKeyABareLineEach(t *testing.T) {
	got := keyOf(t, `{"companyId":"company-uuid","sourceDocumentType":"sales_invoice","sourceDocumentId":"inv-2025-001",`+
		`"version":1,"serviceDate":"2025-01-29","total":110000}`)
	assert.Equal(t, called{code: 0, stdout: "company-uuid|sales_invoice|inv-2025-001|1|2025-01-29|110000\n" +
		"60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23\n"}, got)
}

func TestPostingKeyTakesAWholePosting(t *testing.T) {
	got := keyOf(t, "\n"+`{"companyId":"company-uuid","sourceDocumentType":"purchase_bill",`+
		`"sourceDocumentId":"bill-2025-001","version":null,"serviceDate":"2025-01-29","total":55000,`+
		`"currency":"EUR","lines":[`+
		`{"account":"a","side":"debit","amount":55000},{"account":"b","side":"credit","amount":55000}]}`+"\r\n")
	assert.Equal(t, called{code: 0, stdout: "company-uuid|purchase_bill|bill-2025-001|0|2025-01-29|55000\n" +
		"83b5200d8cdd3caad9945724a7daa3909253a693907b30651c5129a2aebd1573\n"}, got)
}

// C100, C101.
func TestPostingKeyAgreesWithThePublishedVectors(t *testing.T) {
	for _, v := range publishedVectors(t) {
		got := keyOf(t, string(v.Input))
		if v.Field == "" {
			assert.Equal(t, called{code: 0, stdout: v.Text + "\n" + v.Key + "\n"}, got)
			continue
		}
		assert.Equal(t, 1, got.code, string(v.Input))
		assert.Empty(t, got.stdout)
		assert.Regexp(t, `\Akakutei: `+v.Field+`: .+\n\z`, got.stderr)
		assert.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line")
	}
}

func TestPostingKeyNamesEveryFieldThatIsWrong(t *testing.T) {
	got := keyOf(t, `{"sourceDocumentType":"receipt","version":-1,"more":1,"currency":"yen","lines":[{"side":"debit"}]}`)
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stdout)
	for _, field := range []string{
		"companyId", "sourceDocumentType", "sourceDocumentId", "version", "serviceDate", "total", "more", "currency",
		"lines/0/account", "lines/0/amount",
	} {
		assert.Regexp(t, `(: |; )`+field+`: `, got.stderr)
	}
	assert.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line")
}

func TestPostingKeyRefusesWhatTheServiceRefuses(t *testing.T) {
	const rest = `"companyId":"c","sourceDocumentType":"adjustment","sourceDocumentId":"d","serviceDate":"2025-01-29"}`
	for name, request := range map[string]string{
		"nothing":                   "",
		"no JSON":                   "companyId=c",
		"no object":                 "[]",
		"half an object":            `{"total":1,`,
		"two objects":               `{"total":1,` + rest + "{}",
		"a total with a fraction":   `{"total":1.0,` + rest,
		"a total with an exponent":  `{"total":1e3,` + rest,
		"a total given twice":       `{"total":1,"total":1,` + rest,
		"lines that do not balance": `{"total":1,"lines":[{"account":"a","side":"debit","amount":1}],` + rest,
		"more than it reads":        `{"total":1,` + strings.Repeat(" ", 2<<20) + rest,
	} {
		got := keyOf(t, request)
		assert.Equal(t, 1, got.code, name)
		assert.Empty(t, got.stdout, name)
		assert.Regexp(t, `\Akakutei: .+\n\z`, got.stderr, name)
	}
	assert.Equal(t, 0, keyOf(t, `{"total":1,`+rest).code)
}

func TestPostingKeySaysThatItsInputCannotBeRead(t *testing.T) {
	got := callReading(t.Context(), iotest.ErrReader(errors.New("broken pipe")), nil, "posting-key")
	assert.Equal(t, called{code: 1, stderr: "kakutei: stdin: broken pipe\n"}, got)
}

func TestPostingKeyTakesNoArguments(t *testing.T) {
	got := call(t, nil, "posting-key", "file.json")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stdout)
}
