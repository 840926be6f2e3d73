package web_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/web"
)

// The scripts are committed: this is how they are known to be those of the sources. `make pages` builds them.
func TestTheScriptsAreBuiltFromTheirSources(t *testing.T) {
	source, err := os.ReadFile("assets.go")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(source), "//go:generate ")
	require.True(t, found)
	line, _, _ := strings.Cut(rest, "\n")
	built := t.TempDir()
	arguments := strings.Fields(strings.ReplaceAll(line, "--outdir=assets", "--outdir="+built))
	out, err := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...).CombinedOutput()
	require.NoError(t, err, string(out))
	scripts, err := filepath.Glob(filepath.Join(built, "*.js"))
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		fresh, err := os.ReadFile(script)
		require.NoError(t, err)
		asset, found := web.AssetNamed(filepath.Base(script))
		require.True(t, found, script)
		assert.True(t, bytes.Equal(fresh, asset.Body), "assets/%s is older than ts/: run make pages", filepath.Base(script))
	}
}

// A telephone with a bad connection shows the shop, too.
func TestTheShopIsLighterThanAHundredKilobytes(t *testing.T) {
	place := func(string) (string, string) { return "one line", "another line" }
	page := answered(t, web.Shop(place)["/"], "/?lang=ja").Body.Bytes()
	weight := gzipped(t, page)
	for _, name := range []string{"style.css", "shop.js", "icon.svg"} {
		asset, found := web.AssetNamed(name)
		require.True(t, found)
		assert.Contains(t, string(page), name)
		weight += gzipped(t, asset.Body)
	}
	t.Logf("%d bytes, gzipped", weight)
	assert.Less(t, weight, 100_000)
}

func gzipped(t *testing.T, content []byte) int {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.Len()
}
