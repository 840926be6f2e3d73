package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// Request is the meaning of a request: its business fields, named, in a fixed order, each part behind its length in
// bytes ("6:amount4:1000"), so that no two different requests are the same text. What is hashed is what is stored and
// what a recovery executes: no field can be in one and not in the others.
type Request string

// With adds a field. An optional field that is absent is left out, so that new fields do not change old fingerprints.
func (r Request) With(name, value string) Request {
	return r + part(name) + part(value)
}

func part(text string) Request {
	return Request(strconv.Itoa(len(text)) + ":" + text)
}

// Field is one named part of a request.
type Field struct{ Name, Value string }

// ErrUnreadableRequest says that a stored text is no Request.
var ErrUnreadableRequest = errors.New("idempotency: unreadable stored request")

// Fields reads the request back, in order; names may repeat. Error: ErrUnreadableRequest.
func (r Request) Fields() ([]Field, error) {
	var fields []Field
	for rest := string(r); rest != ""; {
		name, afterName, ok := cutPart(rest)
		if !ok {
			return nil, ErrUnreadableRequest
		}
		value, afterValue, ok := cutPart(afterName)
		if !ok {
			return nil, ErrUnreadableRequest
		}
		fields = append(fields, Field{name, value})
		rest = afterValue
	}
	return fields, nil
}

func cutPart(text string) (content, rest string, ok bool) {
	length, tail, found := strings.Cut(text, ":")
	n, err := strconv.Atoi(length)
	if !found || err != nil || n < 0 || n > len(tail) || strconv.Itoa(n) != length {
		return "", "", false
	}
	return tail[:n], tail[n:], true
}

// Fingerprint tells whether two requests under one key mean the same: a version, a colon and a digest in lower-case
// hex, as in "v1:9f86d0…".
type Fingerprint string

// fingerprintV1 is SHA-256 over operation, actor and request, length-prefixed like the request itself.
func fingerprintV1(s Scope, r Request) Fingerprint {
	text := Request("").With("operation", string(s.Operation)).With("actor", s.Actor) + r
	sum := sha256.Sum256([]byte(text))
	return Fingerprint("v1:" + hex.EncodeToString(sum[:]))
}

// FingerprintOf is the fingerprint in the version that new records get.
func FingerprintOf(s Scope, r Request) Fingerprint { return fingerprintV1(s, r) }

// of tells whether the fingerprint is of this request, compared in the fingerprint's own version: records outlive the
// release that wrote them. One of an unknown version is of no request.
func (f Fingerprint) of(s Scope, r Request) bool {
	switch version, _, _ := strings.Cut(string(f), ":"); version {
	case "v1":
		return f == fingerprintV1(s, r)
	default:
		return false
	}
}
