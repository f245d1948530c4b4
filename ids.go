package jig

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// Prefixes of the ids that jig generates.
const (
	SessionPrefix  = "ses_"
	ArtifactPrefix = "art_"
)

var (
	idEncoding       = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
	clientIDForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)
	sessionIDForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
	installationForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)
	tenantForm       = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

// NewSessionID returns a new session id: "ses_" and 26 characters (128 random bits).
func NewSessionID() string { return SessionPrefix + randomID() }

// NewSessionIDFor returns a new session id that begins with the name of the agent or the tool that the session runs, for people:
// "ses_payer-" and 26 characters (128 random bits). See [IDName].
func NewSessionIDFor(name string) string { return SessionPrefix + namedID(name, randomID()) }

// ChildSessionID returns the id of the session that answers a call. It is the same each time the call runs. It begins with the name in the
// id of the calling session and the call: call 2.1 of session ses_payer-… is answered by ses_payer-2-1-….
func ChildSessionID(sessionID, callID string) string {
	sum := sha256.Sum256([]byte(QualifiedCallID(sessionID, callID)))
	name := ClientID(sessionID)
	if own, ok := strings.CutPrefix(sessionID, SessionPrefix); ok {
		name = uniquePart.ReplaceAllString(own, "")
	}
	return SessionPrefix + namedID(name+" "+callID, idEncoding.EncodeToString(sum[:16]))
}

// KeyedSessionID returns the id of the session that a tenant's request with an idempotency key starts. It is the same for each repetition. If
// the key contains a slash, the id begins with the part before it, as with [NewSessionIDFor].
func KeyedSessionID(tenant, key string) string {
	sum := sha256.Sum256([]byte("idempotency key\x00" + tenant + "\x00" + key))
	name, _, named := strings.Cut(key, "/")
	if !named {
		name = ""
	}
	return SessionPrefix + namedID(name, idEncoding.EncodeToString(sum[:16]))
}

// NewArtifactID returns a new artifact id: "art_" and 26 characters.
func NewArtifactID() string { return ArtifactPrefix + randomID() }

// NewAttemptID returns a new id for one attempt at a call.
func NewAttemptID() string { return "att_" + randomID() }

// maxIDName is the maximum length of the name in an id.
const maxIDName = 32

// uniquePart is the end of an id that jig makes.
var uniquePart = regexp.MustCompile(`-?[0-9a-hjkmnp-tv-z]{26}$`)

// IDName returns a name as it appears in ids: lower-case letters, digits and single hyphens, at most 32 characters. It may be empty.
func IDName(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	short := strings.Join(parts, "-")
	return strings.TrimSuffix(short[:min(len(short), maxIDName)], "-")
}

// namedID joins a name and the part of an id that makes it unique.
func namedID(name, unique string) string {
	if name = IDName(name); name != "" {
		return name + "-" + unique
	}
	return unique
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (Go 1.24 and later)
	return idEncoding.EncodeToString(b[:])
}

// CheckSessionID returns an error if a session id is not safe as a workflow id or in a shell command.
func CheckSessionID(id string) error {
	if sessionIDForm.MatchString(id) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a session id", id).WithField("id").
		WithHint("use 1 to 128 letters, digits, '.', '_', ':' or '-', starting with a letter or digit")
}

// CheckClientID returns an error if a client may not choose this id for a session. Ids that begin with "ses_" are reserved for jig: the ids
// of child sessions are predictable, and nobody may claim one in advance.
func CheckClientID(id string) error {
	switch {
	case strings.HasPrefix(id, SessionPrefix):
		return Errorf(CodeInvalidInput, "the id %q begins with %s, which is reserved for ids that jig makes", id, Known(SessionPrefix)).WithField("id").
			WithHint("choose another id, such as order-7")
	case !clientIDForm.MatchString(id):
		return Errorf(CodeInvalidInput, "%q cannot be the id of a session", id).WithField("id").
			WithHint("use 1 to 64 letters, digits, '.', '_', ':' or '-', starting with a letter or digit")
	}
	return nil
}

// SessionID returns the id of a tenant's session, given that id or the id that a client chose. Ids that begin with "ses_" or "<tenant>."
// stay as they are; others get the prefix "<tenant>.". No two tenants share a session id.
func SessionID(tenant, id string) string {
	if id == "" || strings.HasPrefix(id, SessionPrefix) || strings.HasPrefix(id, tenant+".") {
		return id
	}
	return tenant + "." + id
}

