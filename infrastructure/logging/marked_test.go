package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/logging"
)

type markKey struct{}

func TestALineUnderAMarkedContextCarriesTheMarkOnce(t *testing.T) {
	var out bytes.Buffer
	marked := logging.Mark{Name: "requestId", Of: func(ctx context.Context) string {
		text, _ := ctx.Value(markKey{}).(string)
		return text
	}}
	log := slog.New(logging.Marked(slog.NewJSONHandler(&out, nil), marked)).With("instance", "a")
	under := context.WithValue(t.Context(), markKey{}, "r1")
	line := func(write func()) map[string]any {
		out.Reset()
		write()
		var members map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &members))
		assert.Equal(t, "a", members["instance"])
		return members
	}
	assert.Equal(t, "r1", line(func() { log.InfoContext(under, "m") })["requestId"])
	assert.NotContains(t, line(func() { log.InfoContext(t.Context(), "m") }), "requestId")
	assert.Equal(t, "its own", line(func() { log.InfoContext(under, "m", "requestId", "its own") })["requestId"])
	log.InfoContext(under, "m", "requestId", "r1")
	assert.Equal(t, 1, bytes.Count(out.Bytes()[bytes.LastIndexByte(bytes.TrimSpace(out.Bytes()), '\n')+1:], []byte("requestId")))
}
