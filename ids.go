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

// Prefixes of the ids that jig makes.
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

// NewSessionID returns a fresh session id: "ses_" and 26 characters (128 random bits).
func NewSessionID() string { return SessionPrefix + randomID() }

// ChildSessionID returns the id of the session that answers a call. It is the same whenever the call is run again.
func ChildSessionID(sessionID, callID string) string {
	sum := sha256.Sum256([]byte(QualifiedCallID(sessionID, callID)))
	return SessionPrefix + idEncoding.EncodeToString(sum[:16])
}

// NewArtifactID returns a fresh artifact id: "art_" and 26 characters.
func NewArtifactID() string { return ArtifactPrefix + randomID() }

// NewAttemptID names one attempt at a call.
func NewAttemptID() string { return "att_" + randomID() }

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (Go 1.24 and later)
	return idEncoding.EncodeToString(b[:])
}

// CheckSessionID refuses a session id that would not be safe as a workflow id or in a shell command.
func CheckSessionID(id string) error {
	if sessionIDForm.MatchString(id) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a session id", id).WithField("id").
		WithHint("use 1 to 128 letters, digits, '.', '_', ':' or '-', starting with a letter or digit")
}

// CheckClientID refuses an id that a client may not choose for a session. Ids that begin with "ses_" are jig's own: the ids of
// child sessions can be computed, and nobody may take one in advance.
func CheckClientID(id string) error {
	switch {
	case strings.HasPrefix(id, SessionPrefix):
		return Errorf(CodeInvalidInput, "the id %q begins with %s: jig makes such ids itself", id, SessionPrefix).WithField("id").
			WithHint("choose another id, such as order-7")
	case !clientIDForm.MatchString(id):
		return Errorf(CodeInvalidInput, "%q cannot be the id of a session", id).WithField("id").
			WithHint("use 1 to 64 letters, digits, '.', '_', ':' or '-', starting with a letter or digit")
	}
	return nil
}

// SessionID returns the id of a session of a tenant, given that id or the one that a client chose: ids that begin with "ses_" or
// with "<tenant>." stay as they are, others get the tenant in front. No two tenants share a session's id.
func SessionID(tenant, id string) string {
	if id == "" || strings.HasPrefix(id, SessionPrefix) || strings.HasPrefix(id, tenant+".") {
		return id
	}
	return tenant + "." + id
}

// ClientID returns the id that a client chose for a session, given the session's id; "" when jig made the id.
func ClientID(sessionID string) string {
	if strings.HasPrefix(sessionID, SessionPrefix) {
		return ""
	}
	_, id, _ := strings.Cut(sessionID, ".")
	return id
}

// CheckOwner refuses the id of a session that cannot belong to a tenant.
func CheckOwner(tenant, sessionID string) error {
	if SessionID(tenant, sessionID) == sessionID && sessionID != "" {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q cannot be the id of a session of tenant %s", sessionID, tenant).WithField("id").
		WithHint("start it as " + tenant + "." + sessionID)
}

// CheckTenant refuses a tenant name that is malformed or reserved: no session's id may look like one that jig made.
func CheckTenant(tenant string) error {
	if tenantForm.MatchString(tenant) && !strings.HasPrefix(tenant, SessionPrefix) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a tenant", tenant).WithField("tenant").
		WithHint("use 1 to 63 lower-case letters, digits, '_' or '-', starting with a letter or digit, and not with " + SessionPrefix)
}

// CheckInstallation refuses an installation id that is malformed.
func CheckInstallation(id string) error {
	if installationForm.MatchString(id) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not an installation id", id).WithField("installation").
		WithHint("use 1 to 40 lower-case letters, digits, '_' or '-', starting with a letter or digit")
}

// CallID is the id of the nth call (from 1) that a pass asked for, e.g. "3.2".
func CallID(pass, ordinal int) string { return strconv.Itoa(pass) + "." + strconv.Itoa(ordinal) }

// ParseCallID reads the pass, the ordinal and the path inside a composition from a call id such as "3.2" or "3.2/page".
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

// QualifiedCallID names a call together with its session, "<session>/<call>". It is unique within a tenant.
func QualifiedCallID(sessionID, callID string) string { return sessionID + "/" + callID }

// MaxIdempotencyKey bounds an idempotency key, in bytes. It fits an HTTP header and the key columns of common providers.
const MaxIdempotencyKey = 255

// IdempotencyKey returns the key that a new call's effect runs under: "<installation>/<tenant>/<session>/<call>" when that is
// at most [MaxIdempotencyKey] printable ASCII characters, else "<installation>/<tenant>/sha256:<hash of the whole>". The
// ledger stores it when the call is admitted; afterwards the stored key counts, so ask [Call.IdempotencyKey] for the key of a
// call that exists.
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
