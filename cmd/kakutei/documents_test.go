package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What documents name tests by: a function in backticks, a check of a suite in quotes.
var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z]\\w*)`")
	quotedCheck = regexp.MustCompile(`"([^"]+)"`)
)

// A document that says which test shows something is believed. So the test is there, also after it was renamed.
func TestEveryTestThatADocumentNamesIsThere(t *testing.T) {
	tests, _ := declared(t)
	named := 0
	for _, document := range checkedIn(t, "*.md") {
		for _, name := range namedTest.FindAllStringSubmatch(content(t, document), -1) {
			named++
			assert.True(t, tests[name[1]], "%s names %s, which is not there", document, name[1])
		}
	}
	assert.Greater(t, named, 200)
}

// A control that nothing shows is a promise. Where no test can show one, the page says so with a dash.
func TestEveryControlOfTheSecurityPageNamesWhatShowsIt(t *testing.T) {
	_, texts := declared(t)
	proofs, rows := false, 0
	for line := range strings.Lines(content(t, "docs/security.md")) {
		if !strings.HasPrefix(line, "|") {
			proofs = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		proof := cells[len(cells)-1]
		if proof == "shown by" {
			proofs = true
			continue
		}
		if !proofs || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		assert.Len(t, cells, 3, cells[0])
		quoted := quotedCheck.FindAllStringSubmatch(proof, -1)
		assert.True(t, len(quoted) > 0 || namedTest.MatchString(proof) || proof == "–", "nothing shows %q", cells[0])
		for _, check := range quoted {
			assert.True(t, texts[check[1]], "%q is no check", check[1])
		}
	}
	assert.Greater(t, rows, 35)
}

// In the last column of their tables these pages name what shows the row, be it a Go test or a check of a suite.
func TestEveryRowOfThePagesOfProofsNamesWhatShowsIt(t *testing.T) {
	_, texts := declared(t)
	for _, page := range []string{"docs/invariants.md", "docs/failure-modes.md"} {
		rows := 0
		for line := range strings.Lines(content(t, page)) {
			cells := strings.Split(strings.Trim(line, "| \n"), " | ")
			proof := cells[len(cells)-1]
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || proof == "shown by" {
				continue
			}
			rows++
			quoted := quotedCheck.FindAllStringSubmatch(proof, -1)
			assert.True(t, len(quoted) > 0 || namedTest.MatchString(proof) || strings.HasPrefix(proof, "the same"),
				"%s: nothing shows %q", page, cells[0])
			for _, check := range quoted {
				// What is planted for a comparison to find has its name without this.
				if name := strings.TrimPrefix(check[1], "found: "); name != "…" {
					assert.True(t, texts[name], "%s quotes %q, which is no check", page, name)
				}
			}
		}
		assert.Greater(t, rows, 50, page)
	}
}

// declared are the functions of all test files, and the texts that stand in quotes in any Go file or test of a page.
func declared(t *testing.T) (tests, texts map[string]bool) {
	t.Helper()
	tests, texts = map[string]bool{}, map[string]bool{}
	for _, file := range checkedIn(t, "*.go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && strings.HasSuffix(file, "_test.go") {
					tests[n.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					texts[text] = true
				}
			}
			return true
		})
	}
	for _, pattern := range []string{"*.test.js", "*.test.ts"} {
		for _, file := range checkedIn(t, pattern) {
			for _, text := range inQuotes.FindAllStringSubmatch(content(t, file), -1) {
				texts[text[2]] = true
			}
		}
	}
	return tests, texts
}

// inQuotes is a text in JavaScript.
var inQuotes = regexp.MustCompile("(['\"`])(.*?)['\"`], ")

// checkedIn are the files of the checkout that have such names, those that are about to be committed, too.
func checkedIn(t *testing.T, pattern string) (files []string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	require.NoError(t, err, "this test looks at a git checkout")
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(text)
}
