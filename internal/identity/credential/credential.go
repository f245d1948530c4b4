// Package credential defines what the server issues to those who use it: API keys of programs, logins of people with a browser, and embed tokens for
// pages of other sites. It does no I/O.
//
// All kinds are a [Credential]: it belongs to a tenant, acts as a principal, has scopes, and knows who made it and with which other credential. It ends when
// it expires, is revoked, or ends with the credentials of its lineage; see [identity.Lineage]. The server gives out its text once and stores the SHA-256 of
// that; see [Form]. What only embed tokens have is at its end.
//
// The store finds credentials by id and hash, and the HTTP API turns them into the caller of a request.
package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

const (
	// LoginLifetime is how long a login lasts at most.
	LoginLifetime = 7 * 24 * time.Hour
	// LoginIdle is how long a login lasts without a request.
	LoginIdle = 12 * time.Hour
	// EmbedLifetime is how long an embed token lasts at most.
	EmbedLifetime = 15 * time.Minute
)

// Credential describes a credential. Its text is not part of it.
type Credential struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Kind   string `json:"kind" enum:"api_key,login,dev_login,embed_token"`
	// Name says what a key is for, or is the display name of the person who logged in. It may be empty.
	Name string `json:"name,omitempty"`
	// Principal is the principal as whom the credential acts. It is empty for a login at an identity provider, whose principal follows from the tenant's
	// document.
	Principal string `json:"principal"`
	// Scopes says what a key or an embed token allows. What a login allows follows from the person's permissions.
	Scopes []string `json:"scopes"`
	// Session is the session that an embed token shows, or Tool the tool that it calls. Origin is the only origin whose pages may use it.
	Session   string     `json:"session,omitempty"`
	Tool      string     `json:"tool,omitempty"`
	Origin    string     `json:"origin,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	// UsedAt is the time of the last use, to the minute.
	UsedAt *time.Time `json:"used_at,omitempty"`
	// CreatedBy and RevokedBy are the principals who did that over HTTP; empty if the operator did it with the command line.
	CreatedBy string `json:"created_by,omitempty"`
	RevokedBy string `json:"revoked_by,omitempty"`
	// Maker is who made a key for its principal; see [jig.Principal]. MadeWith is the credential that made this one; absent for the command line.
	Maker    string                 `json:"maker,omitempty"`
	MadeWith identity.CredentialRef `json:"made_with,omitzero"`
	// Persons are the people among the principals of a key; see [identity.Link].
	Persons []string `json:"-"`
	// Issuer and Subject are how the identity provider names the person who logged in, or who made an embed token, and Groups are the groups that it named
	// then. They are empty for others.
	Issuer  string   `json:"-"`
	Subject string   `json:"-"`
	Groups  []string `json:"-"`
	// Lineage holds an API key with those that made it, or that of the key that made an embed token. It is known only of a credential that is used.
	Lineage identity.Lineage `json:"-"`
}

// New is a credential to store.
type New struct {
	Credential

	// Hash is the SHA-256 of its text.
	Hash []byte
	// Attempt identifies the attempt to log in of which a login came; nil for other kinds.
	Attempt []byte
}

// Lifetime returns how long a credential of this kind lasts at most; nil for API keys, which may last forever.
func (c Credential) Lifetime() *time.Duration {
	switch {
	case c.Kind == identity.KindEmbed:
		return new(EmbedLifetime)
	case c.IsLogin():
		return new(LoginLifetime)
	}
	return nil
}

// IsLogin reports whether the credential is a login, of either kind.
func (c Credential) IsLogin() bool {
	return c.Kind == identity.KindLogin || c.Kind == identity.KindDevLogin
}

// Ref returns the credential's kind and id.
func (c Credential) Ref() identity.CredentialRef {
	return identity.CredentialRef{Kind: c.Kind, ID: c.ID}
}

// Link returns a key's own link of its lineage.
func (c Credential) Link() identity.Link {
	return identity.Link{ID: c.ID, Principal: c.Principal, Maker: c.Maker, CreatedBy: c.CreatedBy, Persons: c.Persons}
}

// Valid reports whether the credential was neither revoked nor has expired. It does not look at the lineage.
func (c Credential) Valid(now time.Time) bool {
	used := c.CreatedAt
	if c.UsedAt != nil {
		used = *c.UsedAt
	}
	return c.RevokedAt == nil && (c.ExpiresAt == nil || c.ExpiresAt.After(now)) && (!c.IsLogin() || used.After(now.Add(-LoginIdle)))
}

// Descendants returns the ids of those keys that were made with one of the roots, or with another of its descendants. Roots are among them.
func Descendants(keys []Credential, roots ...string) map[string]bool {
	found := make(map[string]bool, len(roots))
	for _, id := range roots {
		found[id] = true
	}
	for more := true; more; {
		more = false
		for _, k := range keys {
			if k.Kind == identity.KindAPIKey && !found[k.ID] && k.MadeWith.Kind == identity.KindAPIKey && found[k.MadeWith.ID] {
				found[k.ID], more = true, true
			}
		}
	}
	return found
}

// maxName bounds the name and the principal of a key, in bytes.
const maxName = 200

// CheckKey returns an error if an API key with these properties cannot be created.
func (c Credential) CheckKey(now time.Time) error {
	if err := jig.CheckTenant(c.Tenant); err != nil {
		return err
	}
	if c.Principal == "" || len(c.Principal) > maxName {
		return jig.Errorf(jig.CodeInvalidInput, "the principal of a key has 1 to %d bytes", maxName).WithField("principal").
			WithHint("name the person or program that uses the key")
	}
	if err := identity.CheckName(c.Principal); err != nil {
		return err
	}
	if len(c.Name) > maxName {
		return jig.Errorf(jig.CodeInvalidInput, "the name of a key has at most %d bytes", maxName).WithField("name")
	}
	if len(c.Scopes) == 0 {
		return jig.Errorf(jig.CodeMissingParam, "a key needs a scope").WithField("scopes").WithHint("use " + strings.Join(Scopes(), ", "))
	}
	for _, scope := range c.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return jig.Errorf(jig.CodeInvalidInput, "%q is not a scope", scope).WithField("scopes").WithHint("use " + strings.Join(Scopes(), ", "))
		}
	}
	if c.ExpiresAt != nil && !c.ExpiresAt.After(now) {
		return jig.Errorf(jig.CodeInvalidInput, "the key would have expired already").WithField("expires_at")
	}
	return nil
}

// CreatedKey is an API key with its text, which nobody can find again.
type CreatedKey struct {
	Credential
	Text string `json:"key" doc:"The key itself; it is not stored"`
}

// The scopes of a credential. One without any of them can only show its own identity.
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

// maxOrigin bounds an origin, in bytes.
const maxOrigin = 300

// CheckEmbed returns an error if an embed token with these properties cannot be created.
func (c Credential) CheckEmbed() error {
	switch {
	case c.Session == "" && c.Tool == "":
		return jig.Errorf(jig.CodeMissingParam, "an embed token is for a session or a tool").WithField("session").WithHint("give session or tool")
	case c.Session != "" && c.Tool != "":
		return jig.Errorf(jig.CodeInvalidInput, "give a session or a tool, not both").WithField("tool")
	case c.Tool != "" && jig.CheckToolName(c.Tool) != nil:
		return jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	case !isOrigin(c.Origin):
		return jig.Errorf(jig.CodeInvalidInput, "this is not the origin of a safe page").WithField("origin").
			WithHint("write it as browsers do, such as https://shop.example.com: in lower case, without a path and without the usual port; http only for this machine")
	}
	return nil
}

// host is the form of a host name as browsers write it in an origin.
var host = regexp.MustCompile(`^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$`)

// isOrigin reports whether a text is an origin as browsers send it, of a page that nobody can change on its way.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxOrigin || text != u.Scheme+"://"+u.Host || !host.MatchString(u.Host) {
		return false
	}
	if u.Scheme == "https" {
		return u.Port() != "443"
	}
	name := u.Hostname()
	return u.Scheme == "http" && u.Port() != "80" && (name == "localhost" || net.ParseIP(name).IsLoopback())
}

// EmbedScopes lists what an embed token allows within its session, or within its tool if it has one.
func EmbedScopes(tool string) []string {
	if tool != "" {
		return []string{ScopeRead, ScopeRun}
	}
	return []string{ScopeRead}
}

// prefix begins the ids that clients would choose for the sessions of an embed token's calls.
func (c Credential) prefix() string { return "embed-" + c.ID + "-" }

// NewCall returns the id of the session of a call that an embed token's page makes. Calls with the same idempotency key, if there is one, have the same id.
func (c Credential) NewCall(key string) string {
	name := rand.Text()
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		name = base32.StdEncoding.EncodeToString(sum[:])[:len(name)]
	}
	return c.prefix() + strings.ToLower(name)
}

// Shows reports whether an embed token may read a session: its own session, or the session of a call that was made with it. The id of the session has
// the prefix of the tenant.
func (c Credential) Shows(session string) bool {
	if c.Session != "" {
		return session == c.Session
	}
	return strings.HasPrefix(session, jig.SessionID(c.Tenant, c.prefix()))
}
