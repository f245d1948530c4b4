package activities_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity/vouch"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// front is a server that vouches for people, in front of an office whose tenant demands that.
type front struct {
	*office
	signer vouch.Signer
}

func newFront(t *testing.T, change ...func(*office)) *front {
	t.Helper()
	root, public, err := vouch.NewRoot()
	require.NoError(t, err)
	trusted, err := base64.StdEncoding.DecodeString(public)
	require.NoError(t, err)
	file, key, err := vouch.NewServerKey(root, time.Now().Add(-time.Hour), 3*time.Hour)
	require.NoError(t, err)
	signer, err := vouch.ReadSigner(file)
	require.NoError(t, err)
	rows := []vouch.Stored{{ID: key.ID, Certificate: signer.Certificate()}}
	o := newOffice(t, append(change, func(o *office) {
		o.settings.Starts = jig.ProofVouched
		o.servers = vouch.NewKnown([][]byte{trusted}, func(context.Context) ([]vouch.Stored, error) { return rows, nil })
	})...)
	return &front{office: o, signer: signer}
}

// state signs a statement for a principal, or else for ana, who asks the server at a time.
func (f *front) state(t *testing.T, s protocol.Statement, at time.Time) string {
	t.Helper()
	if s.Tenant == "" {
		s.Tenant = f.tenant
	}
	if s.Principal.ID == "" {
		s.Principal = jig.Principal{ID: "ana", Groups: []string{"support"}, Permissions: []string{guardedTool}}
	}
	text, err := f.signer.Sign(s, at)
	require.NoError(t, err)
	return text
}

// start returns a start of ana's, with the statement about it.
func (f *front) start(t *testing.T, session string, at time.Time) protocol.StartSession {
	t.Helper()
	f.register(t, document("agents: [nightly]"))
	s := protocol.StartSession{Agent: "nightly", Task: "tidy up", Principal: jig.Principal{ID: "ana", Permissions: []string{"*"}}, Source: jig.SourceAPI}
	s.Proof = f.state(t, protocol.Statement{Kind: protocol.StateStart, Session: session, Content: digestOf(s), Source: s.Source}, at)
	return s
}

func digestOf(s protocol.StartSession) string {
	return jig.SessionRequest{Agent: s.Agent, Task: s.Task, Input: s.Input, Principal: s.Principal.ID}.Digest()
}

