package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
)

// writing returns a call of file.write that waits for an approval.
func writing() *approval.Call {
	return &approval.Call{
		ID: "1.1", Tool: "file.write", Pass: 1, Status: jig.CallWaiting, Input: []byte(`{"path":"a"}`), Digest: "d1", PolicyVersion: "p1",
		Write: true,
	}
}

// asked returns the open approval of that call: requested at noon by ana, for an hour, under the given terms.
func asked(terms *jig.Terms) *approval.Record {
	return &approval.Record{Status: approval.Open, Pending: jig.Pending{
		Tenant: "acme", SessionID: "ses_1", Kind: jig.PendingApproval, Call: "1.1", Tool: "file.write", Input: json.RawMessage(`{"path":"a"}`),
		Summary: "writes a file", Reasons: []string{"it writes"}, Digest: "d1", RequestedBy: "ana", RequestedAt: noonOf(),
		ExpiresAt: noonOf().Add(time.Hour), PolicyVersion: "p1", Terms: terms,
	}}
}

// waiting returns the state of a call that waits for an approval under the given terms; nil for the default terms.
func waiting(terms *jig.Terms) approval.State {
	return approval.State{Tenant: "acme", SessionID: "ses_1", Call: writing(), Open: asked(terms)}
}

// byFinance returns terms that need n people of the group finance.
func byFinance(n int) *jig.Terms {
	return &jig.Terms{Requirements: []jig.Requirement{{Rule: "p/money", Approvers: finance(), Quorum: n}}}
}

// flo is another approver of finance, and eve is nobody's approver.
func flo() jig.Principal { return jig.Principal{ID: "flo", Groups: []string{"finance"}} }
func eve() jig.Principal { return jig.Principal{ID: "eve"} }

// office returns the people of these tests as their tenant knows them.
func office() approval.Voters { return approval.Voters{People: []jig.Principal{fay(), flo(), leo()}} }

// proof is the evidence of the decisions in these tests.
func proof() *identity.Evidence { return &identity.Evidence{Key: "k1", Token: "t1"} }

// requireRefused checks that nothing changes, and that the event and the audit row say why.
func requireRefused(t *testing.T, got approval.Transition, s approval.State, why string) {
	t.Helper()
	require.True(t, got.Refused(), why)
	require.Contains(t, got.Ruled.Reason, why)
	require.Len(t, got.Events, 1)
	require.Equal(t, jig.EventDecisionRefused, got.Events[0].Type)
	require.Equal(t, got.Ruled.Reason, got.Events[0].Data["reason"])
	require.Equal(t, got.Ruled.Call, got.Events[0].Data["call"])
	require.Len(t, got.Audit, 1)
	require.Equal(t, audit.AuditRefused, got.Audit[0].Kind)
	require.Equal(t, got.Ruled.Reason, got.Audit[0].Reason)
	if s.Call == nil {
		require.Empty(t, got.Ruled.Status)
	} else {
		require.Equal(t, s.Call.Status, got.Ruled.Status)
		require.Equal(t, s.Call.Tool, got.Audit[0].Tool)
	}
	if s.Open != nil {
		require.Equal(t, s.Open.Digest, got.Audit[0].Digest)
	}
	got.Ruled, got.Events, got.Audit = jig.Ruled{}, nil, nil
	require.Zero(t, got, "a refusal changes nothing")
}

// told describes the events, notices and audit rows of a transition: "event tool.approved", "notice approval.decided",
// "audit approved fay".
func told(t approval.Transition) []string {
	var list []string
	for _, e := range t.Events {
		list = append(list, "event "+string(e.Type))
	}
	for _, n := range t.Notices {
		list = append(list, "notice "+string(n.Kind))
	}
	for _, e := range t.Audit {
		list = append(list, strings.TrimSpace("audit "+string(e.Kind)+" "+e.By))
	}
	return list
}
