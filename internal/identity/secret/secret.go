// Package secret generates and parses credentials: an optional prefix, an id to look the credential up by, and a random secret of which only a
// hash is stored. It does no I/O.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"strings"
)

// Prefix is the prefix of one kind of credential, by which secret scanners recognize it. It may be empty.
type Prefix string

// form matches a credential without its prefix: the id and the secret.
var form = regexp.MustCompile(`^([a-z2-7]{16})_[a-z2-7]{52}$`)

// New returns a new credential with its id and its hash. The secret has 260 random bits, and cannot be recovered from the hash.
func (p Prefix) New() (text, id string, hash []byte) {
	id = strings.ToLower(rand.Text())[:16]
	text, hash = p.Renew(id)
	return text, id, hash
}

// Renew returns a credential with an id that is there already, and its hash.
func (p Prefix) Renew(id string) (text string, hash []byte) {
	text = string(p) + id + "_" + strings.ToLower(rand.Text()+rand.Text())
	return text, hashOf(text)
}

// Parse returns the id and the hash of a credential. ok is false if the text does not have the prefix and the form of one.
func (p Prefix) Parse(text string) (id string, hash []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, string(p))
	parts := form.FindStringSubmatch(rest)
	if !ok || parts == nil {
		return "", nil, false
	}
	return parts[1], hashOf(text), true
}

// hashOf needs neither salt nor stretching, because the secret is random.
func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