// ClientID returns the id that a client chose for a session, given the session's id; "" if jig generated the id.
func ClientID(sessionID string) string {
	if strings.HasPrefix(sessionID, SessionPrefix) {
		return ""
	}
	_, id, _ := strings.Cut(sessionID, ".")
	return id
}

// CheckOwner returns an error if the session id cannot belong to the tenant.
func CheckOwner(tenant, sessionID string) error {
	if SessionID(tenant, sessionID) == sessionID && sessionID != "" {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q cannot be the id of a session of tenant %s", sessionID, Known(tenant)).WithField("id").
		WithHint(Templatef("start it as %s.%s", Known(tenant), sessionID))
}

// CheckTenant returns an error if a tenant name is malformed or reserved. No session id that starts with a tenant may look like one that
// jig generated.
func CheckTenant(tenant string) error {
	if tenantForm.MatchString(tenant) && !strings.HasPrefix(tenant, SessionPrefix) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a tenant", tenant).WithField("tenant").
		WithHint("use 1 to 63 lower-case letters, digits, '_' or '-', starting with a letter or digit, and not with " + SessionPrefix)
}

// CheckInstallation returns an error if an installation id is malformed.
func CheckInstallation(id string) error {
	if installationForm.MatchString(id) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not an installation id", id).WithField("installation").
		WithHint("use 1 to 40 lower-case letters, digits, '_' or '-', starting with a letter or digit")
}

// CallID returns the id of the nth call (from 1) of a pass, e.g. "3.2".
func CallID(pass, ordinal int) string { return strconv.Itoa(pass) + "." + strconv.Itoa(ordinal) }

// ParseCallID splits a call id such as "3.2" or "3.2/page" into the pass, the ordinal and the path inside a composition. It returns
// INVALID_INPUT for anything else.
func ParseCallID(id string) (pass, ordinal int, path string, err error) {
	head, path, _ := strings.Cut(id, "/")
	p, o, ok := strings.Cut(head, ".")
	if ok {
		if pass, err = strconv.Atoi(p); err == nil {
			ordinal, err = strconv.Atoi(o)
		}
	}
	if !ok || err != nil || pass < 0 || ordinal < 1 {
		return 0, 0, "", Errorf(CodeInvalidInput, "%q is not a call id", id).WithField("call").
			WithHint("a call id is <pass>.<ordinal>, as shown by `status`, e.g. 3.2")
	}
	return pass, ordinal, path, nil
}

// QualifiedCallID returns the id of a call together with its session, "<session>/<call>". It is unique within a tenant.
func QualifiedCallID(sessionID, callID string) string { return sessionID + "/" + callID }

// MaxIdempotencyKey bounds an idempotency key, in bytes. The bound fits an HTTP header and the key columns of common providers.
const MaxIdempotencyKey = 255

// IdempotencyKey returns the key under which the effect of a new call runs: "<installation>/<tenant>/<session>/<call>" if that is at most
// [MaxIdempotencyKey] printable ASCII characters, else "<installation>/<tenant>/sha256:<hash of the whole>". The ledger stores the key when
// it admits the call. For a call that exists, use [Call.IdempotencyKey], because only the stored key counts.
func IdempotencyKey(installation, tenant, sessionID, callID string) string {
	scope := installation + "/" + tenant + "/"
	key := scope + QualifiedCallID(sessionID, callID)
	if len(key) <= MaxIdempotencyKey && printableASCII(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return scope + "sha256:" + hex.EncodeToString(sum[:])
}

func printableASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// versionDigits is the number of hex digits of a version that people see.
const versionDigits = 16

var fullHash = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// ShortVersion shortens every SHA-256 hash in a text to its first 16 hex digits, as versions are shown to people. The text may be a
// version, a policy version (name@hash) or the subject of an audit row.
func ShortVersion(text string) string {
	return fullHash.ReplaceAllStringFunc(text, func(hash string) string { return hash[:versionDigits] })
}

// Prefixes of the ids of entities and texts.
const (
	EntityPrefix = "ent_"
	TextPrefix   = "doc_"
)

// NewEntityID returns a fresh id of an entity, with its type for people: "ent_customer-" and 26 characters. See [IDName].
func NewEntityID(entityType string) string { return EntityPrefix + namedID(entityType, randomID()) }

// NewTextID returns a fresh id of a text: "doc_" and 26 characters.
func NewTextID() string { return TextPrefix + randomID() }

// TextIDOf returns the id of the text that a call with this idempotency key adds. It is the same each time the call runs.
func TextIDOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return TextPrefix + idEncoding.EncodeToString(sum[:16])
}

// MessageKey returns the key under which a session stores a message whose id the sender chose, so that it is stored only once.
func MessageKey(id string) string { return "message:" + id }
