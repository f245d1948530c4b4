package approval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// edits returns a decision that changes the input, under the given terms of the changed call.
func edits(who jig.Principal, terms *jig.Terms) approval.DecisionRequest {
	r := decides(who, jig.Decision{Input: []byte(`{"path":"b"}`)})
	r.Edited = &jig.Call{
		ID: "1.1", Tool: "file.write", Input: []byte(`{"path":"b"}`), Digest: "d2", PolicyVersion: "p2", Verdict: jig.VerdictAsk,
		Status: jig.CallWaiting,
	}
	r.EditedFrom = "d1"
	r.Patch = []byte(`[{"op":"replace","path":"/path","value":"b"}]`)
	r.Fresh = &jig.Pending{
		Kind: jig.PendingApproval, Tool: "file.write", Digest: "d2", Terms: terms, RequestedAt: r.Now, ExpiresAt: r.Now.Add(time.Hour),
		RequestedBy: "somebody else",
	}
	return r
}

func TestDecide_EditIsTheEditorsApproval(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before, after *jig.Terms
	}{
		"the default terms":   {nil, nil},
		"the same terms":      {byFinance(1), byFinance(1)},
		"lowered to one":      {byFinance(2), byFinance(1)},
		"lowered to anybody":  {byFinance(2), nil},
		"raised, met by one":  {nil, byFinance(1)},
		"delegated to editor": {byFinance(1), byFinance(1)},
	} {
		who := fay()
		s := waiting(row.before)
		if name == "delegated to editor" {
			who = eve()
			s.Open.Delegations = []jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}}
		}
		r := edits(who, row.after)
		got := decide(t, s, r)
		require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved}, got.Ruled, name)
		require.Equal(t, who.ID, got.Call.Edited.EditedBy)
		require.Equal(t, jig.CallReserved, got.Call.Edited.Status)
		require.Equal(t, jig.CallWaiting, r.Edited.Status, "the request is not changed")
		o := got.Outcome
		require.Equal(t, []any{approval.Approved, "approve", "d2", true, row.after}, []any{o.Status, o.Answer, o.Digest, o.NewTerms, o.Terms})
		require.Equal(t, []string{`{"path":"a"}`, `{"path":"b"}`, string(r.Patch)}, []string{string(o.Before), string(o.After), string(o.Patch)})
		require.Len(t, o.Votes, 1)
		require.Equal(t, who.ID, o.Votes[0].By)
		require.Equal(t, []string{"event tool.approved", "notice approval.decided", "audit edited " + who.ID}, told(got))
		edited, ok := got.Events[0].Data["edited"].(approval.Details)
		require.True(t, ok)
		require.Equal(t, "d2", edited["digest"])
		require.Equal(t, "d1", got.Events[0].Data["digest"])
		require.Equal(t, []string{"d1", "d2", "p2"}, []string{got.Audit[0].Digest, got.Audit[0].ApprovedDigest, got.Audit[0].PolicyVersion})
		require.Nil(t, got.Opens)
	}
}

// Nobody has seen what the changed call would change when its editor alone approves it, so the editor is asked again. If others decide too, they
// see it, and the editor's vote counts.
func TestDecide_EditOfASoleEditorAsksAgain(t *testing.T) {
	t.Parallel()
	shown := &jig.Preview{Title: "Pays 100"}
	for name, row := range map[string]struct {
		terms   *jig.Terms
		preview *jig.Preview
		grant   *jig.Grant
		status  jig.CallStatus
		votes   int
	}{
		"a preview":                         {nil, shown, nil, jig.CallWaiting, 0},
		"a preview, one of finance":         {byFinance(1), shown, nil, jig.CallWaiting, 0},
		"a preview, two of finance":         {byFinance(2), shown, nil, jig.CallWaiting, 1},
		"no preview":                        {nil, nil, nil, jig.CallReserved, 1},
		"a preview that failed":             {nil, &jig.Preview{Missing: "the shop is closed"}, nil, jig.CallReserved, 1},
		"a grant, whose calls show nothing": {nil, shown, &jig.Grant{ID: "grt_1"}, jig.CallReserved, 1},
	} {
		r := edits(fay(), row.terms)
		r.Fresh.Preview, r.Grant = row.preview, row.grant
		got := decide(t, waiting(row.terms), r)
		require.Equal(t, jig.DecisionAccepted, got.Ruled.Outcome, "%s: %s", name, got.Ruled.Reason)
		require.Equal(t, row.status, got.Ruled.Status, name)
		if row.status == jig.CallWaiting {
			require.Len(t, got.Opens.Votes, row.votes, name)
			require.Equal(t, row.preview, got.Opens.Preview, name)
		} else {
			require.Len(t, got.Outcome.Votes, row.votes, name)
		}
	}
}

