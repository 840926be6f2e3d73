// Package reference holds the published description of the HTTP interface, an OpenAPI 3.1 document, and makes of it what
// people read. The document is written by hand; the tests of httpapi hold every request and every answer against it.
package reference

import _ "embed"

//go:embed openapi.json
var document []byte

// Document is the description as it is served. Not to be changed.
func Document() []byte { return document }
