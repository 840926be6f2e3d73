package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
)

// verifier is a key of the set, with the algorithms that are its own.
type verifier struct {
	kid        string
	algorithms []string
	key        any // as package jwt wants it
}

// jwk is a key as it is written (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2). Members of a private key are not read.
type jwk struct {
	Kind      string   `json:"kty"`
	ID        string   `json:"kid"`
	Use       string   `json:"use"`
	KeyOps    []string `json:"key_ops"`
	Algorithm string   `json:"alg"`
	N         string   `json:"n"`
	E         string   `json:"e"`
	Curve     string   `json:"crv"`
	X         string   `json:"x"`
	Y         string   `json:"y"`
}

// Sizes of RSA's moduli in bits: what is shorter is broken one day (RFC 7518 §3.3), what is longer makes work.
const (
	minModulus = 2048
	maxModulus = 8192
)

// The algorithms of each kind of key (RFC 7518 §3.1). HS256 is of none: a key that everybody may read is no secret.
var (
	rsaAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	curves        = map[string]struct {
		curve     elliptic.Curve
		algorithm string
	}{
		"P-256": {elliptic.P256(), "ES256"},
		"P-384": {elliptic.P384(), "ES384"},
		"P-521": {elliptic.P521(), "ES512"},
	}
	edAlgorithms = []string{"EdDSA"}
)

// ofKeySets tells whether a key of a set can have the algorithm.
func ofKeySets(algorithm string) bool {
	for _, on := range curves {
		if on.algorithm == algorithm {
			return true
		}
	}
	return slices.Contains(rsaAlgorithms, algorithm) || slices.Contains(edAlgorithms, algorithm)
}

var (
	errNoSet   = errors.New("it is no JWK set (RFC 7517)")
	errNotUsed = errors.New("the key is of no use here")
)

// parseSet reads the set's keys for signatures. Others are left out: a set may hold keys of kinds that are not known
// here (RFC 7517 §5). Error: errNoSet.
func parseSet(text []byte) ([]verifier, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errNoSet
	}
	known := []verifier{}
	for _, written := range set.Keys {
		if v, err := parseKey(written); err == nil {
			known = append(known, v)
		}
	}
	return known, nil
}

func parseKey(written []byte) (verifier, error) {
	var k jwk
	if err := json.Unmarshal(written, &k); err != nil {
		return verifier{}, errNotUsed
	}
	if k.Use != "" && k.Use != "sig" || k.KeyOps != nil && !slices.Contains(k.KeyOps, "verify") {
		return verifier{}, errNotUsed
	}
	key, algorithms, err := k.public()
	if err != nil {
		return verifier{}, err
	}
	if k.Algorithm != "" {
		if !slices.Contains(algorithms, k.Algorithm) {
			return verifier{}, errNotUsed
		}
		algorithms = []string{k.Algorithm}
	}
	return verifier{kid: k.ID, algorithms: algorithms, key: key}, nil
}

// public is the key and what its kind can do.
func (k jwk) public() (key any, algorithms []string, err error) {
	switch k.Kind {
	case "RSA":
		key, err = k.rsa()
		return key, rsaAlgorithms, err
	case "EC":
		on, known := curves[k.Curve]
		if !known {
			return nil, nil, errNotUsed
		}
		key, err = k.ecdsa(on.curve)
		return key, []string{on.algorithm}, err
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Curve != "Ed25519" || len(x) != ed25519.PublicKeySize {
			return nil, nil, errNotUsed
		}
		return ed25519.PublicKey(x), edAlgorithms, nil
	default:
		return nil, nil, errNotUsed
	}
}

func (k jwk) rsa() (*rsa.PublicKey, error) {
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	if errN != nil || errE != nil || len(n) > maxModulus/8 || len(e) > 4 {
		return nil, errNotUsed
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if key.N.BitLen() < minModulus || key.N.Bit(0) == 0 || key.E < 3 || key.E%2 == 0 || key.E > 1<<31-1 {
		return nil, errNotUsed
	}
	return key, nil
}

func (k jwk) ecdsa(curve elliptic.Curve) (*ecdsa.PublicKey, error) {
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	size := (curve.Params().BitSize + 7) / 8
	if errX != nil || errY != nil || len(x) != size || len(y) != size { // RFC 7518 §6.2.1.2
		return nil, errNotUsed
	}
	// SEC 1 §2.3.3; it refuses a point that is not on the curve.
	return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y))
}
