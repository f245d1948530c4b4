// Package secret makes and recognizes the random texts of credentials: an id by which a credential is found, and a secret of which only a hash
// is stored. It does no I/O.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"strings"
)

// Prefix begins the texts of one kind of credential, so that secret scanners recognize them. It may be empty.
type Prefix string

// form is the form of a text without its prefix: the id and the secret.
var form = regexp.MustCompile(`^([a-z2-7]{16})_[a-z2-7]{52}$`)

// New returns a new text, which nobody can find again, with its id and its hash. The secret has 260 random bits.
func (p Prefix) New() (text, id string, hash []byte) {
	id = strings.ToLower(rand.Text())[:16]
	text = string(p) + id + "_" + strings.ToLower(rand.Text()+rand.Text())
	return text, id, hashOf(text)
}

// Parse returns the id and the hash of a text. ok is false if no text with the prefix has this form.
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
