package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/jig-run/jig"
)

// cursors seals the positions at which pages of lists end. A sealed cursor tells its client nothing, for example of ids and counters that all
// tenants share, and continues only the list that it came from. All processes of an installation have the same key.
type cursors struct{ cipher.AEAD }

// cursorKey is the size of the key, in bytes.
const cursorKey = 32

// cursorBlock is the size to a multiple of which positions are padded, because their length would tell how large a counter is.
const cursorBlock = 64

// pageOf is a list with its filter, whose pages a cursor separates. Cursors of one list are not valid for another.
type pageOf struct {
	Tenant string `json:"tenant"`
	List   string `json:"list"`
	Filter any    `json:"filter,omitempty"`
}

// newCursors returns a seal with a key that is derived from a secret of the installation.
func newCursors(secret []byte) (cursors, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "jig cursors", cursorKey)
	if err != nil {
		return cursors{}, jig.Errorf(jig.CodeInternal, "the key of cursors: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return cursors{}, jig.Errorf(jig.CodeInternal, "the cipher of cursors: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return cursors{}, jig.Errorf(jig.CodeInternal, "the cipher of cursors: %w", err)
	}
	return cursors{aead}, nil
}

// seal returns the cursor of a position in a list.
func (c cursors) seal(of pageOf, position any) (string, error) {
	list, err := json.Marshal(of)
	if err != nil {
		return "", jig.Errorf(jig.CodeInternal, "encoding the list of a cursor: %w", err)
	}
	text, err := json.Marshal(position)
	if err != nil {
		return "", jig.Errorf(jig.CodeInternal, "encoding a cursor: %w", err)
	}
	text = append(text, bytes.Repeat([]byte(" "), cursorBlock-len(text)%cursorBlock)...)
	return base64.RawURLEncoding.EncodeToString(c.Seal(nil, nil, text, list)), nil
}

// open reads the position of a cursor that seal returned for the same list. An empty cursor leaves position unchanged. The error is INVALID_INPUT.
func (c cursors) open(of pageOf, cursor string, position any) error {
	if cursor == "" {
		return nil
	}
	list, err := json.Marshal(of)
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "encoding the list of a cursor: %w", err)
	}
	if sealed, err := base64.RawURLEncoding.DecodeString(cursor); err == nil {
		if text, err := c.Open(nil, nil, sealed, list); err == nil && json.Unmarshal(text, position) == nil {
			return nil
		}
	}
	return jig.Errorf(jig.CodeInvalidInput, "the cursor is not valid for this list").WithField("cursor").
		WithHint("repeat the filter of the first page, or leave out the cursor to begin again")
}