func TestDecide_EditIsKeptAsData(t *testing.T) {
	t.Parallel()
	earlier := jig.Edit{By: "eve", Patch: []byte(`[{"op":"add","path":"/x","value":1}]`)}
	for name, row := range map[string]struct {
		patch string
		cut   bool
	}{
		"small": {`[{"op":"replace","path":"/path","value":"b"}]`, false},
		"large": {`[{"op":"replace","path":"/path","value":"` + strings.Repeat("b", jig.ExcerptBytes) + `"}]`, true},
	} {
		s := waiting(byFinance(2))
		s.Open.Edits = []jig.Edit{earlier}
		r := edits(fay(), byFinance(2))
		r.Patch, r.Decision.Note = []byte(row.patch), "why"
		opened := decide(t, s, r).Opens
		want := jig.Edit{By: "fay", At: r.Now, Note: "why", Patch: r.Patch}
		if row.cut {
			want.Patch, want.Truncated = nil, true
		}
		require.Equal(t, []jig.Edit{earlier, want}, opened.Edits, name)
	}
}

func TestDecide_EditThatNeedsMoreOpensAnotherApproval(t *testing.T) {
	t.Parallel()
	leads := &jig.Terms{Requirements: []jig.Requirement{{Approvers: lead(), Quorum: 1}}}
	for name, row := range map[string]struct {
		before, after *jig.Terms
		who           jig.Principal
		votes         int
		missing       string
	}{
		"the editor is among them":        {nil, byFinance(2), fay(), 1, "1 of 2 approvals by group finance, 1 missing"},
		"the editor is not among them":    {nil, leads, fay(), 0, "0 of 1 approvals by permission lead, 1 missing"},
		"the editor asked for it":         {nil, &jig.Terms{NotRequester: true}, jig.Principal{ID: "ana"}, 0, "0 of 1 approvals by anybody, 1 missing"},
		"earlier votes do not carry over": {byFinance(2), byFinance(2), fay(), 1, "1 of 2 approvals by group finance, 1 missing"},
		"the requester may not approve":   {&jig.Terms{NotRequester: true}, &jig.Terms{NotRequester: true}, fay(), 1, "fay changed the input, so somebody else must approve it"},
		"nor may, of two, the requester":  {nil, &jig.Terms{NotRequester: true, Requirements: byFinance(2).Requirements}, fay(), 1, "1 of 2 approvals by group finance, 1 missing"},
		"nor under other terms":           {byFinance(2), leads, fay(), 0, "0 of 1 approvals by permission lead, 1 missing"},
	} {
		s := waiting(row.before)
		if row.before != nil {
			s.Open.Votes = []jig.Vote{{By: "flo", Counts: []int{0}}}
		}
		r := edits(row.who, row.after)
		got := decide(t, s, r)
		require.Equal(t, jig.CallWaiting, got.Ruled.Status, name)
		require.Equal(t, "the changed input needs another approval: "+row.missing, got.Ruled.Reason)
		require.Equal(t, jig.CallWaiting, got.Call.Edited.Status)
		require.Equal(t, []any{approval.Canceled, "", "", "replaced: its input was changed"},
			[]any{got.Outcome.Status, got.Outcome.Answer, got.Outcome.Digest, got.Outcome.Reason})
		require.Nil(t, got.Outcome.Votes)
		require.Equal(t, []string{"acme", "ses_1", "1.1", "ana", "d2"},
			[]string{got.Opens.Tenant, got.Opens.SessionID, got.Opens.Call, got.Opens.RequestedBy, got.Opens.Digest})
		require.Len(t, got.Opens.Votes, row.votes, name)
		require.Equal(t, []string{"event tool.edited", "event tool.needs_approval", "notice approval.requested", "audit edited " + row.who.ID}, told(got))
		require.Equal(t, row.missing, got.Events[0].Data["missing"])
		if row.before != nil && row.after != leads {
			require.Equal(t, s.Open.ExpiresAt, got.Opens.ExpiresAt, "a change does not extend the wait")
		} else {
			require.Equal(t, r.Fresh.ExpiresAt, got.Opens.ExpiresAt, "other terms need a new approval")
		}
	}
}

