package journal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/fault"
	"kakutei/domain/journal"
)

// vector is a row of docs/posting-keys.json, whose texts and keys were computed by other programs than this one. A row
// has text and key, or the field for which its input is refused.
type vector struct {
	Input map[string]json.RawMessage `json:"input"`
	Text  string                     `json:"text"`
	Key   journal.PostingKey         `json:"key"`
	Field string                     `json:"field"`
}

// golden are the texts and keys of the design, without which the file would prove nothing.
var golden = [][2]string{
	{
		"company-uuid|sales_invoice|inv-2025-001|1|2025-01-29|110000",
		"60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23",
	},
	{
		"company-uuid|purchase_bill|bill-2025-001|0|2025-01-29|55000",
		"83b5200d8cdd3caad9945724a7daa3909253a693907b30651c5129a2aebd1573",
	},
	{
		"company-uuid|opening_balance|ob-2025|0|2025-01-01|5000000",
		"0c674b33687c887784900f1a0be8ad56c763b61f06584c2a9fb6a72d712e82d3",
	},
}

func vectors(t *testing.T) (accepted, refused []vector) {
	t.Helper()
	file, err := os.ReadFile("../../docs/posting-keys.json")
	require.NoError(t, err)
	var all []vector
	require.NoError(t, json.Unmarshal(file, &all))
	for _, v := range all {
		if v.Field == "" {
			accepted = append(accepted, v)
		} else {
			refused = append(refused, v)
		}
	}
	require.NotEmpty(t, accepted)
	require.NotEmpty(t, refused)
	return accepted, refused
}

// document reads a row's input. wrong is the field whose value is of another type than it should be.
func (v vector) document() (d journal.SourceDocument, wrong string) {
	var date string
	for name, into := range map[string]any{
		"companyId": &d.Company, "sourceDocumentType": &d.Type, "sourceDocumentId": &d.ID, "version": &d.Version,
		"serviceDate": &date, "total": &d.Total,
	} {
		if raw, sent := v.Input[name]; sent && json.Unmarshal(raw, into) != nil {
			wrong = name
		}
	}
	d.ServiceDate, _ = journal.ParseDate(date) // none, if it is not one
	return d, wrong
}

func (v vector) String() string {
	input, err := json.Marshal(v.Input)
	return fmt.Sprint(string(input), err)
}

// C100, C101: a version that is left out, the number's text, ids that are not ASCII.
func TestThePublishedVectorsHaveTheirTextsAndKeys(t *testing.T) {
	accepted, _ := vectors(t)
	published := map[[2]string]bool{}
	for _, v := range accepted {
		d, wrong := v.document()
		require.Empty(t, wrong, v)
		require.NoError(t, d.Check(), v)
		assert.Equal(t, v.Text, d.PostingText())
		assert.Equal(t, v.Key, d.PostingKey(), v)
		published[[2]string{v.Text, string(v.Key)}] = true
	}
	for _, own := range golden {
		assert.Contains(t, published, own)
	}
}

// C98: no two companies share a key, because no component can hold the separator.
func TestThePublishedRefusalsAreRefusedForTheirFieldAlone(t *testing.T) {
	_, refused := vectors(t)
	ofAnotherType := 0
	for _, v := range refused {
		d, wrong := v.document()
		if wrong != "" { // the edge refuses it: a document cannot even hold it
			ofAnotherType++
			assert.Equal(t, v.Field, wrong, v)
			continue
		}
		assert.Equal(t, []string{v.Field}, fieldsOf(t, d.Check()), v)
	}
	assert.Less(t, ofAnotherType, len(refused)/2)
}

// fieldsOf are the fields that a refusal names.
func fieldsOf(t *testing.T, err error) (fields []string) {
	t.Helper()
	refusal, ok := fault.From(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.CodeInvalid, refusal.Code())
	for _, v := range refusal.Violations() {
		assert.NotEmpty(t, v.Detail)
		fields = append(fields, v.Field)
	}
	return fields
}
