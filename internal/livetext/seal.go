package livetext

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"

	"github.com/jig-run/jig"
)

// Seal encrypts pieces on their way between processes, because every role that may connect to a database can listen to all notifications,
// and send some. Who does not know the key can neither read nor forge a text.
type Seal struct{ aead cipher.AEAD }

// KeyBytes is the size of a key.
const KeyBytes = 32

// NewSeal returns a seal with a key of [KeyBytes].
func NewSeal(key []byte) (*Seal, error) {
	if len(key) != KeyBytes {
		return nil, jig.Errorf(jig.CodeInternal, "the key for texts has %d bytes instead of %d", len(key), KeyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return &Seal{aead}, nil
}

// Close encrypts pieces. Each payload is text of at most size bytes.
func (s *Seal) Close(pieces []Piece, size int) []string {
	var payloads []string
	for _, group := range groups(pieces, base64.RawStdEncoding.DecodedLen(size)-s.aead.Overhead()) {
		payloads = append(payloads, base64.RawStdEncoding.EncodeToString(s.aead.Seal(nil, nil, group, nil)))
	}
	return payloads
}

// Open decrypts a payload. The error is INVALID_INPUT if the payload was not made with the same key, or was changed.
func (s *Seal) Open(payload string) ([]Piece, error) {
	sealed, err := base64.RawStdEncoding.DecodeString(payload)
	if err != nil {
		return nil, errPieces
	}
	group, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, errPieces
	}
	return decode(group)
}
