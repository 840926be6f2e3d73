package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHelpHasALineForEveryCommandThatBeginsWithItsName(t *testing.T) {
	lines := strings.Split(call(t, nil, "help").stdout, "\n")
	for _, name := range []string{
		"serve", "migrate", "sweep", "stuck", "release", "resolve", "gateway", "reconcile", "scenario", "posting-key", "token",
		"version", "help",
	} {
		assert.True(t, anyLine(lines, func(words []string) bool { return words[0] == name && len(words) > 3 }), name)
	}
}

func TestHelpHasALineForEveryVariableWithDefaultAndMeaning(t *testing.T) {
	lines := strings.Split(call(t, nil, "help").stdout, "\n")
	for name, initial := range contract {
		if initial == "" {
			initial = "(empty)"
		}
		assert.True(t, anyLine(lines, func(words []string) bool {
			return words[0] == name && words[1] == initial && len(words) > 4
		}), name)
	}
}

func TestHelpIsTheSameHoweverItIsAskedFor(t *testing.T) {
	want := call(t, nil, "help")
	require.Equal(t, 0, want.code)
	require.Empty(t, want.stderr)
	for _, args := range [][]string{{"--help"}, {"-h"}, {"serve", "--help"}, {"migrate", "-h"}} {
		assert.Equal(t, want, call(t, map[string]string{"KAKUTEI_LEASE": "bad"}, args...), args)
	}
}

func TestAWrongCallIsOneLineOnStderr(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":           {},
		"unknown command":      {"pay"},
		"unknown flag":         {"serve", "--colour", "red"},
		"argument too many":    {"migrate", "now"},
		"flag without a value": {"serve", "--listen"},
		"flag of no command":   {"--listen", "127.0.0.1:0"},
	} {
		got := call(t, nil, args...)
		assert.Equal(t, 1, got.code, name)
		assert.Empty(t, got.stdout, name)
		assert.Regexp(t, `\Akakutei: .+ \(see kakutei help\)\n\z`, got.stderr, name)
	}
}

func TestVersionTellsVersionAndCommit(t *testing.T) {
	got := call(t, nil, "version")
	assert.Equal(t, 0, got.code)
	assert.Regexp(t, `\Akakutei \S+ \(commit \S+\)\n\z`, got.stdout)
}

// anyLine tells whether the words of a line that has any meet the wish.
func anyLine(lines []string, wish func(words []string) bool) bool {
	for _, l := range lines {
		if words := strings.Fields(l); len(words) > 1 && wish(words) {
			return true
		}
	}
	return false
}
