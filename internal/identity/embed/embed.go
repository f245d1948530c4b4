// Package embed defines embed tokens, with which a page of another site shows one session or calls one tool for a few minutes: what they look
// like, what they allow, and how they are recognized without being stored. It does no I/O.
package embed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/secret"
)

// Lifetime is how long a token lasts at most.
const Lifetime = 15 * time.Minute

// Token describes an embed token. The token's text is not part of it.
type Token struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Session is the session that the token shows, and Tool is the tool that it calls. One of the two is empty.
	Session string `json:"session,omitempty"`
	Tool    string `json:"tool,omitempty"`
	// Origin is the only origin whose pages may use the token.
	Origin string `json:"origin"`
	// Principal is the principal that made the token. Calls that are made with the token act for it.
	Principal string     `json:"principal"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	RevokedBy string     `json:"revoked_by,omitempty"`
	// Maker is the credential that made the token. The token ends when that credential does.
	Maker Maker `json:"-"`
	// Lineage is that of the API key that made the token. It is known of a token that is used.
	Lineage identity.Lineage `json:"-"`
}

// Maker is a credential that made a token.
type Maker struct {
	// Kind and ID identify the credential.
	Kind, ID string
	// Issuer and Subject identify the person at the identity provider, and Groups are the groups that the provider named. They are empty for API
	// keys and development logins.
	Issuer, Subject string
	Groups          []string
}

// maxOrigin bounds an origin, in bytes.
const maxOrigin = 300

// Check returns an error if a token with these properties cannot be created.
func (t Token) Check() error {
	switch {
	case t.Session == "" && t.Tool == "":
		return jig.Errorf(jig.CodeMissingParam, "an embed token is for a session or a tool").WithField("session").WithHint("give session or tool")
	case t.Session != "" && t.Tool != "":
		return jig.Errorf(jig.CodeInvalidInput, "give a session or a tool, not both").WithField("tool")
	case t.Tool != "" && jig.CheckToolName(t.Tool) != nil:
		return jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	case !isOrigin(t.Origin):
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

// Scopes lists the scopes that a token gives within its session or its tool.
func (t Token) Scopes() []string {
	if t.Tool != "" {
		return []string{apikey.ScopeRead, apikey.ScopeRun}
	}
	return []string{apikey.ScopeRead}
}

// prefix begins the ids that clients would choose for the sessions of the token's calls.
func (t Token) prefix() string { return "embed-" + t.ID + "-" }

// NewCall returns the id of the session of a call that a token's page makes. Calls with the same idempotency key, if there is one, have the same id.
func (t Token) NewCall(key string) string {
	name := rand.Text()
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		name = base32.StdEncoding.EncodeToString(sum[:])[:len(name)]
	}
	return t.prefix() + strings.ToLower(name)
}

// Shows reports whether a token may read a session: its own session, or the session of a call that was made with it. The id of the session has
// the prefix of the tenant.
func (t Token) Shows(session string) bool {
	if t.Session != "" {
		return session == t.Session
	}
	return strings.HasPrefix(session, jig.SessionID(t.Tenant, t.prefix()))
}

// form is how the texts of tokens look.
const form = secret.Prefix("jig_embed_")

// New returns the text of a new token, with its id and its hash; see [secret.Prefix.New].
func New() (text, id string, hash []byte) { return form.New() }

// Parse returns the id and the hash of a token's text. ok is false if no token has this form.
func Parse(text string) (id string, hash []byte, ok bool) { return form.Parse(text) }
