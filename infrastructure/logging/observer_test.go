package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/infrastructure/logging"
)

const rawKey = "8e03978e-40d5-43e8-bc93-6894a57f9324"

// keyHash is `printf %s 8e03978e-40d5-43e8-bc93-6894a57f9324 | sha256sum | head -c 12`.
const keyHash = "238c5b6ddb48"

var scope = idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: rawKey}

// logged is what the observer makes of an event: one line of JSON, or nothing.
func logged(t *testing.T, e port.Event) (text string, line map[string]any) {
	t.Helper()
	var out bytes.Buffer
	logging.NewObserver(slog.New(slog.NewJSONHandler(&out, nil))).Observe(t.Context(), e)
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	}
	return out.String(), line
}

func TestWhatMayNeedAnEyeIsLogged(t *testing.T) {
	for what, level := range map[port.Happening]string{
		port.Mismatch: "INFO", port.Takeover: "INFO", port.LeaseLost: "WARN", port.CommitUnknown: "WARN", port.AmountConflict: "WARN",
	} {
		_, line := logged(t, port.Event{What: what, Scope: scope, Executions: 2, Err: errors.New("why"), Detail: "how"})
		assert.Equal(t, level, line["level"], what)
		assert.Equal(t, string(what), line["event"])
		assert.Equal(t, "ConfirmPayment", line["operation"])
		assert.Equal(t, keyHash, line["keyHash"])
		assert.InDelta(t, 2, line["executions"], 0)
		assert.Equal(t, "why", line["error"])
		assert.Equal(t, "how", line["detail"])
	}
}

func TestTheDailyBusinessIsNotLogged(t *testing.T) {
	for _, what := range []port.Happening{
		port.Reserved, port.Replayed, port.InProgress, port.Called, port.Completed, port.Duplicate,
		port.Stopped, port.Abandoned, port.Unknown, "news",
	} {
		text, _ := logged(t, port.Event{What: what, Scope: scope})
		assert.Empty(t, text, what)
	}
}

func TestARawKeyIsNeverLogged(t *testing.T) {
	quoting := fmt.Errorf("driver: duplicate key (%s)", rawKey)
	text, line := logged(t, port.Event{What: port.CommitUnknown, Scope: scope, Err: quoting, Detail: rawKey + "!"})
	assert.NotContains(t, text, rawKey)
	assert.Equal(t, "driver: duplicate key ("+keyHash+")", line["error"])
	assert.Equal(t, keyHash+"!", line["detail"])
}
