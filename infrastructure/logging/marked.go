package logging

import (
	"context"
	"log/slog"
)

// Mark is what every line under a request shall carry, so that its lines are found by one word.
type Mark struct {
	Name string
	Of   func(ctx context.Context) string // empty: none
}

// Marked is the handler, adding the marks of the context to each line that does not have them itself.
func Marked(h slog.Handler, marks ...Mark) slog.Handler { return marked{h, marks} }

type marked struct {
	slog.Handler
	marks []Mark
}

// Handle implements slog.Handler.
func (m marked) Handle(ctx context.Context, line slog.Record) error {
	for _, mark := range m.marks {
		if text := mark.Of(ctx); text != "" && !has(line, mark.Name) {
			line = line.Clone()
			line.AddAttrs(slog.String(mark.Name, text))
		}
	}
	return m.Handler.Handle(ctx, line)
}

func has(line slog.Record, name string) (found bool) {
	line.Attrs(func(a slog.Attr) bool {
		found = a.Key == name
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (m marked) WithAttrs(attributes []slog.Attr) slog.Handler {
	return marked{m.Handler.WithAttrs(attributes), m.marks}
}

// WithGroup implements slog.Handler.
func (m marked) WithGroup(name string) slog.Handler {
	return marked{m.Handler.WithGroup(name), m.marks}
}
