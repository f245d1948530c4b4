// Package apikey defines the credentials with which programs use the server: what they look like, what they allow, and how they are
// recognized without being stored. It does no I/O.
package apikey

import (
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/secret"
)

// The scopes of a key. A key without any of them can only show its own identity.
const (
	// ScopeRead allows reading everything that the tenant has.
	ScopeRead = "read"
	// ScopeRun allows starting, canceling and writing to sessions, and calling tools.
	ScopeRun = "run"
	// ScopeDecide allows deciding about calls that wait for approval. A key has it only if somebody asked for it.
	ScopeDecide = "decide"
	// ScopeAuthor allows registering, changing and removing documents and bundles, as far as approvals allow it. A key has it only if somebody
	// asked for it.
	ScopeAuthor = "author"
	// ScopeOperate allows operating the schedules of others. A key has it only if somebody asked for it.
	ScopeOperate = "operate"
	// ScopeManage allows creating and revoking API keys over HTTP, and reading credential events.
	ScopeManage = "manage"
)

// Scopes lists all scopes.
func Scopes() []string {
	return []string{ScopeRead, ScopeRun, ScopeDecide, ScopeAuthor, ScopeOperate, ScopeManage}
}

// DefaultScopes lists the scopes of a key that was created without naming any.
func DefaultScopes() []string { return []string{ScopeRead, ScopeRun} }

// Key describes an API key. The key's text is not part of it.
type Key struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Name says what the key is for. It may be empty.
	Name string `json:"name,omitempty"`
	// Principal is the principal as whom the key acts.
	Principal string     `json:"principal"`
	Scopes    []string   `json:"scopes"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	// UsedAt is the time of the last use, to the minute.
	UsedAt *time.Time `json:"used_at,omitempty"`
	// CreatedBy and RevokedBy are the principals who did that over HTTP; empty if the operator did it with the command line.
	CreatedBy string `json:"created_by,omitempty"`
	RevokedBy string `json:"revoked_by,omitempty"`
	// Maker is who made the key for its principal; see [jig.Principal]. MadeWith is the credential that made it; absent for the command line.
	Maker    string                 `json:"maker,omitempty"`
	MadeWith identity.CredentialRef `json:"made_with,omitzero"`
	// Persons are the people among the principals of the key; see [identity.Link].
	Persons []string `json:"-"`
	// Lineage is the key with those that made it. It is known of a key that is used.
	Lineage identity.Lineage `json:"-"`
}

// Link returns the key's own link of its lineage.
func (k Key) Link() identity.Link {
	return identity.Link{Principal: k.Principal, Maker: k.Maker, CreatedBy: k.CreatedBy, Persons: k.Persons}
}

// Allows reports whether the key has a scope.
func (k Key) Allows(scope string) bool { return slices.Contains(k.Scopes, scope) }

// Valid reports whether the key was neither revoked nor has expired.
func (k Key) Valid(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(now))
}

// Descendants returns the ids of those keys that were made with one of the roots, or with another of its descendants. Roots are among them.
func Descendants(keys []Key, roots ...string) map[string]bool {
	found := make(map[string]bool, len(roots))
	for _, id := range roots {
		found[id] = true
	}
	for more := true; more; {
		more = false
		for _, k := range keys {
			if !found[k.ID] && k.MadeWith.Kind == madeWithKey && found[k.MadeWith.ID] {
				found[k.ID], more = true, true
			}
		}
	}
	return found
}

// madeWithKey is the kind of [Key].MadeWith for a key.
const madeWithKey = "api_key"

// maxName bounds the name and the principal of a key, in bytes.
const maxName = 200

// Check returns an error if a key with these properties cannot be created.
func (k Key) Check(now time.Time) error {
	if err := jig.CheckTenant(k.Tenant); err != nil {
		return err
	}
	if k.Principal == "" || len(k.Principal) > maxName {
		return jig.Errorf(jig.CodeInvalidInput, "the principal of a key has 1 to %d bytes", maxName).WithField("principal").
			WithHint("name the person or program that uses the key")
	}
	if err := identity.CheckName(k.Principal); err != nil {
		return err
	}
	if len(k.Name) > maxName {
		return jig.Errorf(jig.CodeInvalidInput, "the name of a key has at most %d bytes", maxName).WithField("name")
	}
	if len(k.Scopes) == 0 {
		return jig.Errorf(jig.CodeMissingParam, "a key needs a scope").WithField("scopes").WithHint("use " + strings.Join(Scopes(), ", "))
	}
	for _, scope := range k.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return jig.Errorf(jig.CodeInvalidInput, "%q is not a scope", scope).WithField("scopes").WithHint("use " + strings.Join(Scopes(), ", "))
		}
	}
	if k.ExpiresAt != nil && !k.ExpiresAt.After(now) {
		return jig.Errorf(jig.CodeInvalidInput, "the key would have expired already").WithField("expires_at")
	}
	return nil
}

// form is the form of keys.
const form = secret.Prefix("jig_")

// New returns the text of a new key, with its id and its hash; see [secret.Prefix.New].
func New() (text, id string, hash []byte) { return form.New() }

// CreatedKey is a key with its text, which nobody can find again.
type CreatedKey struct {
	Key
	Text string `json:"key" doc:"The key itself; it is not stored"`
}

// Renew returns a new text for the key with an id, and its hash.
func Renew(id string) (text string, hash []byte) { return form.Renew(id) }

// Parse returns the id and the hash of a key's text. ok is false if no key has this form.
func Parse(text string) (id string, hash []byte, ok bool) { return form.Parse(text) }
