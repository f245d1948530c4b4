package activities_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

// key makes an API key of ana's, which another key may have made, and returns its id.
func (f *front) key(t *testing.T, madeWith string) string {
	t.Helper()
	_, id, hash := credential.KeyForm.New()
	k := credential.Credential{Tenant: f.tenant, ID: id, Kind: identity.KindAPIKey, Principal: "ana", Scopes: credential.Scopes()}
	if madeWith != "" {
		k.MadeWith = identity.CredentialRef{Kind: identity.KindAPIKey, ID: madeWith}
	}
	_, err := storetest.Server(t).CreateCredential(t.Context(), credential.New{Credential: k, Hash: hash})
	require.NoError(t, err)
	return id
}

// fires opens a session of a schedule of ana's with a mandate, as a server states it or else as the start claims.
func (f *front) fires(t *testing.T, m protocol.Mandate, vouched bool) error {
	t.Helper()
	f.register(t, document("agents: [nightly]"))
	base, at := "ses_"+f.tenant+":n"+jig.NewSessionID()[4:], time.Now().UTC()
	s := protocol.StartSession{Agent: "nightly", Task: "tidy up", Principal: jig.Principal{ID: "ana"}, Source: jig.SourceSchedule, Mandate: &m}
	if vouched {
		s.Proof = f.state(t, protocol.Statement{Kind: protocol.StateSchedule, Session: base, Content: digestOf(s), Source: s.Source, Mandate: m}, at)
	}
	return f.began(t, base+"-"+at.Format(time.RFC3339), s, at)
}

// A schedule starts nothing after its key, or one that made it, was revoked, and after its people have left. The audit says why.
func TestSchedule_EndsWithItsCredential(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	parent := f.key(t, "")
	child := protocol.Mandate{Credential: protocol.MandateKey + f.key(t, parent)}
	listed := protocol.Mandate{Persons: []string{"ana"}}
	require.NoError(t, f.fires(t, child, true))
	require.NoError(t, storetest.Server(t).RevokeCredential(t.Context(), f.tenant, identity.CredentialRef{Kind: identity.KindAPIKey, ID: parent}, "ben"))
	err := f.fires(t, child, true)
	require.ErrorContains(t, err, "mandate has ended")
	require.NotEmpty(t, f.refusals(t, "mandate has ended"))
	f.settings.Starts = jig.ProofClaimed
	require.ErrorContains(t, f.fires(t, child, false), "mandate has ended", "a claim is worth no more")

	f.settings.People = append(f.settings.People, jig.Principal{ID: "ana"})
	require.NoError(t, f.fires(t, listed, true))
	f.settings.People = nil
	require.ErrorContains(t, f.fires(t, listed, true), "left the tenant's document")
}

