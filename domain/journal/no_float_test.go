package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A total that was a float once may be another one: 2^53+1 is none, and 5e+06 is no text of a posting key (C101).
func TestNoExpressionThatAnAmountPassesThroughIsAFloat(t *testing.T) {
	packages := listed(t, "kakutei/domain/money", "kakutei/domain/journal", "kakutei/application/bookkeeping")
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		files := token.NewFileSet()
		var sources []*ast.File
		for _, name := range p.GoFiles {
			source, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			sources = append(sources, source)
		}
		assert.Empty(t, floatsIn(t, packages, p.ImportPath, files, sources), p.ImportPath)
	}
}

func TestTheSearchForFloatsFindsThem(t *testing.T) {
	packages := listed(t, "math", "strconv", "encoding/json")
	for name, code := range map[string]string{
		"a conversion":        `func f(n int64) int64 { return int64(float64(n)) }`,
		"a result":            `import "math"; func f() int64 { return int64(math.Sqrt(2)) }`,
		"a parsed number":     `import "strconv"; var n, _ = strconv.ParseFloat("1", 64)`,
		"a constant":          `const million int64 = 1e6`,
		"a field":             `type total struct { units float32 }`,
		"a name for the type": `type units float64; func f(u units) int64 { return int64(u) }`,
		"a complex part":      `func f(c complex128) int64 { return int64(real(c)) }`,
	} {
		files := token.NewFileSet()
		source, err := parser.ParseFile(files, "p.go", "package p; "+code, parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.NotEmpty(t, floatsIn(t, packages, "p", files, []*ast.File{source}), name)
	}
}

// floatsIn are the places of expressions, literals and declared names that are floating-point.
func floatsIn(
	t *testing.T, packages []goPackage, path string, files *token.FileSet, sources []*ast.File,
) (found []string) {
	t.Helper()
	compiled := func(path string) (io.ReadCloser, error) {
		i := slices.IndexFunc(packages, func(p goPackage) bool { return p.ImportPath == path })
		if i < 0 {
			return nil, errors.New("not listed: " + path)
		}
		return os.Open(packages[i].Export)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	checker := types.Config{Importer: importer.ForCompiler(files, "gc", compiled)}
	_, err := checker.Check(path, files, sources, info)
	require.NoError(t, err)
	for expression, has := range info.Types {
		literal, written := expression.(*ast.BasicLit)
		if isFloat(has.Type) || written && literal.Kind == token.FLOAT {
			found = append(found, files.Position(expression.Pos()).String())
		}
	}
	for name, declared := range info.Defs {
		if declared != nil && isFloat(declared.Type()) {
			found = append(found, files.Position(name.Pos()).String())
		}
	}
	return found
}

func isFloat(t types.Type) bool {
	number, basic := t.Underlying().(*types.Basic)
	return basic && number.Info()&(types.IsFloat|types.IsComplex) != 0
}

// goPackage is what the go command knows of a package.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// listed are packages and whatever they import, compiled.
func listed(t *testing.T, paths ...string) (packages []goPackage) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{
		"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "--",
	}, paths...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages = append(packages, p)
	}
}
