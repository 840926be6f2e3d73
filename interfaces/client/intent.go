package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Intent is one thing that the caller wants to happen once: the idempotency key, fixed before the first try and sent
// with each. Keep it where the intent is kept (beside the order, say), so that a retry after a crash has it, too. Only
// the advice NewKey allows another one.
//
// The caller's own name for the intent will do: 1 to 255 visible ASCII characters except " \ , ; and neither "." nor
// "..", and never one that another intent of the same caller could have.
type Intent string

// NewIntent names a new intent with a random UUID.
func NewIntent() Intent { return Intent(uuid.NewString()) }

const maxKeyLength = 255

// ErrNotAnIntent says that a text cannot be an idempotency key. Nothing was sent.
var ErrNotAnIntent = errors.New("client: not an idempotency key")

// Check tells whether the intent can be a key. The error wraps ErrNotAnIntent.
func (i Intent) Check() error {
	switch {
	case i == "":
		return fmt.Errorf("%w: it is empty; make one with NewIntent, before the first try", ErrNotAnIntent)
	case len(i) > maxKeyLength:
		return fmt.Errorf("%w: it is longer than %d characters", ErrNotAnIntent, maxKeyLength)
	case i == "." || i == "..":
		return fmt.Errorf("%w: no URL carries \".\" or \"..\"", ErrNotAnIntent)
	case strings.ContainsFunc(string(i), func(r rune) bool {
		return r < 0x21 || r > 0x7e || strings.ContainsRune(`"\,;`, r)
	}):
		return fmt.Errorf("%w: only visible ASCII characters except \" \\ , ; are allowed", ErrNotAnIntent)
	default:
		return nil
	}
}
