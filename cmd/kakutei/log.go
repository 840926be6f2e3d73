package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// logConfig says what the log on stderr looks like.
type logConfig struct {
	format string // text, json or empty: as the reader likes it
	level  string
}

func (c *logConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_LOG_FORMAT", set: into(&c.format, oneOf("", "text", "json")),
			means: "text or json; empty is text on a terminal, else json",
		},
		{
			name: "KAKUTEI_LOG_LEVEL", initial: "info", set: into(&c.level, oneOf("debug", "info", "warn", "error")),
			means: "the least that is logged: debug, info, warn or error",
		},
	}
}

// logger writes to out as configured.
func (c *logConfig) logger(out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: levels[c.level]}
	if c.format == "text" || c.format == "" && isTerminal(out) {
		return slog.New(slog.NewTextHandler(out, options))
	}
	return slog.New(slog.NewJSONHandler(out, options))
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