// refusals returns the reasons of refused requests in the audit that begin like a text.
func (f *front) refusals(t *testing.T, like string) (reasons []string) {
	t.Helper()
	for _, e := range f.entries(t) {
		if e.Kind == audit.AuditRefused {
			require.Contains(t, e.Reason, like)
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

func (f *front) entries(t *testing.T) (all []audit.Entry) {
	t.Helper()
	rows, err := f.db.AuditRows(t.Context(), f.tenant, 0, 1000)
	require.NoError(t, err)
	for _, row := range rows {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		all = append(all, e)
	}
	return all
}

// operate tries an action on carol's schedule as ana, whose credential has only some scopes.
func (f *front) operate(t *testing.T, action protocol.ScheduleAction, owner string, operates, manages bool) (protocol.OperateAnswer, error) {
	t.Helper()
	do := activities.Answered(f.Activities, string(protocol.WriteOperate), f.OperateSchedule)
	request := protocol.OperateRequest{
		Tenant: f.tenant, Schedule: "payroll", Action: action, Owner: owner, By: "ana", Operates: &operates, Manages: &manages, Credential: "api_key:k1",
	}
	st := protocol.Statement{Kind: protocol.StateRead, Content: protocol.ContentOf(string(protocol.WriteOperate), request)}
	return do(t.Context(), request, f.state(t, st, time.Now()))
}

// Only its own principal, or somebody with the permission to operate, may change a schedule. Every attempt is in the audit, with the principal and the credential.
func TestOperateSchedule_IsRecorded(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	for _, action := range []protocol.ScheduleAction{protocol.SchedulePause, protocol.ScheduleResume, protocol.ScheduleDelete} {
		_, err := f.operate(t, action, "carol", false, true)
		require.Equal(t, jig.CodeNotPermitted, failed(t, err), action)
		_, err = f.operate(t, action, "", false, true)
		require.Equal(t, jig.CodeNotPermitted, failed(t, err), "nobody's schedule is not everybody's")
		_, err = f.operate(t, action, "carol", true, false)
		require.NoError(t, err)
		_, err = f.operate(t, action, "ana", false, false)
		require.NoError(t, err)
	}
	for own, owner := range map[bool]string{true: "carol", false: "ana"} {
		answer, err := f.operate(t, protocol.ScheduleTrigger, owner, false, false)
		require.NoError(t, err)
		require.Equal(t, own, answer.Own)
	}
	_, err := f.operate(t, protocol.ScheduleTakeOver, "ana", true, false)
	require.Equal(t, jig.CodeNotPermitted, failed(t, err), "only owners")
	_, err = f.operate(t, protocol.ScheduleTakeOver, "carol", false, true)
	require.NoError(t, err)
	refused, done := 0, 0
	for _, e := range f.entries(t) {
		require.Equal(t, "schedule:payroll", e.Subject)
		require.Equal(t, "ana", e.By)
		require.False(t, e.Claimed)
		require.Contains(t, e.Reason, "api_key:k1")
		if e.Kind == audit.AuditRefused {
			refused++
		} else {
			require.Equal(t, audit.AuditSchedule, e.Kind)
			done++
		}
	}
	require.Equal(t, []int{7, 9}, []int{refused, done})
}

// A session that somebody triggers acts for the schedule's principal and names the one who triggered it, which only a server's word proves.
func TestSchedule_NamesWhoTriggers(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	f.register(t, document("agents: [nightly]"))
	base, at := "ses_"+f.tenant+":payroll", time.Now().UTC()
	id := base + "-" + at.Format(time.RFC3339)
	s := protocol.StartSession{Agent: "nightly", Task: "pay", Principal: jig.Principal{ID: "ana"}, Source: jig.SourceSchedule}
	s.Proof = f.state(t, protocol.Statement{Kind: protocol.StateSchedule, Session: base, Content: digestOf(s), Source: s.Source}, at)
	s.Triggered = &protocol.Triggered{By: jig.Principal{ID: "dan"}}
	require.ErrorContains(t, f.began(t, id, s, at), "only requests that come through its server")
	word := protocol.Statement{Kind: protocol.StateTrigger, Session: id, Content: digestOf(s), Source: s.Source}
	s.Triggered.Proof = f.state(t, word, at)
	require.ErrorContains(t, f.began(t, id, s, at), "another principal")
	s.Triggered.By.ID = "ana"
	s.Triggered.Proof = f.state(t, protocol.Statement{Kind: protocol.StateTrigger, Session: id + "x", Content: digestOf(s)}, at)
	require.ErrorContains(t, f.began(t, id, s, at), "another session")
	s.Triggered.Proof = f.state(t, word, at)
	require.NoError(t, f.began(t, id, s, at))
}

// Whoever set a pause may end it, however they ask. So may anybody who decides, unless the session acts for them.
func TestResume_ByWhomever(t *testing.T) {
	t.Parallel()
	f := newFront(t, func(o *office) { o.settings.Proof = jig.ProofVouched })
	f.settings.People = []jig.Principal{{ID: "ana"}, {ID: "ben"}}
	session := storetest.Session(t, f.db, f.tenant)
	require.Equal(t, "ana", session.Principal.ID)
	resume := func(scope jig.PauseScope, target string, decides bool) error {
		request := protocol.PauseRequest{Tenant: f.tenant, Scope: scope, Target: target, By: "ana", Decides: &decides}
		st := protocol.Statement{Kind: protocol.StateRead, Content: protocol.ContentOf(string(protocol.WriteResume), request)}
		_, err := activities.Answered(f.Activities, string(protocol.WriteResume), f.Resume)(t.Context(), request, f.state(t, st, time.Now()))
		return err
	}
	paused := func(by string, scope jig.PauseScope, target string) {
		_, err := f.db.Pause(t.Context(), f.tenant, jig.Pause{Scope: scope, Target: target, By: by, At: time.Now().UTC()}, nil)
		require.NoError(t, err)
	}
	paused("ben", jig.PauseSession, session.ID)
	require.Equal(t, jig.CodeNotPermitted, failed(t, resume(jig.PauseSession, session.ID, false)))
	require.ErrorContains(t, resume(jig.PauseSession, session.ID, true), "which acts for you")
	f.settings.People = nil
	require.NoError(t, resume(jig.PauseSession, session.ID, true), "nobody else could")
	paused("ana", jig.PauseSession, session.ID)
	require.NoError(t, resume(jig.PauseSession, session.ID, false), "her own pause")
	for scope, target := range map[jig.PauseScope]string{jig.PauseTool: "shop.refund", jig.PauseTenant: ""} {
		paused("ben", scope, target)
		require.Equal(t, jig.CodeNotPermitted, failed(t, resume(scope, target, false)))
		require.NoError(t, resume(scope, target, true))
	}
}
