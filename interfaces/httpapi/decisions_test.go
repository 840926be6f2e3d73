package httpapi

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/fault"
)

// Clients decide by docs/retry-decisions.json: its problems are the service's, all of them and in their order.
func TestTheRetryDecisionsAreAboutTheProblemsThatAreAnswered(t *testing.T) {
	var decisions struct {
		Problems []struct {
			Code     fault.Code   `json:"code"`
			Status   int          `json:"status"`
			Retry    fault.Advice `json:"retry"`
			Decision string       `json:"decision"`
		} `json:"problems"`
	}
	inDocs(t, "retry-decisions.json", &decisions)
	require.Len(t, decisions.Problems, len(problems))
	for i, p := range problems {
		row := decisions.Problems[i]
		assert.Equal(t, p.code, row.Code)
		assert.Equal(t, p.status, row.Status, p.code)
		assert.Equal(t, p.retry, row.Retry, p.code)
		assert.Equal(t, p.retry == fault.SameKey, row.Decision == "again", p.code)
	}
}

// keyVector is a row of docs/idempotency-keys.json: a text, and whether it is a key.
type keyVector struct {
	Text string `json:"text"`
	Key  bool   `json:"key"`
}

// Every published text is judged as a Structured Field String, which keeps blanks; what is a key may be sent bare, too.
func TestThePublishedKeysAreReadFromTheHeader(t *testing.T) {
	var vectors []keyVector
	inDocs(t, "idempotency-keys.json", &vectors)
	for _, v := range vectors {
		key, err := keyIn(map[string][]string{headerKey: {`"` + v.Text + `"`}})
		if !v.Key {
			require.ErrorIs(t, err, errKeyInvalid, "%q", v.Text)
			continue
		}
		require.NoError(t, err, "%q", v.Text)
		assert.Equal(t, v.Text, string(key))
		key, err = keyIn(map[string][]string{headerKey: {v.Text}})
		require.NoError(t, err, "%q", v.Text)
		assert.Equal(t, v.Text, string(key))
	}
}

// inDocs reads a file of docs.
func inDocs(t *testing.T, name string, into any) {
	t.Helper()
	file, err := os.ReadFile("../../docs/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, into))
}
