package vouch

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// typeStatement is the type of statements, so that no token of a person and no certificate counts as one.
const typeStatement = "jig-statement+jwt"

// Window is how long after its signature a request must reach Temporal.
const Window = 5 * time.Minute

// MaxBytes is the maximum length of a signed statement.
const MaxBytes = 16 << 10

// scheduleSeparator stands between the name of a schedule's sessions and the time that Temporal appends.
const scheduleSeparator = "-"

// stated holds the claims of a statement.
type stated struct {
	jwt.RegisteredClaims
	Kind        string   `json:"kind"`
	Tenant      string   `json:"tenant"`
	Groups      []string `json:"groups,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
	Session     string   `json:"session,omitempty"`
	Content     string   `json:"content"`
	Source      string   `json:"source,omitempty"`
	Maker       string   `json:"maker,omitempty"`
	// Mandate is that of a schedule.
	Mandate *protocol.Mandate `json:"mandate,omitempty"`
}

// Sign signs a statement. A statement without an id gets a new one.
func (s Signer) Sign(st protocol.Statement, now time.Time) (string, error) {
	if s.private == nil || st.Tenant == "" || st.Principal.ID == "" || st.Kind == "" || st.Content == "" {
		return "", jig.Errorf(jig.CodeInternal, "a statement of kind %q is not complete", st.Kind)
	}
	if st.ID == "" {
		st.ID = rand.Text()
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, stated{
		RegisteredClaims: jwt.RegisteredClaims{Subject: st.Principal.ID, ID: st.ID, IssuedAt: jwt.NewNumericDate(now.Truncate(time.Second))},
		Kind:             string(st.Kind), Tenant: st.Tenant, Groups: st.Principal.Groups, Permissions: st.Principal.Permissions,
		Session: st.Session, Content: st.Content, Source: string(st.Source), Maker: st.Principal.Maker,
		Mandate: mandateOf(st),
	})
	t.Header["typ"], t.Header["kid"] = typeStatement, s.id
	text, err := t.SignedString(s.private)
	if err != nil {
		return "", jig.Errorf(jig.CodeInternal, "sign a statement: %w", err)
	}
	if len(text) > MaxBytes {
		return "", jig.Errorf(jig.CodeInvalidInput, "the principal has too many groups and permissions to vouch for").WithField("principal")
	}
	return text, nil
}

// mandateOf returns the mandate that a statement about a schedule contains.
func mandateOf(st protocol.Statement) *protocol.Mandate {
	if st.Kind != protocol.StateSchedule {
		return nil
	}
	return &st.Mandate
}

// KeyOf returns the id of the key that a signed statement names, or "". Nothing is verified.
func KeyOf(text string) string {
	if len(text) > MaxBytes {
		return ""
	}
	t, _, err := jwt.NewParser().ParseUnverified(text, &stated{})
	if err != nil {
		return ""
	}
	id, _ := t.Header["kid"].(string) //nolint:errcheck // without an id there is no key
	return id
}

// Verify checks a signed statement with the key that it names. Its kind, tenant, session and content must be those of want. A statement of
// want.Kind start, decide or read must have been signed at most [Window] before at, which is when Temporal recorded the request, or now. The
// mandate of a schedule may be older, and so may a message, which counts once because of its id. The key must have been valid when it
// signed. Verify returns the statement. The error is NOT_PERMITTED.
func Verify(text string, key Key, want protocol.Statement, at time.Time) (protocol.Statement, error) {
	if len(text) > MaxBytes {
		return protocol.Statement{}, refused("it is longer than 16 KiB")
	}
	var got stated
	parser := jwt.NewParser(jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation(), jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}))
	t, err := parser.ParseWithClaims(text, &got, func(t *jwt.Token) (any, error) {
		if t.Header["kid"] != key.ID {
			return nil, jwt.ErrTokenUnverifiable
		}
		return typed(t, typeStatement, key.Public)
	})
	if err != nil || !t.Valid {
		return protocol.Statement{}, refused("its server did not sign it")
	}
	st := protocol.Statement{
		Kind: protocol.StatementKind(got.Kind), Tenant: got.Tenant, Session: got.Session, Content: got.Content, Source: jig.Source(got.Source), ID: got.ID, Key: key.ID,
		Principal: jig.Principal{ID: got.Subject, Groups: got.Groups, Permissions: got.Permissions, Proof: jig.ProofVouched, Maker: got.Maker},
	}
	if got.Mandate != nil {
		st.Mandate = *got.Mandate
	}
	switch {
	case st.Kind != want.Kind:
		return st, refused("it is about something else")
	case st.Tenant != want.Tenant:
		return st, refused("it is for another tenant")
	case !sameSession(st, want, at):
		return st, refused("it is for another session")
	case st.Content != want.Content:
		return st, refused("it is for another content")
	case (st.Kind == protocol.StateMessage || st.Kind == protocol.StateEvent) && st.ID != want.ID:
		return st, refused("it is for another id")
	case st.Principal.ID == "" || st.ID == "" || got.IssuedAt == nil:
		return st, refused("it does not say who asks, or when")
	}
	return st, timely(st, key, got.IssuedAt.Time, at)
}

// timely returns an error if a statement was signed at a time at which it does not count.
func timely(st protocol.Statement, key Key, signed, at time.Time) error {
	lasting := st.Kind == protocol.StateSchedule || st.Kind == protocol.StateMessage || st.Kind == protocol.StateEvent
	switch {
	case signed.Before(key.From.Add(-Leeway)) || signed.After(key.Until):
		return refused("its key was not valid when it was signed")
	case signed.After(at.Add(Leeway)):
		return refused("it was signed later than it was used")
	case !lasting && at.After(signed.Add(Window+Leeway)):
		return refused("it is older than 5 minutes")
	}
	return nil
}

// sameSession reports whether a statement is for the wanted session. Temporal appends the time for which a schedule planned a session to the
// session's id.
func sameSession(got, want protocol.Statement, at time.Time) bool {
	if got.Kind != protocol.StateSchedule {
		return got.Session == want.Session
	}
	appended, ok := strings.CutPrefix(want.Session, got.Session+scheduleSeparator)
	if !ok || got.Session == "" {
		return false
	}
	planned, err := time.Parse(time.RFC3339, appended)
	return err == nil && !planned.After(at.Add(Leeway))
}

func refused(why string) *jig.Error {
	return jig.Errorf(jig.CodeNotPermitted, "the server's statement about the principal is not valid: %s", why).WithField("proof").
		WithHint("send the request to the server again")
}
