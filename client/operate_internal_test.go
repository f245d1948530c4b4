package client

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// stamp is a voucher whose statements are only what they are about.
type stamp struct{}

func (stamp) Vouch(_ context.Context, s protocol.Statement) (string, error) {
	return string(s.Kind) + " " + s.Session + " " + s.Content, nil
}

func TestReply_IsSent(t *testing.T) {
	t.Parallel()
	said := jig.Reply{Call: "3.1", Value: json.RawMessage(`{"days":3}`), By: "ana", Token: "t"}
	want := protocol.DecideResult{SessionID: "ses_a", Decisions: []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionAccepted, Status: jig.CallSucceeded}}}
	ids := map[string]int{}
	f := &fake{describe: running, update: func(o sdk.UpdateWorkflowOptions) (any, error) {
		require.Equal(t, protocol.UpdateAnswer, o.UpdateName)
		require.Equal(t, "ses_a", o.WorkflowID)
		sent := as[protocol.Answered](t, o.Args[0])
		require.Equal(t, protocol.Answered{Reply: said, Proof: "decide ses_a " + sent.Content()}, sent)
		ids[o.UpdateID]++
		if ids[o.UpdateID] == 1 {
			return nil, exhausted()
		}
		return want, nil
	}}
	c := newTestClient(f)
	c.voucher = stamp{}
	got, err := c.Reply(t.Context(), "default", "ses_a", said)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, ids, 1, "one answer is one update, however often it is sent")

	_, err = newTestClient(f).Reply(t.Context(), "default", "ses_a", jig.Reply{Call: "3.1"})
	require.Equal(t, jig.CodeMissingParam, jig.CodeOf(err))
	_, err = newTestClient(f).Reply(t.Context(), "default", "not a session", said)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}

func TestGrants_ReadsAllPages(t *testing.T) {
	t.Parallel()
	var asked []protocol.GrantsRequest
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadGrants), name)
		r := as[protocol.GrantsRequest](t, request)
		asked = append(asked, r)
		if r.Cursor == "" {
			return protocol.GrantsPage{Grants: []jig.Grant{{ID: "grt_2"}}, Next: "after grt_2"}, nil
		}
		return protocol.GrantsPage{Grants: []jig.Grant{{ID: "grt_1"}}}, nil
	}}
	list, err := newTestClient(f).Grants(t.Context(), "acme", true)
	require.NoError(t, err)
	require.Equal(t, []jig.Grant{{ID: "grt_2"}, {ID: "grt_1"}}, list)
	require.Equal(t, []protocol.GrantsRequest{{Tenant: "acme", All: true}, {Tenant: "acme", All: true, Cursor: "after grt_2"}}, asked)

	f.activity = func(sdk.StartActivityOptions, string, any) (any, error) { return protocol.GrantsPage{}, nil }
	list, err = newTestClient(f).Grants(t.Context(), "acme", false)
	require.NoError(t, err)
	require.Equal(t, []jig.Grant{}, list)
}

func TestRevokeGrant_CallsTheTool(t *testing.T) {
	t.Parallel()
	request := protocol.GrantsRequest{Tenant: "acme", Revoke: "grt_1", By: "ana", Token: "t"}
	answer, times := protocol.GrantsPage{Grants: []jig.Grant{{ID: "grt_1", RevokedBy: "ben"}}}, 0
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, got any) (any, error) {
		require.Equal(t, string(protocol.ReadGrants), name)
		require.Equal(t, request, got)
		times++
		if times == 1 {
			return nil, exhausted()
		}
		return answer, nil
	}}
	g, err := newTestClient(f).RevokeGrant(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "ben", g.RevokedBy, "who was the first")
	require.Equal(t, 2, times)

	answer.Grants[0].ID = "grt_other"
	_, err = newTestClient(f).RevokeGrant(t.Context(), request)
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
	_, err = newTestClient(f).RevokeGrant(t.Context(), protocol.GrantsRequest{Tenant: "acme"})
	require.Equal(t, jig.CodeMissingParam, jig.CodeOf(err), "without an id, the request would list grants")

	f.activity = func(sdk.StartActivityOptions, string, any) (any, error) {
		return nil, applicationError(jig.CodeNotFound, "there is no grant grt_1")
	}
	_, err = newTestClient(f).RevokeGrant(t.Context(), request)
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
}

func TestPauses_AreSetAndLifted(t *testing.T) {
	t.Parallel()
	request := protocol.PauseRequest{Tenant: "acme", Scope: jig.PauseTool, Target: "file.write", By: "ana", Reason: "look first", Token: "t"}
	want := protocol.PauseResult{Changed: true, Pauses: []jig.Pause{{Scope: jig.PauseTool, Target: "file.write", By: "ana"}}}
	var name string
	var sent any
	f := &fake{activity: func(_ sdk.StartActivityOptions, kind string, got any) (any, error) {
		name, sent = kind, got
		return want, nil
	}}
	c := newTestClient(f)
	got, err := c.Pause(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, string(protocol.WritePause), name)
	require.Equal(t, request, sent)

	_, err = c.Resume(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, string(protocol.WriteResume), name)
	require.Equal(t, request, sent)

	got, err = c.Pauses(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, protocol.PauseResult{Pauses: want.Pauses}, got)
	require.Equal(t, string(protocol.ReadPauses), name)
	require.Equal(t, protocol.PausesRequest{Tenant: "acme"}, sent)

	begun := 0
	f.looks = []error{exhausted(), exhausted()}
	f.activity = func(sdk.StartActivityOptions, string, any) (any, error) {
		begun++
		return want, nil
	}
	got, err = c.Pause(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 1, begun, "a started activity is not started again: its token counts only once")

	f.activity = func(sdk.StartActivityOptions, string, any) (any, error) {
		return nil, applicationError(jig.CodeNotPermitted, "this tenant accepts only signed requests")
	}
	_, err = c.Pause(t.Context(), request)
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
}
