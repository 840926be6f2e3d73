package scenario

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each code that the README's answers tables name is demanded by a built-in scenario.
func TestEveryCodeOfTheAnswersTablesHasAScenario(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, tables, found := strings.Cut(string(readme), "## What you get back")
	require.True(t, found)
	tables, _, _ = strings.Cut(tables, "\n## ")
	var demanded strings.Builder
	for _, scenarios := range builtInScenarios(t, English) {
		for _, s := range scenarios {
			demanded.WriteString(strings.Join(s.steps, "\n"))
		}
	}
	codes := regexp.MustCompile("\\| (?:\\d{3} `[a-z_]+`|400 `)[^|]*").FindAllString(tables, -1)
	assert.Greater(t, len(codes), 20, "rows")
	for _, row := range codes {
		for _, code := range regexp.MustCompile("`([a-z]+_[a-z_]+|unavailable|unauthenticated|forbidden|internal)`").
			FindAllStringSubmatch(row, -1) {
			assert.Contains(t, demanded.String(), `the problem is "`+code[1]+`"`)
		}
	}
}
