package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
)

// Set when a release is linked: -ldflags "-X main.version=… -X main.commit=…".
var (
	version string
	commit  string
)

func versionCommand() command {
	return command{
		name: "version",
		does: "print version and commit",
		run: func(_ context.Context, p program) error {
			v, c := built()
			fmt.Fprintf(p.stdout, "kakutei %s (commit %s)\n", v, c)
			return nil
		},
	}
}

// built tells what this program was built from: what the linker was told, else what the Go tool wrote down.
func built() (v, c string) {
	v, c = version, commit
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v == "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	for _, s := range info.Settings {
		if c == "" && s.Key == "vcs.revision" {
			c = s.Value
		}
	}
	return cmp.Or(v, "devel"), cmp.Or(c, "unknown")
}
