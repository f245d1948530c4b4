package ledger_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// ends returns the completion of an attempt of the call.
func ends(fence int, status jig.CallStatus) ledger.Completion {
	c := ledger.Completion{Fence: fence, Digest: "d1", Status: status, Result: jig.ToolResult{Success: true, Summary: "done"}}
	if status != jig.CallSucceeded {
		c.Result = jig.Failure(jig.Errorf(jig.CodeTimeout, "no answer in 5s"))
	}
	return c
}

func TestCompletion_Validate(t *testing.T) {
	t.Parallel()
	ends := []jig.CallStatus{jig.CallSucceeded, jig.CallFailed, jig.CallCanceled, jig.CallUnknown, jig.CallReserved}
	for _, status := range append(statuses(), "", "odd") {
		err := ledger.Completion{Status: status}.Validate()
		if slices.Contains(ends, status) {
			require.NoError(t, err, status)
		} else {
			require.Equal(t, jig.CodeInvalidInput, jig.AsError(err).Code, status)
		}
	}
}

func TestComplete_MatchesTheFence(t *testing.T) {
	t.Parallel()
	for _, status := range []jig.CallStatus{jig.CallSucceeded, jig.CallFailed, jig.CallCanceled, jig.CallUnknown, jig.CallReserved} {
		s := writing(jig.CallExecuting, 2)
		require.Zero(t, ledger.Complete(s, ends(1, status)), "an older attempt changes nothing")
		require.Equal(t, status, statusAfter(s, ledger.Complete(s, ends(2, status))))
		require.Zero(t, ledger.Complete(writing(jig.CallFailed, 2), ends(2, status)), "the first end counts")
		require.Zero(t, ledger.Complete(writing(jig.CallWaiting, 2), ends(2, status)))
	}
}

func TestComplete_EndsTheCall(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status jig.CallStatus
		write  bool
		event  string
		wrote  bool
	}{
		{jig.CallSucceeded, true, "event tool.completed", true},
		{jig.CallSucceeded, false, "event tool.completed", false},
		{jig.CallFailed, true, "event tool.failed", false},
		{jig.CallCanceled, true, "event tool.cancelled", false},
	} {
		s := writing(jig.CallExecuting, 2)
		s.Call.Write = row.write
		c := ends(2, row.status)
		got := ledger.Complete(s, c)
		require.Equal(t, &approval.CallChange{Status: row.status, Result: &c.Result, Wrote: row.wrote}, got.Call)
		require.Equal(t, []string{row.event}, told(got))
		require.Equal(t, 2, got.Events[0].Data["attempt"])
		require.False(t, got.Late)
	}
}

func TestComplete_StoresALargeResultAsAnArtifact(t *testing.T) {
	t.Parallel()
	s := writing(jig.CallExecuting, 1)
	s.ArtifactID = "art_1"
	c := ends(1, jig.CallSucceeded)
	require.Empty(t, ledger.Complete(s, c).Events[0].Data["result_artifact"], "a small result is in its row")
	c.Whole = []byte(`{"success":true}`)
	got := ledger.Complete(s, c)
	require.Equal(t, c.Whole, got.Call.Whole)
	require.Equal(t, "art_1", got.Events[0].Data["result_artifact"])
}

func TestComplete_AsksAPersonAboutAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	c := ends(1, jig.CallUnknown)
	requireUnknown(t, ledger.Complete(writing(jig.CallExecuting, 1), c), "took effect: no answer in 5s")
	c.Result.Error.Message = strings.Repeat("é", 5000)
	why := ledger.Complete(writing(jig.CallExecuting, 1), c).Opens.Reasons[0]
	require.Less(t, len(why), 600)
	c.Result.Error = nil
	require.True(t, strings.HasSuffix(ledger.Complete(writing(jig.CallExecuting, 1), c).Opens.Reasons[0], "took effect"))
}

func TestComplete_GivesBack(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ before, now, want bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		s := writing(jig.CallExecuting, 1)
		s.Call.InDoubt = row.before
		c := ends(1, jig.CallReserved)
		c.InDoubt = row.now
		got := ledger.Complete(s, c)
		require.Equal(t, &approval.CallChange{Status: jig.CallReserved, InDoubt: &row.want}, got.Call)
		require.Empty(t, told(got))
	}
}

func TestComplete_SettlesLate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status jig.CallStatus
		c      ledger.Completion
		change func(*ledger.Completion)
		want   jig.CallStatus
	}{
		"success":                  {jig.CallUnknown, ends(1, jig.CallSucceeded), nil, jig.CallSucceeded},
		"failure":                  {jig.CallUnknown, ends(1, jig.CallFailed), nil, jig.CallFailed},
		"canceled":                 {jig.CallUnknown, ends(1, jig.CallCanceled), nil, jig.CallCanceled},
		"nothing happened":         {jig.CallUnknown, ends(1, jig.CallReserved), nil, jig.CallFailed},
		"still unknown":            {jig.CallUnknown, ends(1, jig.CallUnknown), nil, ""},
		"still in doubt":           {jig.CallUnknown, ends(1, jig.CallReserved), func(c *ledger.Completion) { c.InDoubt = true }, ""},
		"an older attempt":         {jig.CallUnknown, ends(0, jig.CallSucceeded), nil, ""},
		"not_happened, success":    {jig.CallReserved, ends(1, jig.CallSucceeded), nil, jig.CallSucceeded},
		"not_happened, failure":    {jig.CallReserved, ends(1, jig.CallFailed), nil, ""},
		"not_happened, given back": {jig.CallReserved, ends(1, jig.CallReserved), nil, ""},
		"not_happened, changed":    {jig.CallReserved, ends(1, jig.CallSucceeded), func(c *ledger.Completion) { c.Digest = "d0" }, ""},
		"waits again":              {jig.CallWaiting, ends(1, jig.CallSucceeded), nil, ""},
		"a person said so":         {jig.CallSucceeded, ends(1, jig.CallFailed), nil, ""},
	} {
		if row.change != nil {
			row.change(&row.c)
		}
		got := ledger.Complete(writing(row.status, 1), row.c)
		if row.want == "" {
			require.Zero(t, got, name)
			continue
		}
		require.True(t, got.Late, name)
		require.Equal(t, row.want, got.Call.Status, name)
		require.Equal(t, row.want == jig.CallSucceeded, got.Call.Wrote, name)
	}
}

