package identity

import (
	"context"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// MinSecret is the least length of a secret in bytes: that of the hash (RFC 7518 §3.2).
const MinSecret = 32

// Secret is the key of HS256 and of nothing else. It does not print itself.
type Secret struct{ bytes []byte }

// NewSecret is the text as a key, byte for byte. The error never shows it.
func NewSecret(text string) (Secret, error) {
	if len(text) < MinSecret {
		return Secret{}, fmt.Errorf("a secret has %d bytes at least, this one has %d", MinSecret, len(text))
	}
	return Secret{[]byte(text)}, nil
}

// IsZero tells that there is no secret.
func (s Secret) IsZero() bool { return len(s.bytes) == 0 }

// String tells nothing.
func (s Secret) String() string { return "(secret)" }

// GoString tells nothing: %#v would print the bytes.
func (s Secret) GoString() string { return s.String() }

// key implements Keys. There is one key, whatever the token calls it.
func (s Secret) key(_ context.Context, _, algorithm string) (any, error) {
	if algorithm != jwt.SigningMethodHS256.Alg() {
		return nil, badAlgorithm
	}
	return s.bytes, nil
}
