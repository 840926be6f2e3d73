package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
)

// The scripts in assets/ are built from ts/ and committed, so that a build of the service needs nothing but Go.
//
//go:generate go tool -modfile=../../.tools/go.mod esbuild ts/shop.ts --bundle --minify --format=esm --target=es2022 --charset=utf8 --outdir=assets --log-level=warning

//go:embed assets
var assetFiles embed.FS

// AssetsPath is where the files of assets/ are served.
const AssetsPath = "/assets/"

// Asset is a file of assets/.
type Asset struct {
	Body      []byte
	MediaType string
	// Version follows from the body: an address that carries it never means another body.
	Version string
}

// mediaTypes does not ask the machine's own list, which may say anything.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

var assets = func() map[string]Asset {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // it is embedded
	}
	read := make(map[string]Asset, len(entries))
	for _, entry := range entries {
		body, err := assetFiles.ReadFile("assets/" + entry.Name())
		mediaType, known := mediaTypes[path.Ext(entry.Name())]
		if err != nil || !known {
			panic(fmt.Sprintf("web: asset %s: %v", entry.Name(), err))
		}
		sum := sha256.Sum256(body)
		read[entry.Name()] = Asset{Body: body, MediaType: mediaType, Version: hex.EncodeToString(sum[:8])}
	}
	return read
}()

// AssetNamed is the file of that name, if there is one.
func AssetNamed(name string) (asset Asset, found bool) {
	asset, found = assets[name]
	return asset, found
}

// AssetPath is the address of a file, with its version. Error: there is none.
func AssetPath(name string) (string, error) {
	asset, found := assets[name]
	if !found {
		return "", fmt.Errorf("web: there is no asset %q", name)
	}
	return AssetsPath + name + "?v=" + asset.Version, nil
}