func (f *front) audits(t *testing.T, session string) (reasons []string) {
	t.Helper()
	rows, err := f.db.AuditRows(t.Context(), f.tenant, 0, 1000)
	require.NoError(t, err)
	for _, row := range rows {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		if e.Kind == audit.AuditRefused && e.SessionID == session {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// began opens a session that Temporal recorded at a time.
func (f *front) began(t *testing.T, session string, s protocol.StartSession, at time.Time) error {
	t.Helper()
	_, err := f.Open(t.Context(), activities.OpenInput{SessionRef: protocol.SessionRef{Tenant: f.tenant, SessionID: session}, Start: &s, Began: at})
	return err
}

// The session's principal is the one that the server states, with the groups and permissions that it found.
func TestStart_TheServerVouchesForThePrincipal(t *testing.T) {
	t.Parallel()
	f, id := newFront(t), jig.NewSessionID()
	require.NoError(t, f.began(t, id, f.start(t, id, time.Now()), time.Now()))
	got := f.stored(t, id)
	require.Equal(t, jig.Principal{ID: "ana", Groups: []string{"support"}, Permissions: []string{guardedTool}, Proof: jig.ProofVouched}, got.Principal)
	require.Equal(t, jig.SourceAPI, got.Source)
}

// A start is judged at the time at which Temporal recorded it. It may wait an hour for a worker, but not be sent an hour later.
func TestStart_MayWaitForAWorker(t *testing.T) {
	t.Parallel()
	f, id, before := newFront(t), jig.NewSessionID(), time.Now().Add(-time.Hour)
	s := f.start(t, id, before)
	require.ErrorContains(t, f.began(t, id, s, time.Now()), "older than 5 minutes")
	require.NoError(t, f.began(t, id, s, before.Add(time.Minute)))
}

// In a tenant that demands a server's word, a raw start is refused, and the audit says so. So is a statement about anything else.
func TestStart_RefusesWhatNoServerVouchesFor(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	for why, change := range map[string]func(s *protocol.StartSession, id string){
		"only requests that come through its server": func(s *protocol.StartSession, _ string) { s.Proof = "" },
		"another content": func(s *protocol.StartSession, _ string) { s.Task = "send me the money" },
		"another session": func(s *protocol.StartSession, _ string) { *s = f.start(t, jig.NewSessionID(), time.Now()) },
		"another principal": func(s *protocol.StartSession, id string) {
			s.Principal.ID = "fay"
			s.Proof = f.state(t, protocol.Statement{Kind: protocol.StateStart, Session: id, Content: digestOf(*s), Source: s.Source}, time.Now())
		},
		"another source":      func(s *protocol.StartSession, _ string) { s.Source = jig.SourceCLI },
		"another tenant":      func(s *protocol.StartSession, id string) { f.restateFor(t, s, id, "other") },
		"something else":      func(s *protocol.StartSession, _ string) { s.Source = jig.SourceSchedule },
		"did not sign it":     func(s *protocol.StartSession, _ string) { s.Proof = s.Proof[:len(s.Proof)-4] + "AAAA" },
		"its server's key is": func(s *protocol.StartSession, _ string) { s.Proof = "nothing" },
	} {
		id := jig.NewSessionID()
		s := f.start(t, id, time.Now())
		change(&s, id)
		err := f.began(t, id, s, time.Now())
		require.Equal(t, jig.CodeNotPermitted, failed(t, err), why)
		require.ErrorContains(t, err, why)
		require.Len(t, f.audits(t, id), 1, why)
		require.Contains(t, f.audits(t, id)[0], why)
		_, err = f.db.Session(t.Context(), f.tenant, id)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), why)
	}
}

// restateFor signs a start again, for a tenant.
func (f *front) restateFor(t *testing.T, s *protocol.StartSession, session, tenant string) {
	t.Helper()
	s.Proof = f.state(t, protocol.Statement{Kind: protocol.StateStart, Tenant: tenant, Session: session, Content: digestOf(*s), Source: s.Source}, time.Now())
}

// A tenant that demands nothing accepts a raw start, whose principal is a claim.
func TestStart_WithoutAStatementIsAClaim(t *testing.T) {
	t.Parallel()
	f, id := newFront(t), jig.NewSessionID()
	f.settings.Starts = jig.ProofClaimed
	s := f.start(t, id, time.Now())
	s.Proof = ""
	require.NoError(t, f.began(t, id, s, time.Now()))
	got := f.stored(t, id)
	require.Equal(t, jig.Principal{ID: "ana", Permissions: []string{"*"}, Claimed: true, Proof: jig.ProofClaimed}, got.Principal)
	require.Equal(t, jig.SourceTemporal, got.Source)
	id = jig.NewSessionID()
	s.Proof = "made up"
	require.Error(t, f.began(t, id, s, time.Now()), "a statement that is sent must count")
}

// A single call is judged like a session.
func TestCall_TheServerVouchesForThePrincipal(t *testing.T) {
	t.Parallel()
	f, id := newFront(t), jig.NewSessionID()
	in := activities.OpenCallInput{
		SessionRef: protocol.SessionRef{Tenant: f.tenant, SessionID: id},
		Call: protocol.CallInput{
			Tool: guardedTool, Input: json.RawMessage(small),
			Principal: jig.Principal{ID: "ana", Permissions: []string{"*"}}, Source: jig.SourceAPI,
		},
		Began: time.Now(),
	}
	_, err := f.OpenCall(t.Context(), in)
	require.Equal(t, jig.CodeNotPermitted, failed(t, err))
	require.Len(t, f.audits(t, id), 1)
	digest := jig.SessionRequest{Tool: in.Call.Tool, Input: in.Call.Input, Principal: "ana"}.Digest()
	in.Call.Proof = f.state(t, protocol.Statement{Kind: protocol.StateStart, Session: id, Content: digest, Source: in.Call.Source}, time.Now())
	stolen := in
	stolen.Call.Input = json.RawMessage(`{"order":"mine","amount":10000}`)
	_, err = f.OpenCall(t.Context(), stolen)
	require.ErrorContains(t, err, "another content")
	_, err = f.OpenCall(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, jig.ProofVouched, f.stored(t, id).Principal.Proof)
}

// Each firing of a schedule is checked against the mandate, which lasts.
func TestSchedule_CarriesAMandate(t *testing.T) {
	t.Parallel()
	f, base := newFront(t), "ses_nightly"
	s := f.start(t, base, time.Now())
	s.Source = jig.SourceSchedule
	s.Proof = f.state(t, protocol.Statement{Kind: protocol.StateSchedule, Session: base, Content: digestOf(s), Source: s.Source}, time.Now().Add(-30*time.Minute))
	for _, planned := range []time.Time{time.Now().Add(-time.Hour), time.Now()} {
		id := base + "-" + planned.UTC().Format(time.RFC3339)
		require.NoError(t, f.began(t, id, s, time.Now()))
		require.Equal(t, jig.ProofVouched, f.stored(t, id).Principal.Proof)
		require.Equal(t, jig.SourceSchedule, f.stored(t, id).Source)
	}
	for _, id := range []string{"ses_other-" + time.Now().UTC().Format(time.RFC3339), base + "-" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339), base + "-7"} {
		require.ErrorContains(t, f.began(t, id, s, time.Now()), "another session")
	}
	s.Task = "something else"
	require.ErrorContains(t, f.began(t, base+"-"+time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), s, time.Now()), "another content")
}

