package gateway

import (
	"crypto/tls"
	"crypto/x509"
)

// Trust lets a test's own provider stand for one with a certificate that everybody trusts.
func (h *HTTP) Trust(roots *x509.CertPool) {
	h.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}
