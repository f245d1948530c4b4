// Package login defines logins with a browser: what their cookie looks like, how long they last, and how they are recognized without storing
// the cookie. It does no I/O.
package login

import (
	"time"

	"github.com/jig-run/jig/internal/identity/secret"
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

// form is how cookies look.
const form = secret.Prefix("")

// New returns the text of a new cookie, with its id and its hash; see [secret.Prefix.New].
func New() (text, id string, hash []byte) { return form.New() }

// Parse returns the id and the hash of a cookie's text. ok is false if no cookie has this form.
func Parse(text string) (id string, hash []byte, ok bool) { return form.Parse(text) }
