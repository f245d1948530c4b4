// Package livetext holds the texts that models are writing until they are stored.
//
// A [Board] keeps the latest part of the text of each session. A [Writer] adds text as it arrives. For followers on other processes, the
// board cuts new text into pieces, a [Seal] encrypts them, and the board of the other process puts them together again. Pieces may be lost
// or come late: each names its request and its offset, so a gap is noticed.
//
// The package does no I/O. It must not know how pieces travel or who follows a session.
package livetext

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/jig-run/jig"
)

// Session identifies the session that a text belongs to.
type Session struct{ Tenant, ID string }

// Buckets is the number of groups that sessions are divided into. Processes ask for the texts of a group, because they may ask only for a
// limited number of things.
const Buckets = 256

// Bucket returns the group of a session.
func (s Session) Bucket() int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Tenant + "\x00" + s.ID)) // never fails
	return int(h.Sum32() % Buckets)
}

// Piece is a part of the text of one request to a model.
type Piece struct {
	Session

	Pass int
	// Attempt identifies the request.
	Attempt string
	// Offset is where Text begins, in bytes from the beginning of the answer.
	Offset int
	Text   string
	// Over reports that the request has ended. Failed says why there is no answer; it is empty if there is one.
	Over   bool
	Failed string
}

// pieceBytes is the maximum size of the text of a piece, and failedBytes that of the reason for a failure.
const (
	pieceBytes  = 4 << 10
	failedBytes = 300
)

// encode appends a piece to b.
func (p Piece) encode(b []byte) []byte {
	for _, s := range []string{p.Tenant, p.ID, p.Attempt, p.Text, p.Failed} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(max(0, p.Pass)))
	b = binary.AppendUvarint(b, uint64(max(0, p.Offset)))
	if p.Over {
		return append(b, 1)
	}
	return append(b, 0)
}

// errPieces is the error for bytes that are no pieces.
var errPieces = jig.Errorf(jig.CodeInvalidInput, "these bytes are no pieces of a text")

// decode reads the pieces that encode has written one after the other.
func decode(b []byte) (pieces []Piece, err error) {
	for len(b) > 0 {
		var texts [5]string
		var numbers [2]int
		for i := range texts {
			var size int
			if size, b, err = number(b); err != nil {
				return nil, err
			}
			if size > len(b) {
				return nil, errPieces
			}
			texts[i], b = string(b[:size]), b[size:]
		}
		for i := range numbers {
			if numbers[i], b, err = number(b); err != nil {
				return nil, err
			}
		}
		if len(b) == 0 {
			return nil, errPieces
		}
		pieces = append(pieces, Piece{
			Session: Session{texts[0], texts[1]}, Attempt: texts[2], Text: texts[3], Failed: texts[4],
			Pass: numbers[0], Offset: numbers[1], Over: b[0] == 1,
		})
		b = b[1:]
	}
	return pieces, nil
}

// maxNumber bounds the numbers in a piece.
const maxNumber = 1 << 40

// number reads a number and returns what follows it.
func number(b []byte) (value int, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > maxNumber {
		return 0, nil, errPieces
	}
	return int(n), b[size:], nil
}

// groups encodes pieces, as many as fit into each group of at most size bytes. A piece that is larger by itself is left out.
func groups(pieces []Piece, size int) [][]byte {
	var all [][]byte
	var group []byte
	for _, p := range pieces {
		one := p.encode(nil)
		if len(one) > size {
			continue
		}
		if len(group)+len(one) > size {
			all = append(all, group)
			group = nil
		}
		group = slices.Concat(group, one)
	}
	if len(group) > 0 {
		all = append(all, group)
	}
	return all
}

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
