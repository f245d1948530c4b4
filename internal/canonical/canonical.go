// Package canonical writes JSON in the canonical form of RFC 8785 and hashes it, so that other programs can compute the same hashes. It
// must not know what is being hashed.
package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

// JSON returns the RFC 8785 form of a JSON value. Numbers become doubles. It returns an error if raw is not JSON, if an object has two
// members with the same name, if a number is too large for a double, or if a string is not valid Unicode.
func JSON(raw []byte) ([]byte, error) {
	form, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return form, nil
}

// Hash returns the SHA-256 of the RFC 8785 form of v's JSON, as 64 lower-case hex digits.
func Hash(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("canonical JSON: %w", err)
	}
	form, err := JSON(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:]), nil
}
