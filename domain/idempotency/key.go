package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MaxKeyLength is the longest key, in characters.
const MaxKeyLength = 255

// ErrInvalidKey says that a text cannot be a key.
var ErrInvalidKey = errors.New("idempotency: not a key")

// Key is the client's name for one intent: 1 to 255 visible ASCII characters (0x21–0x7E) except " \ , ; and neither
// "." nor "..", which no URL path carries. Case matters.
type Key string

// NewKey checks a key. The error wraps ErrInvalidKey and says which rule is broken, never the key.
func NewKey(text string) (Key, error) {
	switch {
	case text == "":
		return "", fmt.Errorf("%w: it is empty", ErrInvalidKey)
	case len(text) > MaxKeyLength:
		return "", fmt.Errorf("%w: it is longer than %d characters", ErrInvalidKey, MaxKeyLength)
	case text == "." || text == "..":
		return "", fmt.Errorf("%w: \".\" and \"..\" cannot stand in a URL path", ErrInvalidKey)
	}
	for _, c := range []byte(text) {
		if c < 0x21 || c > 0x7e || c == '"' || c == '\\' || c == ',' || c == ';' {
			return "", fmt.Errorf("%w: only visible ASCII characters except \" \\ , ; are allowed", ErrInvalidKey)
		}
	}
	return Key(text), nil
}

// Digest names the key where the key itself must not be, as in logs: the first 12 hexadecimal digits of its SHA-256.
func (k Key) Digest() string {
	sum := sha256.Sum256([]byte(k))
	return hex.EncodeToString(sum[:])[:12]
}

// HiddenIn is a text of foreign origin with the key replaced by its digest, should a driver have quoted it.
func (k Key) HiddenIn(text string) string {
	if k == "" {
		return text
	}
	return strings.ReplaceAll(text, string(k), k.Digest())
}

// Operation is the name of a use case, as published.
type Operation string

// Scope identifies a record. Its parts are stored in columns of their own: joined, ("a:b", "c") would be ("a", "b:c").
type Scope struct {
	Operation Operation
	Actor     string
	Key       Key
}
