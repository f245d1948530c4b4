package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
)

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
