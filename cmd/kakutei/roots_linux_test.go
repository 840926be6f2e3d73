package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An empty image has no roots of trust; without any, no provider could be asked over https. The machine's are looked for
// once per process, so the test is one of its own. Only on Linux does the environment say where they are.
func TestAMachineWithoutRootsOfTrustHasThoseOfTheProgram(t *testing.T) {
	const inside = "KAKUTEI_TEST_WITHOUT_ROOTS"
	if os.Getenv(inside) != "" {
		roots, err := x509.SystemCertPool()
		require.NoError(t, err)
		assert.False(t, roots.Equal(x509.NewCertPool()), "nobody is trusted")
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), inside+"=yes", "SSL_CERT_FILE=/nowhere", "SSL_CERT_DIR=/nowhere")
	said, err := c.CombinedOutput()
	assert.NoError(t, err, string(said))
}
