package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module is the path of go.mod, root its directory as seen from this test.
const (
	module = "kakutei"
	root   = "../.."
)

// layer says what the packages below one top directory may import. Whatever they import from outside the module is judged
// by direct imports only: google/uuid, which the domain may use, itself imports encoding/json.
type layer struct {
	imports     []string // layers that its packages may import beside their own
	testImports []string // further ones that only its test files may import
	outside     func(path string) bool
}

var layers = map[string]layer{
	"domain": {
		outside: func(path string) bool {
			return path == "github.com/google/uuid" || standard(path) && !below(path, "encoding/json") &&
				!below(path, "net/http") && !below(path, "database/sql") && !below(path, "log")
		},
	},
	"application": {
		imports: []string{"domain"},
		// A use case is tested on a real store, the one in memory, instead of on mocks.
		testImports: []string{"infrastructure"},
		outside: func(path string) bool {
			return !below(path, "gorm.io") && !below(path, "github.com/labstack/echo") &&
				!below(path, "github.com/prometheus") && !below(path, "go.opentelemetry.io")
		},
	},
	"infrastructure": {
		imports:     []string{"domain", "application", "migrations"},
		testImports: []string{"interfaces"},
		outside:     anything,
	},
	"interfaces": {
		imports:     []string{"domain", "application"},
		testImports: []string{"infrastructure"},
		outside:     anything,
	},
	"migrations": {outside: standard},
	"cmd": {
		imports: []string{"domain", "application", "infrastructure", "interfaces", "migrations"},
		outside: anything,
	},
}

// refusal says why pkg must not import path, a test file when test is set; it is empty when pkg may.
func refusal(pkg, path string, test bool) string {
	from, covered := layerOf(pkg)
	rule, known := layers[from]
	if !covered || !known {
		return "no rule covers package " + pkg
	}
	to, ours := layerOf(path)
	switch {
	case !ours && (test || rule.outside(path)):
	case ours && (to == from || slices.Contains(rule.imports, to)):
	case ours && test && slices.Contains(rule.testImports, to):
	default:
		return fmt.Sprintf("%s must not import %s", pkg, path)
	}
	return ""
}

// layerOf is the top directory of a package of this module.
func layerOf(path string) (top string, ours bool) {
	if !below(path, module) {
		return "", false
	}
	top, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), "/")
	return top, true
}

func below(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

// standard relies on a convention of the go command: only the standard library has no dot in the first element.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && !below(path, module)
}

func anything(string) bool { return true }

func TestEveryPackageKeepsToItsLayer(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	require.NoError(t, err)

	packages := 0
	for in := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		assert.Empty(t, refusal(p.ImportPath, p.ImportPath, false))
		for _, path := range p.Imports {
			assert.Empty(t, refusal(p.ImportPath, path, false))
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			assert.Empty(t, refusal(p.ImportPath, path, true), "in a test file")
		}
	}
	assert.Greater(t, packages, 1, "go list has seen the module, not this package alone")
}