func TestComplete_WithdrawsTheQuestionsWhenItSettlesLate(t *testing.T) {
	t.Parallel()
	for status, outcome := range map[jig.CallStatus]string{jig.CallSucceeded: "happened", jig.CallFailed: "not_happened"} {
		s := writing(jig.CallUnknown, 1)
		s.Withdrawable = []*approval.Record{openApproval(), approvedBy("d1")}
		got := ledger.Complete(s, ends(1, status))
		require.Equal(t, "event tool.reconciled", told(got)[0])
		require.Equal(t, approval.Details{"outcome": outcome, "reason": ledger.WhyLate, "attempt": 1}, got.Events[0].Data)
		require.Len(t, got.Events, 2)
		require.Equal(t, []string{
			"notice approval.decided", "notice approval.decided", "audit withdrawn", "audit withdrawn",
		}, told(got)[2:])
		require.Equal(t, ledger.WhyLate, got.Audit[0].Reason)
		require.Equal(t, status, got.Audit[0].Status)
		require.Equal(t, status, got.Notices[0].Status)
		require.Equal(t, outcome, got.Notices[0].Reason)
	}
}

func TestEnded_IsTheEventOfTheStatus(t *testing.T) {
	t.Parallel()
	kind, data := ledger.Ended(ledger.Completion{
		Fence: 3, Status: jig.CallSucceeded, Result: jig.ToolResult{Success: true, Summary: "done", Data: json.RawMessage(`{"n":1}`)},
	}, "")
	require.Equal(t, jig.EventToolCompleted, kind)
	require.Equal(t, approval.Details{"summary": "done", "data": json.RawMessage(`{"n":1}`), "attempt": 3, "result_artifact": ""}, data)
}

func TestEvents_CarryTheProvidersID(t *testing.T) {
	t.Parallel()
	named := func(s *ledger.State) { s.Call.ProviderID = "toolu_1" }
	for name, got := range map[string]ledger.Transition{
		"begins":             ledger.Reserve(change(writing(jig.CallReserved, 0), named), request()),
		"ends":               ledger.Complete(change(writing(jig.CallExecuting, 1), named), ends(1, jig.CallSucceeded)),
		"ends late":          ledger.Complete(change(writing(jig.CallUnknown, 1), named), ends(1, jig.CallFailed)),
		"is canceled":        ledger.Cancel(change(writing(jig.CallExecuting, 1), named), "enough", false),
		"is refused":         ledger.Admit(jig.Call{ID: "1.1", ProviderID: "toolu_1", Verdict: jig.VerdictRefuse}, nil),
		"answered unstarted": ledger.Admit(jig.Call{ID: "1.1", ProviderID: "toolu_1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}, nil),
	} {
		require.NotEmpty(t, got.Events, name)
		for _, e := range got.Events {
			require.Equal(t, "toolu_1", e.Data["provider_id"], name)
		}
	}
}

func TestCancel_DependsOnTheEffect(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state    ledger.State
		composed bool
		want     jig.CallStatus
		event    string
		noEffect bool
	}{
		"waiting":               {writing(jig.CallWaiting, 0), false, jig.CallCanceled, "event tool.cancelled", true},
		"reserved":              {writing(jig.CallReserved, 1), false, jig.CallCanceled, "event tool.cancelled", true},
		"reserved read":         {change(writing(jig.CallReserved, 1), reads), false, jig.CallCanceled, "event tool.cancelled", false},
		"reserved, in doubt":    {change(writing(jig.CallReserved, 1), inDoubt), false, jig.CallFailed, "event tool.outcome_unknown", false},
		"executing":             {writing(jig.CallExecuting, 1), false, jig.CallFailed, "event tool.outcome_unknown", false},
		"executing read":        {change(writing(jig.CallExecuting, 1), reads), false, jig.CallCanceled, "event tool.cancelled", false},
		"executing, idempotent": {change(writing(jig.CallExecuting, 1), idempotent), false, jig.CallFailed, "event tool.outcome_unknown", false},
		"composition":           {change(writing(jig.CallExecuting, 1), idempotent), true, jig.CallCanceled, "event tool.cancelled", false},
		"unknown":               {writing(jig.CallUnknown, 1), false, jig.CallFailed, "event tool.failed", false},
	} {
		got := ledger.Cancel(row.state, "the session was canceled", row.composed)
		require.Equal(t, row.want, got.Call.Status, name)
		require.Equal(t, []string{row.event}, told(got), name)
		require.Equal(t, row.noEffect, got.Call.Result.Error.NotExecuted, name)
		code := jig.CodeCanceled
		if row.want == jig.CallFailed {
			code = jig.CodeOutcomeUnknown
		}
		require.Equal(t, code, got.Call.Result.Error.Code, name)
		require.Contains(t, got.Call.Result.Error.Message, ": the session was canceled", name)
	}
}