// A child session has its parent's proof because the parent's call started exactly it.
func TestChild_InheritsTheProofOfItsParent(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	f.session = jig.NewSessionID()
	require.NoError(t, f.began(t, f.session, f.start(t, f.session, time.Now()), time.Now()))
	child := f.delegates(t, 1, `{"agent":"nightly","task":"count"}`)
	other := child.Start
	other.Task = "send me the money"
	require.ErrorContains(t, f.began(t, child.SessionID, other, time.Now()), "starts another session")
	require.NoError(t, f.began(t, child.SessionID, child.Start, time.Now()))
	require.Equal(t, f.stored(t, f.session).Principal, f.stored(t, child.SessionID).Principal)
}

// A call that another call starts has the proof of that one's session, and does what that call asked for.
func TestChildCall_DoesWhatItsParentAsked(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	f.session = jig.NewSessionID()
	require.NoError(t, f.began(t, f.session, f.start(t, f.session, time.Now()), time.Now()))
	child := f.delegates(t, 1, `{"agent":"nightly"}`)
	in := activities.OpenCallInput{
		SessionRef: protocol.SessionRef{Tenant: f.tenant, SessionID: child.SessionID},
		Call:       protocol.CallInput{Tool: ordersTool, Input: json.RawMessage(small), Parent: f.session, ParentCall: "1.1"},
		Began:      time.Now(),
	}
	require.NoError(t, f.db.NameChild(t.Context(), f.tenant, f.session, "1.1", child.SessionID, jig.SessionRequest{Tool: in.Call.Tool, Input: in.Call.Input}.Digest()))
	for _, change := range []func(*activities.OpenCallInput){
		func(in *activities.OpenCallInput) { in.Call.Tool = purgeTool }, func(in *activities.OpenCallInput) { in.Call.Input = json.RawMessage(`{"order":"b","amount":1}`) },
	} {
		other := in
		change(&other)
		_, err := f.OpenCall(t.Context(), other)
		require.ErrorContains(t, err, "makes another call")
	}
	_, err := f.OpenCall(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, jig.ProofVouched, f.stored(t, child.SessionID).Principal.Proof)
}

