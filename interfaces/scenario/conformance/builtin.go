package conformance

import (
	"bytes"
	_ "embed"
)

//go:embed kakutei.yaml
var kakutei []byte

// Kakutei describes this service's own endpoint, in demo mode.
func Kakutei() (Endpoint, error) { return Read(bytes.NewReader(kakutei)) }
