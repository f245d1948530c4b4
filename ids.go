package jig

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
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
	idEncoding    = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
	sessionIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
	tenantForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

// NewSessionID returns a fresh session id: "ses_" and 26 characters (128 random bits).
func NewSessionID() string { return SessionPrefix + randomID() }

// ChildSessionID is the id of the session that answers a call: the same whenever the call is run again.
func ChildSessionID(sessionID, callID string) string {
	sum := sha256.Sum256([]byte(IdempotencyKey(sessionID, callID)))
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

// CheckSessionID refuses a session id that a user chose and that would not be safe as a workflow id or in a shell command.
func CheckSessionID(id string) error {
	if sessionIDForm.MatchString(id) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a session id", id).WithField("id").
		WithHint("use 1 to 128 letters, digits, '.', '_', ':' or '-', starting with a letter or digit")
}

// CheckTenant refuses a tenant name that is malformed or reserved.
func CheckTenant(tenant string) error {
	if tenantForm.MatchString(tenant) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%q is not a tenant", tenant).WithField("tenant").
		WithHint("use 1 to 63 lower-case letters, digits, '_' or '-', starting with a letter or digit")
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

// IdempotencyKey is the key a call's effect runs under: the same over retries, new workflow runs, resets and deploys.
func IdempotencyKey(sessionID, callID string) string { return fmt.Sprintf("%s/%s", sessionID, callID) }
