package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts are the checkout's files whose names end so, below a folder.
func texts(t *testing.T, below, ending string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, below), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// A document that names a test which is gone claims what nobody shows any more.
func TestEveryTestThatADocumentNamesIsThere(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, layer := range []string{"cmd", "domain", "application", "infrastructure", "interfaces"} {
		for _, text := range texts(t, layer, "_test.go") {
			for _, name := range declared.FindAllStringSubmatch(text, -1) {
				tests[name[1]] = true
			}
		}
	}
	for path, text := range texts(t, "docs", ".md") {
		for _, name := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(text, -1) {
			assert.True(t, tests[name[1]], "%s names %s", path, name[1])
		}
	}
}
