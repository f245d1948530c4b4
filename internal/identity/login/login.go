// Package login defines logins with a browser: what their cookie looks like, how long they last, and how they are recognized without storing
// the cookie. It does no I/O.
package login

import (
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"strings"
	"time"
)

const (
	// Lifetime is how long a login lasts at most.
	Lifetime = 7 * 24 * time.Hour
	// Idle is how long a login lasts without a request.
	Idle = 12 * time.Hour
)

// Login is a person's login with one browser. The cookie is not part of it.
type Login struct {
	Tenant string
	ID     string
	// Issuer and Subject are how the identity provider names the person. A development login has no issuer, and its subject is the principal.
	Issuer, Subject string
	// Name is for people to read, and Groups are the groups that the identity provider named when the login began.
	Name      string
	Groups    []string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// form is the form of a cookie: the login's id and its secret.
var form = regexp.MustCompile(`^([a-z2-7]{16})_([a-z2-7]{52})$`)

// New returns the cookie of a new login, and the login's id and hash. The secret has 260 random bits.
func New() (cookie, id string, hash []byte) {
	id = strings.ToLower(rand.Text())[:16]
	cookie = id + "_" + strings.ToLower(rand.Text()+rand.Text())
	return cookie, id, hashOf(cookie)
}

// Parse returns the id and the hash of a cookie. ok is false if no cookie has this form.
func Parse(cookie string) (id string, hash []byte, ok bool) {
	parts := form.FindStringSubmatch(cookie)
	if parts == nil {
		return "", nil, false
	}
	return parts[1], hashOf(cookie), true
}

// hashOf needs neither salt nor stretching, because a cookie is random.
func hashOf(cookie string) []byte {
	sum := sha256.Sum256([]byte(cookie))
	return sum[:]
}
