package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"strings"
)

// Form is the form of one kind of credential's texts: a prefix, by which secret scanners recognize it and which may be empty, an id to look the credential
// up by, and a random secret of which only a hash is stored. The hash covers the prefix, so that no text is two kinds of credential.
type Form string

const (
	// KeyForm is the form of API keys.
	KeyForm Form = "jig_"
	// EmbedForm is the form of embed tokens.
	EmbedForm Form = "jig_embed_"
	// LoginForm is the form of the cookies of logins.
	LoginForm Form = ""
)

// unprefixed matches a credential without its prefix: the id and the secret.
var unprefixed = regexp.MustCompile(`^([a-z2-7]{16})_[a-z2-7]{52}$`)

// New returns a new credential with its id and its hash. The secret has 260 random bits, and cannot be recovered from the hash.
func (f Form) New() (text, id string, hash []byte) {
	id = strings.ToLower(rand.Text())[:16]
	text, hash = f.Renew(id)
	return text, id, hash
}

// Renew returns a credential with an id that is there already, and its hash.
func (f Form) Renew(id string) (text string, hash []byte) {
	text = string(f) + id + "_" + strings.ToLower(rand.Text()+rand.Text())
	return text, hashOf(text)
}

// Parse returns the id and the hash of a credential. ok is false if the text does not have the prefix and the form of one.
func (f Form) Parse(text string) (id string, hash []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, string(f))
	parts := unprefixed.FindStringSubmatch(rest)
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
