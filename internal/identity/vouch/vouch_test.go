package vouch_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/vouch"
	"github.com/jig-run/jig/internal/protocol"
)

var monday = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// authority is a root with servers' keys in a database.
type authority struct {
	root   []byte
	public []byte
	rows   []vouch.Stored
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	root, public, err := vouch.NewRoot()
	require.NoError(t, err)
	raw, err := base64.StdEncoding.DecodeString(public)
	require.NoError(t, err)
	return &authority{root: root, public: raw}
}

// server returns the key of a new server that has started.
func (a *authority) server(t *testing.T, at time.Time, lifetime time.Duration) vouch.Signer {
	t.Helper()
	file, key, err := vouch.NewServerKey(a.root, at, lifetime)
	require.NoError(t, err)
	s, err := vouch.ReadSigner(file)
	require.NoError(t, err)
	require.Equal(t, key.ID, s.ID())
	require.Equal(t, key.Until, s.Until())
	a.rows = append(a.rows, vouch.Stored{ID: s.ID(), Certificate: s.Certificate()})
	return s
}

func (a *authority) workers() *vouch.Known {
	return vouch.NewKnown([][]byte{a.public}, func(context.Context) ([]vouch.Stored, error) { return a.rows, nil })
}

func start() protocol.Statement {
	return protocol.Statement{
		Kind: protocol.StateStart, Tenant: "acme", Session: "acme.order-7", Content: "c0ffee", Source: jig.SourceAPI,
		Principal: jig.Principal{ID: "ana", Groups: []string{"finance"}, Permissions: []string{"pay"}},
	}
}

func sign(t *testing.T, s vouch.Signer, st protocol.Statement, at time.Time) string {
	t.Helper()
	text, err := s.Sign(st, at)
	require.NoError(t, err)
	return text
}

func refused(t *testing.T, k *vouch.Known, text string, want protocol.Statement, at time.Time, why string) {
	t.Helper()
	_, err := k.Verify(t.Context(), text, want, at)
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err), why)
	require.ErrorContains(t, err, why)
}

func TestVerify_ReturnsWhatTheServerStates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := a.server(t, monday, time.Hour)
	want := start()
	want.Principal, want.Source = jig.Principal{}, ""
	got, err := a.workers().Verify(t.Context(), sign(t, s, start(), monday), want, monday.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, jig.Principal{ID: "ana", Groups: []string{"finance"}, Permissions: []string{"pay"}, Proof: jig.ProofVouched}, got.Principal)
	require.Equal(t, jig.SourceAPI, got.Source)
	require.Equal(t, s.ID(), got.Key)
	require.NotEmpty(t, got.ID)
}

// While one root key replaces another, workers trust the keys that either has certified.
func TestVerify_TrustsSeveralRootKeys(t *testing.T) {
	t.Parallel()
	old, next := newAuthority(t), newAuthority(t)
	before, after := sign(t, old.server(t, monday, time.Hour), start(), monday), sign(t, next.server(t, monday, time.Hour), start(), monday)
	read := func(context.Context) ([]vouch.Stored, error) {
		return append(slices.Clone(old.rows), next.rows...), nil
	}
	for _, text := range []string{before, after} {
		_, err := vouch.NewKnown([][]byte{old.public, next.public}, read).Verify(t.Context(), text, start(), monday)
		require.NoError(t, err)
	}
	refused(t, vouch.NewKnown([][]byte{next.public}, read), before, start(), monday, "no root key of this worker certified it")
}

// A statement counts only for its own subject.
func TestVerify_RefusesAStatementAboutSomethingElse(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	k, text := a.workers(), sign(t, a.server(t, monday, time.Hour), start(), monday)
	for why, change := range map[string]func(*protocol.Statement){
		"another tenant": func(s *protocol.Statement) { s.Tenant = "other" }, "another session": func(s *protocol.Statement) { s.Session = "acme.order-8" },
		"another content": func(s *protocol.Statement) { s.Content = "decaf" }, "something else": func(s *protocol.Statement) { s.Kind = protocol.StateMessage },
	} {
		want := start()
		change(&want)
		refused(t, k, text, want, monday, why)
	}
	parts := strings.Split(text, ".")
	other := strings.Split(sign(t, a.server(t, monday, time.Hour), start(), monday), ".")
	refused(t, k, parts[0]+"."+parts[1]+"."+other[2], start(), monday, "did not sign it")
	refused(t, k, parts[0]+"."+parts[1]+"."+strings.Repeat("A", len(parts[2])), start(), monday, "did not sign it")
	refused(t, k, "", start(), monday, "is not known")
	refused(t, k, strings.Repeat("x", vouch.MaxBytes+1), start(), monday, "is not known")
}