// Where the requester may not approve, nobody approves alone what they wrote themselves.
func TestDecide_TheEditorIsNotTheOnlyApprover(t *testing.T) {
	t.Parallel()
	excluded := byFinance(1)
	excluded.NotRequester = true
	s := waiting(excluded)
	s.Call.EditedBy, s.Open.Askers = "fay", approval.WithEditor(nil, fay())
	alone := decide(t, s, decides(fay(), jig.Decision{}))
	require.Equal(t, []any{jig.CallWaiting, "fay changed the input, so somebody else must approve it"}, []any{alone.Ruled.Status, alone.Ruled.Reason})
	require.Equal(t, jig.CallReserved, decide(t, s, decides(jig.Principal{ID: "flo", Groups: []string{"finance"}}, jig.Decision{})).Ruled.Status)
	same := edits(fay(), excluded)
	same.Edited.Input = s.Call.Input
	require.Equal(t, jig.CallWaiting, decide(t, s, same).Ruled.Status, "nor by sending the same input again")
	s.Call.EditedBy, s.Open.Askers = "", nil
	got := decide(t, s, same)
	require.Equal(t, jig.CallReserved, got.Ruled.Status, "the input is the requested one")
	require.Empty(t, got.Call.Edited.EditedBy)
	both := byFinance(2)
	both.NotRequester = true
	s = waiting(both)
	s.Call.EditedBy, s.Open.Askers, s.Open.Votes = "fay", approval.WithEditor(nil, fay()), []jig.Vote{{By: "flo", Counts: []int{0}}}
	require.Equal(t, jig.CallReserved, decide(t, s, decides(fay(), jig.Decision{})).Ruled.Status, "of two, the editor is one")
	s = waiting(byFinance(1))
	s.Call.EditedBy, s.Open.Askers = "fay", approval.WithEditor(nil, fay())
	require.Equal(t, jig.CallReserved, decide(t, s, decides(fay(), jig.Decision{})).Ruled.Status, "the requester may approve")
}

func TestDecide_EditThatNeedsMoreTakesNoGrant(t *testing.T) {
	t.Parallel()
	s, r := waiting(nil), edits(fay(), byFinance(2))
	r.Grant = &jig.Grant{ID: "grt_1"}
	requireRefused(t, decide(t, s, r), s, "a grant cannot come with a change that needs another approval: 1 of 2 approvals by group finance, 1 missing")
}

func TestDecide_EditOfInputThatChangedMeanwhileIsAConflict(t *testing.T) {
	t.Parallel()
	r := edits(fay(), nil)
	r.EditedFrom = "d0"
	_, err := approval.Decide(waiting(nil), r)
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))
	require.Equal(t, approval.ReasonInputChanged, jig.AsError(err).Reason)
}
