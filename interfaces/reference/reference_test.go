package reference_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/reference"
	"kakutei/interfaces/web"
)

// textsOf are the texts for people in a part of the document.
func textsOf(part any) (texts []string) {
	switch part := part.(type) {
	case map[string]any:
		for name, member := range part {
			text, isText := member.(string)
			switch {
			case isText && (name == "description" || name == "summary"):
				texts = append(texts, text)
			case name != "value" && name != "example": // whatever stands there is data
				texts = append(texts, textsOf(member)...)
			}
		}
	case []any:
		for _, item := range part {
			texts = append(texts, textsOf(item)...)
		}
	}
	return texts
}

func TestEachTextOfTheDocumentIsThereInEachLanguage(t *testing.T) {
	var document any
	require.NoError(t, json.Unmarshal(reference.Document(), &document))
	texts := textsOf(document)
	require.Greater(t, len(texts), 100)
	for _, l := range web.Languages[1:] {
		translations := reference.Translations(l)
		for _, text := range texts {
			assert.NotEmpty(t, strings.TrimSpace(translations[text]), "%q is missing in %s", text, l)
		}
		for text := range translations {
			assert.Contains(t, texts, text, "the document does not say it, only %s does", l)
		}
	}
}

func TestTheViewHasEveryOperationOnceInEachLanguage(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	require.NoError(t, json.Unmarshal(reference.Document(), &document))
	var want []string
	for _, methods := range document.Paths {
		for o := range maps.Values(methods) {
			want = append(want, o.OperationID)
		}
	}
	titles := map[string]bool{}
	for _, l := range web.Languages {
		var shown []string
		for _, group := range (reference.Reader{}).In(l).Groups {
			for _, o := range group.Operations {
				shown = append(shown, o.ID)
				titles[o.Title] = true
				assert.NotEmpty(t, o.Answers, o.ID)
			}
		}
		assert.ElementsMatch(t, want, shown)
	}
	assert.Len(t, titles, 2*len(want))
}

func TestTheFormOfAValueNeedsNoLanguage(t *testing.T) {
	forms := map[string]reference.Form{}
	for _, schema := range (reference.Reader{}).In(web.English).Schemas {
		forms[schema.Name] = schema.Form
		for _, m := range schema.Members {
			forms[schema.Name+"."+m.Name] = m.Form
		}
	}
	for name, want := range map[string]reference.Form{
		"Amount":                       {Text: "integer 1…9007199254740991"},
		"Order.amount":                 {Schema: "Amount"},
		"NewOrder.lines":               {Schema: "Line", Suffix: "[]"},
		"Receipt.status":               {Text: `"PAID"`},
		"EntryLine.side":               {Text: `"debit" | "credit"`},
		"ConfirmPayment.paymentMethod": {Text: "string | null 1…256"},
		"Outcome.response":             {Text: "Order | Receipt"},
		"Posting.serviceDate":          {Text: "string (date)"},
		"Outcome.executions":           {Text: "integer ≥ 1"},
		"JournalError.message":         {Text: "string"},
	} {
		assert.Equal(t, want, forms[name], name)
	}
}

func TestWhatNeedsNothingHasItsExampleAlone(t *testing.T) {
	line, err := reference.Reader{Base: "http://localhost:8080"}.Commands("getHealth")
	require.NoError(t, err)
	assert.Equal(t, `curl -sS "http://localhost:8080/healthz"; echo`, line)
	for _, name := range []string{"none", "getReference"} {
		_, err = reference.Reader{}.Commands(name)
		assert.Error(t, err, name)
	}
}

func TestWithoutDemoTokensTheExamplesHaveAPlaceholder(t *testing.T) {
	for demo, want := range map[bool]string{true: "Bearer demo-operator'", false: "Bearer YOUR-TOKEN'"} {
		lines, err := reference.Reader{Base: "http://localhost", Demo: demo}.Commands("getAudit")
		require.NoError(t, err)
		assert.Contains(t, lines, want)
	}
}

func TestEveryProblemHasAnExample(t *testing.T) {
	assert.Contains(t, reference.Problem("payment_declined"), `"declineCode": "card_declined"`)
	assert.Empty(t, reference.Problem("none"))
	assert.True(t, slices.IsSorted([]int{
		strings.Index(reference.Problem("internal"), `"type"`), strings.Index(reference.Problem("internal"), `"code"`),
	}), "members are in the order of an answer")
}