// A start is judged at the time at which Temporal recorded it, so it may wait for a worker.
func TestVerify_JudgesByTheRecordedTime(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := a.server(t, monday, time.Hour)
	k, text := a.workers(), sign(t, s, start(), monday)
	for _, at := range []time.Time{monday, monday.Add(vouch.Window), monday.Add(-vouch.Leeway)} {
		_, err := k.Verify(t.Context(), text, start(), at)
		require.NoError(t, err)
	}
	refused(t, k, text, start(), monday.Add(vouch.Window+time.Minute), "older than 5 minutes")
	refused(t, k, text, start(), monday.Add(-time.Minute), "later than it was used")
	late := sign(t, s, start(), monday.Add(2*time.Hour))
	refused(t, k, late, start(), monday.Add(2*time.Hour), "its key was not valid")
}

// Messages and mandates of schedules may be old. A message counts for its id alone, a mandate for the times that have come.
func TestVerify_MessagesAndSchedulesLast(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s, k, later := a.server(t, monday, time.Hour), a.workers(), monday.Add(30*24*time.Hour)
	message := protocol.Statement{Kind: protocol.StateMessage, Tenant: "acme", Session: "ses_1", Content: "c", ID: "m1", Principal: jig.Principal{ID: "ana"}}
	text := sign(t, s, message, monday)
	_, err := k.Verify(t.Context(), text, message, later)
	require.NoError(t, err)
	message.ID = "m2"
	refused(t, k, text, message, later, "another id")

	mandate := start()
	mandate.Kind, mandate.Session = protocol.StateSchedule, "ses_acme:nightly"
	text = sign(t, s, mandate, monday)
	fired := mandate
	fired.Session = "ses_acme:nightly-" + later.Format(time.RFC3339)
	_, err = k.Verify(t.Context(), text, fired, later)
	require.NoError(t, err)
	for _, session := range []string{"ses_acme:nightly", "ses_acme:nightly-2", "ses_acme:nightly-x-" + later.Format(time.RFC3339), "ses_acme:nightly-" + later.Add(time.Hour).Format(time.RFC3339)} {
		fired.Session = session
		refused(t, k, text, fired, later, "another session")
	}
}

// Keys are replaced with an overlap. A revoked key counts for nothing, whenever it signed.
func TestKnown_RotatesAndRevokesKeys(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	k, old := a.workers(), a.server(t, monday, time.Hour)
	before := sign(t, old, start(), monday)
	_, err := k.Verify(t.Context(), before, start(), monday)
	require.NoError(t, err)
	fresh := a.server(t, monday, time.Hour)
	for _, s := range []vouch.Signer{old, fresh} {
		_, err := k.Verify(t.Context(), sign(t, s, start(), monday), start(), monday)
		require.NoError(t, err, "a new key counts at once")
	}
	a.rows[0].RevokedAt = &monday
	refused(t, a.workers(), before, start(), monday, "was revoked")
	a.rows = append(a.rows, vouch.Stored{ID: "srv_another", Certificate: old.Certificate()})
	refused(t, a.workers(), before, start(), monday, "was revoked")
}

// Nobody can add a key who can write only to the database.
func TestKnown_CountsOnlyCertifiedKeys(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	theirs := other.server(t, monday, time.Hour)
	a.rows = other.rows
	refused(t, a.workers(), sign(t, theirs, start(), monday), start(), monday, "no root key of this worker certified it")
	mine := a.server(t, monday, time.Hour)
	a.rows = []vouch.Stored{{ID: theirs.ID(), Certificate: mine.Certificate()}}
	refused(t, a.workers(), sign(t, theirs, start(), monday), start(), monday, "is not known")
	statement := sign(t, mine, start(), monday)
	a.rows = []vouch.Stored{{ID: mine.ID(), Certificate: statement}}
	refused(t, a.workers(), statement, start(), monday, "is not known")
	_, err := vouch.NewKnown(nil, nil).Verify(t.Context(), statement, start(), monday)
	require.ErrorContains(t, err, "this worker cannot check")
}

func TestNewServerKey_RefusesBadKeysAndLifetimes(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, lifetime := range []time.Duration{time.Minute, vouch.MaxLifetime + 1} {
		_, _, err := vouch.NewServerKey(a.root, monday, lifetime)
		require.Equal(t, "lifetime", jig.AsError(err).Field)
	}
	_, _, err := vouch.NewServerKey([]byte("no key"), monday, 0)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	_, err = vouch.ReadSigner(a.root)
	require.ErrorContains(t, err, "has no certificate")
	s := a.server(t, monday, 0)
	require.Equal(t, monday.Add(vouch.DefaultLifetime), s.Until())
	require.NotContains(t, s.String(), "PRIVATE")
}

func TestSign_RefusesWhatIsIncomplete(t *testing.T) {
	t.Parallel()
	s := newAuthority(t).server(t, monday, time.Hour)
	for _, change := range []func(*protocol.Statement){
		func(s *protocol.Statement) { s.Tenant = "" }, func(s *protocol.Statement) { s.Principal.ID = "" }, func(s *protocol.Statement) { s.Content = "" },
		func(s *protocol.Statement) { s.Principal.Groups = []string{strings.Repeat("g", vouch.MaxBytes)} },
	} {
		st := start()
		change(&st)
		_, err := s.Sign(st, monday)
		require.Error(t, err)
	}
}