func TestTheImportRule(t *testing.T) {
	const prod, test = false, true
	for _, c := range []struct {
		pkg, path string
		test      bool
		want      bool
	}{
		{"domain/order", "kakutei/domain/money", prod, true},
		{"domain/order", "github.com/google/uuid", prod, true},
		{"domain/order", "time", prod, true},
		{"domain/order", "encoding/json", prod, false},
		{"domain/order", "net/http", prod, false},
		{"domain/order", "database/sql", prod, false},
		{"domain/order", "log", prod, false},
		{"domain/order", "log/slog", prod, false},
		{"domain/order", "gorm.io/gorm", prod, false},
		{"domain/order", "github.com/google/uuidx", prod, false},
		{"domain/order", "kakutei/application/port", prod, false},
		{"domain/order", "kakutei/migrations", prod, false},
		{"domain/order", "kakutei/infrastructure/memory", test, false},
		{"domain/order", "kakutei/application/port", test, false},
		{"domain/order", "github.com/stretchr/testify/require", prod, false},
		{"domain/order", "github.com/stretchr/testify/require", test, true},

		{"application/checkout", "kakutei/domain/order", prod, true},
		{"application/checkout", "kakutei/application/port", prod, true},
		{"application/checkout", "encoding/json", prod, true},
		{"application/checkout", "github.com/labstack/echo/v4", prod, false},
		{"application/checkout", "gorm.io/gorm", prod, false},
		{"application/checkout", "gorm.io/driver/postgres", prod, false},
		{"application/idempotent", "github.com/prometheus/client_golang/prometheus", prod, false},
		{"application/idempotent", "go.opentelemetry.io/otel/trace", prod, false},
		{"application/checkout", "kakutei/infrastructure/memory", prod, false},
		{"application/checkout", "kakutei/interfaces/httpapi", prod, false},
		{"application/checkout", "kakutei/cmd/kakutei", prod, false},
		{"application/checkout", "kakutei/infrastructure/memory", test, true},
		{"application/checkout", "kakutei/interfaces/httpapi", test, false},

		{"infrastructure/gormstore", "kakutei/application/port", prod, true},
		{"infrastructure/gormstore", "kakutei/infrastructure/audit", prod, true},
		{"infrastructure/gormstore", "kakutei/migrations", prod, true},
		{"infrastructure/gormstore", "gorm.io/gorm", prod, true},
		{"infrastructure/gormstore", "kakutei/interfaces/httpapi", prod, false},
		{"infrastructure/gormstore", "kakutei/interfaces/httpapi", test, true},
		{"infrastructure/gormstore", "kakutei/cmd/kakutei", test, false},

		{"interfaces/httpapi", "kakutei/application/checkout", prod, true},
		{"interfaces/httpapi", "github.com/labstack/echo/v4", prod, true},
		{"interfaces/httpapi", "kakutei/infrastructure/gormstore", prod, false},
		{"interfaces/httpapi", "kakutei/migrations", prod, false},
		{"interfaces/httpapi", "kakutei/infrastructure/memory", test, true},

		{"domain/order", "go.opentelemetry.io/otel", prod, false},
		{"infrastructure/tracing", "go.opentelemetry.io/otel/trace", prod, true},

		{"migrations", "embed", prod, true},
		{"migrations", "kakutei/domain/order", prod, false},
		{"cmd/kakutei", "kakutei/infrastructure/gormstore", prod, true},
		{"cmd/kakutei", "kakutei/interfaces/httpapi", prod, true},
		{"cmd/kakutei", "kakutei/migrations", prod, true},

		{"pkg/util", "fmt", prod, false},
		{"cmd/kakutei", "kakutei/pkg/util", prod, false},
		{"domainx/order", "fmt", prod, false},
	} {
		got := refusal(module+"/"+c.pkg, c.path, c.test)
		assert.Equal(t, c.want, got == "", "%s importing %s (test file: %t): %q", c.pkg, c.path, c.test, got)
	}
	assert.NotEmpty(t, refusal(module, "fmt", prod), "a package in the top directory")
}

// The client is for other programs, which should not take the service along: the rule of its layer would let it import
// use cases.
func TestTheClientStandsAlone(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, "./interfaces/client")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	imports := strings.Fields(string(out))
	assert.Contains(t, imports, "net/http")
	for _, path := range imports {
		assert.True(t, standard(path) || path == "github.com/google/uuid", "the client imports %s", path)
	}
}

func TestTheTopDirectoryHoldsWhatTheDesignNames(t *testing.T) {
	// What is new and not ignored counts too: it is about to be committed.
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	require.NoError(t, err, "this test looks at a git checkout")

	var got []string
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		top, _, inDirectory := strings.Cut(file, "/")
		if inDirectory {
			top += "/"
		}
		if !strings.HasPrefix(top, ".") && !slices.Contains(got, top) {
			got = append(got, top)
		}
	}
	assert.ElementsMatch(t, []string{
		"go.mod", "go.sum", "README.md", "LICENSE", "Makefile",
		"cmd/", "domain/", "application/", "infrastructure/", "interfaces/", "migrations/", "docs/",
	}, got)
}