// A call that has ended starts no session any more. A session that it started before may still be opened, and may be opened again.
func TestChild_StartsWhileItsCallRuns(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	f.session = jig.NewSessionID()
	require.NoError(t, f.began(t, f.session, f.start(t, f.session, time.Now()), time.Now()))
	ends := func(pass int, opened bool) activities.Child {
		t.Helper()
		child := f.delegates(t, pass, fmt.Sprintf(`{"agent":"nightly","task":"%d"}`, pass))
		if opened {
			require.NoError(t, f.began(t, child.SessionID, child.Start, time.Now()))
		}
		_, err := f.EndChild(t.Context(), activities.EndChildInput{
			RunInput: activities.RunInput{SessionRef: f.ref(), Call: child.Start.ParentCall}, Error: jig.Errorf(jig.CodeCanceled, "it was canceled"),
		})
		if opened {
			_, err = f.db.EndPass(t.Context(), ledger.End{Tenant: f.tenant, SessionID: child.SessionID, Pass: 1, Status: jig.StatusCompleted})
		}
		require.NoError(t, err)
		return child
	}
	opened := ends(1, true)
	require.NoError(t, f.began(t, opened.SessionID, opened.Start, time.Now()), "after a reset")
	late := ends(2, false)
	require.Equal(t, jig.CallCanceled, f.call(t, "2.1").Status)
	require.ErrorContains(t, f.began(t, late.SessionID, late.Start, time.Now()), "is canceled, so it starts no session")

	child := f.delegates(t, 3, `{"agent":"nightly"}`)
	in := activities.OpenCallInput{
		SessionRef: protocol.SessionRef{Tenant: f.tenant, SessionID: child.SessionID},
		Call:       protocol.CallInput{Tool: ordersTool, Input: json.RawMessage(small), Parent: f.session, ParentCall: "3.1"},
		Began:      time.Now(),
	}
	require.NoError(t, f.db.NameChild(t.Context(), f.tenant, f.session, "3.1", child.SessionID, jig.SessionRequest{Tool: in.Call.Tool, Input: in.Call.Input}.Digest()))
	_, err := f.EndChild(t.Context(), activities.EndChildInput{
		RunInput: activities.RunInput{SessionRef: f.ref(), Call: "3.1"}, Error: jig.Errorf(jig.CodeCanceled, "it was canceled"),
	})
	require.NoError(t, err)
	in.Began = time.Now().Add(10 * time.Minute)
	_, err = f.OpenCall(t.Context(), in)
	require.ErrorContains(t, err, "so it starts no session")
	in.Began = time.Now().Add(-time.Second)
	_, err = f.OpenCall(t.Context(), in)
	require.NoError(t, err, "it was started before the call ended")
}

// If a call starts an agent, nobody can open its child session as that of a single call, even before the agent has opened it.
func TestChildCall_NeedsACallThatNamesIt(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	f.session = jig.NewSessionID()
	require.NoError(t, f.began(t, f.session, f.start(t, f.session, time.Now()), time.Now()))
	child := f.delegates(t, 1, `{"agent":"nightly"}`)
	_, err := f.OpenCall(t.Context(), activities.OpenCallInput{
		SessionRef: protocol.SessionRef{Tenant: f.tenant, SessionID: child.SessionID},
		Call:       protocol.CallInput{Tool: ordersTool, Input: json.RawMessage(small), Parent: f.session, ParentCall: "1.1"},
		Began:      time.Now(),
	})
	require.ErrorContains(t, err, "makes another call")
	require.NoError(t, f.began(t, child.SessionID, child.Start, time.Now()))
}

// A decision that the server sends counts as vouched for: enough where the tenant asks for that, too little where it asks for a key.
func TestDecide_TheServersWordIsAProof(t *testing.T) {
	t.Parallel()
	f := newFront(t, func(o *office) { o.settings.Proof = jig.ProofVouched })
	f.govern(t, "  - {name: alone, when: 'true', verdict: ask, not_requester: false}\n")
	c := f.asks(t, 1, refundTool, small)
	payload := protocol.Decisions{Decisions: []jig.Decision{{Call: c.ID, Answer: jig.AnswerApprove, Digest: f.pending(t, c.ID).Digest}}}
	require.Contains(t, f.hear(t, "decide", payload).Reason, "come through its server or are signed")
	payload.Proof = f.state(t, protocol.Statement{Kind: protocol.StateDecide, Session: f.session, Content: payload.Content()}, time.Now())
	changed := payload
	changed.Decisions = []jig.Decision{{Call: c.ID, Answer: jig.AnswerDeny}}
	require.Contains(t, f.hear(t, "decide", changed).Reason, "another content")
	f.settings.Proof = jig.ProofKey
	require.Contains(t, f.hear(t, "decide", payload).Reason, "only signed decisions")
	f.settings.Proof = jig.ProofVouched
	require.Equal(t, jig.CallReserved, f.hear(t, "decide", payload).Status)
	by, proof, err := f.db.Approved(t.Context(), f.tenant, f.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"ana"}, by)
	require.Equal(t, jig.ProofVouched, proof)
	require.Equal(t, jig.CallSucceeded, f.runs(t, c.ID))

	f.settings.Proof = jig.ProofKey
	c = f.asks(t, 2, refundTool, `{"order":"b","amount":10}`)
	f.settings.Proof = jig.ProofVouched
	payload = protocol.Decisions{Decisions: []jig.Decision{{Call: c.ID, Answer: jig.AnswerApprove}}}
	payload.Proof = f.state(t, protocol.Statement{Kind: protocol.StateDecide, Session: f.session, Content: payload.Content()}, time.Now())
	require.Equal(t, jig.CallReserved, f.hear(t, "decide", payload).Status)
	f.settings.Proof = jig.ProofKey
	require.Equal(t, jig.CallWaiting, f.runs(t, c.ID), "the tenant demands more since the decision")
}

