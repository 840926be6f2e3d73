package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examplesIn are the blocks of one kind in docs/scenarios.md, each as a file.
func examplesIn(t *testing.T, kind string) (files []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/scenarios.md")
	require.NoError(t, err)
	for i, block := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		file := filepath.Join(t.TempDir(), strconv.Itoa(i)+"."+strings.ReplaceAll(kind, "gherkin", "feature"))
		require.NoError(t, os.WriteFile(file, []byte(block[1]), 0o600))
		files = append(files, file)
	}
	return files
}

func TestTheExamplesOfTheScenariosPageRunAsTheyStandThere(t *testing.T) {
	t.Parallel()
	files := examplesIn(t, "gherkin")
	require.Len(t, files, 2)
	got := alone(t, nil, append([]string{"scenario"}, files...)...)
	assert.Equal(t, 0, got.code, got.stdout)
	assert.Contains(t, got.stdout, "6 scenarios ran: 6 passed, 0 failed;")
}

func TestTheScenarioOfTheReadmeRunsAsItStandsThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```gherkin\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	file := filepath.Join(t.TempDir(), "readme.feature")
	require.NoError(t, os.WriteFile(file, append([]byte("Feature: as in the README\n"), block[1]...), 0o600))
	got := alone(t, nil, "scenario", file)
	assert.Equal(t, 0, got.code, got.stdout)
	assert.Contains(t, got.stdout, "1 scenarios ran: 1 passed, 0 failed; 6 steps.")
}

func TestTheDescriptionOfTheScenariosPageFitsTheService(t *testing.T) {
	t.Parallel()
	files := examplesIn(t, "yaml")
	require.Len(t, files, 1)
	base, _ := quietService(t)
	got := alone(t, nil, "scenario", "--target", base, "--profile", "draft-07", files[0])
	assert.Equal(t, 0, got.code, got.stdout)
	assert.Contains(t, got.stdout, "\n21 checks: 18 passed, 0 failed, 0 extensions missing, 3 not applicable.\n")
}

func TestTheScenariosPageListsTheChecksAsTheyAreReported(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/scenarios.md")
	require.NoError(t, err)
	base, _ := quietService(t)
	got := alone(t, nil, "scenario", "--target", base, "--profile", "draft-07", examplesIn(t, "yaml")[0])
	var rows int
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\S+) \\| (.+) \\| (.+) \\|$").
		FindAllStringSubmatch(string(text), -1) {
		rows++
		assert.Regexp(t, `(?m)^`+row[1]+` +`+row[2]+` +`+row[3]+` +(passed|not applicable) +`+regexp.QuoteMeta(row[4])+`$`,
			got.stdout)
	}
	assert.Equal(t, 21, rows)
}
