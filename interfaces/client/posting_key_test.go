package client_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// C98, C100, C101: the posting keys are the published ones.
func TestThePublishedPostingKeys(t *testing.T) {
	var vectors []struct {
		Input json.RawMessage `json:"input"`
		Key   string          `json:"key"`
		Field string          `json:"field"`
	}
	readJSON(t, "../../docs/posting-keys.json", &vectors)
	accepted, refused, unsayable := 0, 0, 0
	for _, v := range vectors {
		var posting client.Posting
		err := json.Unmarshal(v.Input, &posting)
		if err != nil { // what a Posting cannot even hold: a number in a text, 1.5
			require.NotEmpty(t, v.Field, string(v.Input))
			unsayable++
			continue
		}
		key, err := posting.Key()
		if v.Field == "" {
			require.NoError(t, err, string(v.Input))
			assert.Equal(t, v.Key, key, string(v.Input))
			accepted++
			continue
		}
		require.Error(t, err, string(v.Input))
		assert.Contains(t, err.Error(), "of this "+v.Field)
		refused++
	}
	assert.Greater(t, accepted, 30)
	assert.Greater(t, refused, 30)
	assert.Less(t, unsayable, refused)
}