// A portal's key proves that the portal vouches, except in tenants that still say signed.
func TestDecide_APortalsKeyProvesLess(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *office) { o.settings.Proof = jig.ProofKey })
	portal := o.signers["ana"]
	o.settings.Keys = append(o.settings.Keys, portal.Key())
	o.settings.Keys[len(o.settings.Keys)-1].Principal = ""
	for i, k := range o.settings.Keys {
		if k.Principal == "ana" {
			o.settings.Keys = append(o.settings.Keys[:i], o.settings.Keys[i+1:]...)
			break
		}
	}
	o.govern(t, "  - {name: alone, when: 'true', verdict: ask, not_requester: false}\n")
	c := o.asks(t, 1, refundTool, small)
	d := o.vouched(t, "ana", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	require.Contains(t, o.hear(t, "decide", d).Reason, "a key that belongs to one person")
	o.settings.Proof, o.settings.SharedKeys = jig.ProofKey, true
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", d).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// The activities that clients start directly answer only with a statement about exactly this request.
func TestAnswering_NeedsTheServersWord(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	status := activities.Answered(f.Activities, string(protocol.ReadStatus), f.Status)
	request := protocol.StatusRequest{Tenant: f.tenant, SessionID: f.session}
	_, err := status(t.Context(), request, "")
	require.Equal(t, jig.CodeNotPermitted, failed(t, err))
	proof := f.state(t, protocol.Statement{Kind: protocol.StateRead, Content: protocol.ContentOf(string(protocol.ReadStatus), request)}, time.Now())
	view, err := status(t.Context(), request, proof)
	require.NoError(t, err)
	require.Equal(t, f.session, view.SessionID)
	other := request
	other.SessionID = jig.NewSessionID()
	_, err = status(t.Context(), other, proof)
	require.ErrorContains(t, err, "another content")
	_, err = activities.Answered(f.Activities, string(protocol.ReadCall), f.Show)(t.Context(), protocol.ShowRequest{Tenant: f.tenant, SessionID: f.session}, proof)
	require.ErrorContains(t, err, "another content")
	old := f.state(t, protocol.Statement{Kind: protocol.StateRead, Content: protocol.ContentOf(string(protocol.ReadStatus), request)}, time.Now().Add(-10*time.Minute))
	_, err = status(t.Context(), request, old)
	require.ErrorContains(t, err, "older than 5 minutes")
	upload := activities.Answered(f.Activities, string(protocol.WriteArtifact), func(ctx context.Context, request protocol.UploadRequest) (protocol.Nothing, error) {
		return protocol.Nothing{}, f.Upload(ctx, request)
	})
	_, err = upload(t.Context(), protocol.UploadRequest{Tenant: f.tenant, ID: jig.NewArtifactID()}, "")
	require.Equal(t, jig.CodeNotPermitted, failed(t, err))
	f.settings.Starts = jig.ProofClaimed
	_, err = status(t.Context(), request, "")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(proof, "ey"))
}

// Pausing takes the server's word, too.
func TestPause_TheServersWordIsAProof(t *testing.T) {
	t.Parallel()
	f := newFront(t, func(o *office) { o.settings.Proof = jig.ProofVouched })
	pause := activities.Answered(f.Activities, string(protocol.WritePause), f.Pause)
	request := protocol.PauseRequest{Tenant: f.tenant, Scope: jig.PauseTenant, By: "ana"}
	f.settings.Starts = jig.ProofClaimed
	_, err := pause(t.Context(), request, "")
	require.ErrorContains(t, err, "only signed requests")
	got, err := pause(t.Context(), request, f.state(t, protocol.Statement{Kind: protocol.StateRead, Content: protocol.ContentOf(string(protocol.WritePause), request)}, time.Now()))
	require.NoError(t, err)
	require.Equal(t, "ana", got.Pauses[0].By)
	require.False(t, got.Pauses[0].Claimed)
}
