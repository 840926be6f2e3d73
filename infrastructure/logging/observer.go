// Package logging writes into the operators' log what happens to records and may need somebody's eye. It names a record
// by the digest of its key: whoever reads a log must not be able to send a request again.
package logging

import (
	"context"
	"log/slog"

	"kakutei/application/port"
)

// Observer is a port.Observer that logs conflicts over keys, takeovers, lost leases, commits without an answer and amounts in conflict.
// Everything else is the daily business of metrics.
type Observer struct{ log *slog.Logger }

// NewObserver writes to this log.
func NewObserver(log *slog.Logger) *Observer { return &Observer{log: log} }

var _ port.Observer = (*Observer)(nil)

// worthALine says how loud a happening is, and in which words.
var worthALine = map[port.Happening]struct {
	level   slog.Level
	message string
}{
	port.Mismatch:       {slog.LevelInfo, "a key was used for another request"},
	port.InProgress:     {slog.LevelDebug, "a request with this key is running"},
	port.Takeover:       {slog.LevelInfo, "took over a request whose holder's lease was over"},
	port.LeaseLost:      {slog.LevelWarn, "a holder was fenced off: another one has its record"},
	port.CommitUnknown:  {slog.LevelWarn, "a commit gave no answer: settling it from the record"},
	port.AmountConflict: {slog.LevelWarn, "the provider took other money than was asked: refund it there"},
}

// Observe implements port.Observer.
func (o *Observer) Observe(ctx context.Context, e port.Event) {
	line, known := worthALine[e.What]
	if !known {
		return
	}
	level := line.level
	if e.Unattended && e.What == port.Takeover { // the recovery's rounds are logged where they are made
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("event", string(e.What)),
		slog.String("operation", string(e.Scope.Operation)),
		slog.String("keyHash", e.Scope.Key.Digest()),
	}
	if e.Executions > 0 {
		attrs = append(attrs, slog.Int("executions", e.Executions))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Scope.Key.HiddenIn(e.Err.Error())))
	}
	if e.Detail != "" {
		attrs = append(attrs, slog.String("detail", e.Scope.Key.HiddenIn(e.Detail)))
	}
	o.log.LogAttrs(ctx, level, line.message, attrs...)
}
