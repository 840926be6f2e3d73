package main

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the checkout as seen from this package.
const root = "../.."

// released is the release of this machine's platform, as .ci/dist in a checkout makes it, and its SHA256SUMS.
func released(t *testing.T, checkout string, env ...string) (program []byte, path, sums string) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "dist")
	c := exec.CommandContext(t.Context(), filepath.Join(checkout, ".ci", "dist"), into)
	c.Env = append(os.Environ(), "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "VERSION=v1.2.3", "COMMIT=abc1234")
	c.Env = append(c.Env, env...)
	said, err := c.CombinedOutput()
	require.NoError(t, err, string(said))
	name := "kakutei-" + runtime.GOOS + "-" + runtime.GOARCH
	path = filepath.Join(into, name)
	program, err = os.ReadFile(path)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(into, "SHA256SUMS"))
	require.NoError(t, err)
	return program, path, string(text)
}

// elsewhere is a copy of the checkout's files, without its git repository.
func elsewhere(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err, "this test copies a git checkout")
	copied := filepath.Join(t.TempDir(), "somewhere", "else")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		from, to := filepath.Join(root, name), filepath.Join(copied, name)
		info, err := os.Stat(from)
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		require.NoError(t, err)
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, content, info.Mode().Perm()))
	}
	return copied
}

func TestAReleaseIsTheSameBytesWhereverAndByWhomeverItIsBuilt(t *testing.T) {
	here, path, sums := released(t, root)
	there, _, sumsThere := released(t, elsewhere(t),
		"HOME="+t.TempDir(), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPATH="+goEnv(t, "GOPATH"),
		"USER=somebody", "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOFLAGS=-buildvcs=auto")
	assert.True(t, bytes.Equal(here, there), "%d and %d bytes", len(here), len(there))
	assert.Equal(t, sums, sumsThere)

	sum := sha256.Sum256(here)
	assert.Equal(t, hex.EncodeToString(sum[:])+"  "+filepath.Base(path)+"\n", sums)

	said, err := exec.CommandContext(t.Context(), path, "version").Output()
	require.NoError(t, err)
	assert.Equal(t, "kakutei v1.2.3 (commit abc1234)\n", string(said))

	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	assert.False(t, bytes.Contains(here, []byte(checkout)), "the builder's folder is in the program")
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// An image that is empty has neither a loader nor libraries.
func TestTheReleaseForLinuxNeedsNothingOfTheMachine(t *testing.T) {
	_, path, _ := released(t, root, "PLATFORMS=linux/"+runtime.GOARCH, "GOFLAGS=-buildmode=pie")
	program, err := elf.Open(path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, program.Close()) }()
	assert.False(t, slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }),
		"it asks for a loader")
	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)
}

// Whatever container and compose file say to the program it must understand: a name that is mistyped there is ignored.
func TestThePackagingNamesOnlySettingsThatThereAre(t *testing.T) {
	known := map[string]bool{}
	for _, c := range commands() {
		for _, v := range c.variables {
			known[v.name] = true
		}
	}
	for _, file := range []string{"Containerfile", "compose.yaml", "README.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "operations", file))
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`KAKUTEI_[A-Z_]*[A-Z]`).FindAllString(string(text), -1) {
			assert.True(t, known[name], "%s names %s", file, name)
		}
	}
}
