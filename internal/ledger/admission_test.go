package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

func TestAdmit_RecordsTheDecision(t *testing.T) {
	t.Parallel()
	asked := &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Digest: "d1"}
	question := &jig.Pending{Kind: jig.PendingQuestion, Call: "1.1", Digest: "d1"}
	granted := &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Digest: "d1", Grant: "grt_1"}
	for name, row := range map[string]struct {
		verdict jig.Verdict
		status  jig.CallStatus
		asked   *jig.Pending
		want    jig.CallStatus
		code    jig.Code
		told    []string
	}{
		"run":       {jig.VerdictRun, "", nil, jig.CallReserved, "", nil},
		"ask":       {jig.VerdictAsk, "", asked, jig.CallWaiting, "", []string{"event tool.needs_approval", "notice approval.requested"}},
		"question":  {jig.VerdictAsk, "", question, jig.CallWaiting, "", []string{"event tool.asked", "notice approval.requested"}},
		"grant":     {jig.VerdictAsk, jig.CallReserved, granted, jig.CallReserved, "", []string{"event tool.approved"}},
		"held back": {jig.VerdictAsk, jig.CallReserved, nil, jig.CallReserved, "", nil},
		"deny":      {jig.VerdictDeny, "", nil, jig.CallDenied, jig.CodeDenied, []string{"event tool.denied"}},
		"refuse":    {jig.VerdictRefuse, "", nil, jig.CallFailed, jig.CodeInternal, []string{"event tool.failed"}},
		"duplicate": {jig.VerdictRun, jig.CallDuplicate, nil, jig.CallDuplicate, jig.CodeDuplicate, []string{"event tool.skipped_duplicate"}},
	} {
		c := jig.Call{ID: "1.1", Tool: "file.write", Verdict: row.verdict, Status: row.status, Reasons: []string{"it writes"}}
		got := ledger.Admit(c, row.asked)
		require.Equal(t, row.want, got.Call.Status, name)
		require.Equal(t, row.told, told(got), name)
		if row.code == "" {
			require.Nil(t, got.Call.Result, name)
			continue
		}
		require.Equal(t, row.code, got.Call.Result.Error.Code, name)
		require.Equal(t, []string{"it writes"}, got.Events[0].Data["reasons"], name)
	}
	answered := jig.ToolResult{Success: true, Summary: "nothing was done"}
	got := ledger.Admit(jig.Call{Verdict: jig.VerdictRun, Status: jig.CallSucceeded, Result: &answered}, nil)
	require.Equal(t, &answered, got.Call.Result)
	require.Equal(t, []string{"event tool.completed"}, told(got), "answered without running the tool")
}

// fresh returns an admission of the call with a new version of its tool, and the approval that it needs.
func fresh(verdict jig.Verdict) (jig.Call, *jig.Pending) {
	c := jig.Call{
		ID: "1.1", Tool: "file.write", Version: "v2", Digest: "d2", PolicyVersion: "p1", Verdict: verdict, Input: []byte(`{"path":"a"}`), Write: true,
	}
	if verdict != jig.VerdictAsk {
		return c, nil
	}
	return c, &jig.Pending{Kind: jig.PendingApproval, Tool: "file.write", Digest: "d2", ExpiresAt: noon().Add(time.Hour)}
}

// same returns the admission that the call has.
func same(s ledger.State) jig.Call {
	return jig.Call{
		ID: "1.1", Tool: "file.write", Version: s.Version, Digest: s.Call.Digest, PolicyVersion: s.Call.PolicyVersion, Verdict: s.Verdict,
		Input: s.Call.Input, Write: true,
	}
}

// readmit admits a call again that has not changed since it was read.
func readmit(s ledger.State, c jig.Call, asked *jig.Pending) (ledger.Transition, error) {
	return ledger.Readmit(s, same(s), c, asked)
}

// An old worker accepts a change of the input while a new one, whose tool has another contract, admits the call again. The change is kept.
func TestReadmit_KeepsWhatChangedInTheMeantime(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*ledger.State){
		"edited":         func(s *ledger.State) { s.Call.Input, s.Call.Digest = []byte(`{"path":"edited"}`), "d3" },
		"admitted again": func(s *ledger.State) { s.Version, s.Call.Digest = "v3", "d3" },
	} {
		for _, s := range []ledger.State{asking(jig.CallWaiting, openApproval()), asking(jig.CallReserved, approvedBy("d3"))} {
			was := same(s)
			alter(&s)
			for _, verdict := range []jig.Verdict{jig.VerdictAsk, jig.VerdictRun, jig.VerdictDeny} {
				c, asked := fresh(verdict)
				got, err := ledger.Readmit(s, was, c, asked)
				require.NoError(t, err)
				require.Zero(t, got, name)
			}
		}
	}
}

func TestReadmit_KeepsTheAdmission(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]ledger.State{
		"waiting":  asking(jig.CallWaiting, openApproval()),
		"approved": asking(jig.CallReserved, approvedBy("d1")),
		"reserved": writing(jig.CallReserved, 0),
	} {
		got, err := readmit(s, same(s), nil)
		require.NoError(t, err)
		require.Zero(t, got, "%s: the same admission again", name)
	}
	c, asked := fresh(jig.VerdictAsk)
	for _, status := range statuses() {
		if status == jig.CallWaiting || status == jig.CallReserved {
			continue
		}
		got, err := readmit(writing(status, 1), c, asked)
		require.NoError(t, err)
		require.Zero(t, got, "%s: only a call that has not begun can be admitted again", status)
	}
}

func TestReadmit_NoticesEveryChange(t *testing.T) {
	t.Parallel()
	s := writing(jig.CallReserved, 0)
	for name, alter := range map[string]func(*jig.Call){
		"version": func(c *jig.Call) { c.Version = "v2" },
		"digest":  func(c *jig.Call) { c.Digest = "d2" },
		"policy":  func(c *jig.Call) { c.PolicyVersion = "p2" },
		"input":   func(c *jig.Call) { c.Input = []byte(`{"path":"b"}`) },
		"verdict": func(c *jig.Call) { c.Verdict = jig.VerdictDeny },
	} {
		c := same(s)
		alter(&c)
		got, err := readmit(s, c, nil)
		require.NoError(t, err)
		require.NotNil(t, got.Readmits, name)
	}
}

func TestReadmit_AsksAgainIfTheApprovalDoesNotCoverTheCall(t *testing.T) {
	t.Parallel()
	for name, latest := range map[string]*approval.Record{"none": nil, "of another input": approvedBy("d0"), "open": openApproval()} {
		s := asking(jig.CallReserved, latest)
		got, err := readmit(s, same(s), &jig.Pending{Kind: jig.PendingApproval, Digest: "d1"})
		require.NoError(t, err)
		require.Equal(t, jig.CallWaiting, statusAfter(s, got), name)
		require.NotNil(t, got.Opens, name)
	}
}

func TestReadmit_ReplacesTheAdmission(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state   ledger.State
		verdict jig.Verdict
		want    jig.CallStatus
		told    []string
	}{
		"waits again": {
			asking(jig.CallWaiting, openApproval()), jig.VerdictAsk, jig.CallWaiting,
			[]string{"event approval.withdrawn", "event tool.needs_approval", "notice approval.requested", "audit withdrawn"},
		},
		"approved, waits again": {
			asking(jig.CallReserved, approvedBy("d1")), jig.VerdictAsk, jig.CallWaiting,
			[]string{"event approval.withdrawn", "event tool.needs_approval", "notice approval.requested", "audit withdrawn"},
		},
		"needs no approval any more": {
			asking(jig.CallWaiting, openApproval()), jig.VerdictRun, jig.CallReserved, []string{"event approval.withdrawn", "audit withdrawn"},
		},
		"denied":        {writing(jig.CallReserved, 0), jig.VerdictDeny, jig.CallDenied, []string{"event tool.denied"}},
		"refused":       {writing(jig.CallReserved, 0), jig.VerdictRefuse, jig.CallFailed, []string{"event tool.failed"}},
		"runs as other": {writing(jig.CallReserved, 0), jig.VerdictRun, jig.CallReserved, nil},
	} {
		c, asked := fresh(row.verdict)
		c.Status = jig.CallReserved // an open status does not count: the verdict decides
		got, err := readmit(row.state, c, asked)
		require.NoError(t, err)
		require.Equal(t, row.want, got.Readmits.Status, name)
		require.Equal(t, row.told, told(got), name)
		require.Equal(t, row.want.Final(), got.Readmits.Result != nil, name)
		if asked != nil {
			require.Equal(t, []string{"acme", "ses_1", "1.1"}, []string{got.Opens.Tenant, got.Opens.SessionID, got.Opens.Call}, name)
		}
		if row.state.Open != nil {
			require.Equal(t, "file.write changed since the call was admitted", got.Outcome.Reason)
		}
	}
}

func TestReadmit_UnderAGrantIsReserved(t *testing.T) {
	t.Parallel()
	c, asked := fresh(jig.VerdictAsk)
	asked.Grant = "grt_1"
	got, err := readmit(asking(jig.CallWaiting, openApproval()), c, asked)
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, got.Readmits.Status)
	require.Equal(t, []string{"event approval.withdrawn", "event tool.approved", "audit withdrawn"}, told(got))
}

func TestReadmit_NeedsAnApprovalToOpen(t *testing.T) {
	t.Parallel()
	c, _ := fresh(jig.VerdictAsk)
	_, err := readmit(writing(jig.CallReserved, 0), c, nil)
	require.Equal(t, jig.CodeInvalidInput, jig.AsError(err).Code)
}

func TestReadmit_InDoubt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		verdict    jig.Verdict
		idempotent bool
		unknown    bool
	}{
		"may be repeated":         {jig.VerdictAsk, true, false},
		"no longer idempotent":    {jig.VerdictAsk, false, true},
		"denied":                  {jig.VerdictDeny, true, true},
		"runs, idempotent":        {jig.VerdictRun, true, false},
		"runs, not idempotent":    {jig.VerdictRun, false, true},
		"refused, not idempotent": {jig.VerdictRefuse, false, true},
	} {
		s := asking(jig.CallReserved, approvedBy("d1"))
		s.Call.InDoubt, s.Idempotent = true, true
		c, asked := fresh(row.verdict)
		c.Idempotent = row.idempotent
		got, err := readmit(s, c, asked)
		require.NoError(t, err)
		if row.unknown {
			require.Nil(t, got.Readmits, name)
			requireUnknown(t, got, "cannot be repeated safely")
			require.Equal(t, approval.Expired, got.Outcome.Status, "the approval is withdrawn first")
			continue
		}
		require.NotNil(t, got.Readmits, name)
		if asked != nil {
			require.Zero(t, got.Opens.ExpiresAt, "expiry must not end a call that may have taken effect")
			require.Contains(t, got.Opens.Reasons[0], "never reported how it ended")
		}
	}
}

// Every status, before and after a person has spoken: as a write, as a read, and as a call that other calls make up.
func TestEarlier_Counts(t *testing.T) {
	t.Parallel()
	type row struct {
		status jig.CallStatus
		fence  int
		code   jig.Code
		doubt  bool
	}
	const silent, spoken = 0, 1
	counts := func(r row, read, composed bool) (is [2]bool) {
		e := ledger.Earlier{Call: jig.Call{Status: r.status, Fence: r.fence}, InDoubt: r.doubt}
		if r.code != "" {
			e.Error = &jig.Error{Code: r.code, Message: "no"}
		}
		is[silent] = e.Counts(read, composed)
		e.Message = 1
		is[spoken] = e.Counts(read, composed)
		e.Message, e.Answered = 0, true
		require.Equal(t, is[spoken], e.Counts(read, composed), "an answer is a person's word, like a message")
		return is
	}
	always, untilSpoken, never := [2]bool{true, true}, [2]bool{true, false}, [2]bool{false, false}
	for name, r := range map[string]struct {
		row
		write, read, composed [2]bool
	}{
		"waits":                      {row{status: jig.CallWaiting}, always, always, always},
		"reserved":                   {row{status: jig.CallReserved}, always, always, always},
		"runs":                       {row{status: jig.CallExecuting, fence: 1}, always, always, always},
		"unknown":                    {row{status: jig.CallUnknown, fence: 1}, always, always, always},
		"succeeded":                  {row{status: jig.CallSucceeded, fence: 1}, always, untilSpoken, always},
		"answered without running":   {row{status: jig.CallSucceeded}, untilSpoken, untilSpoken, untilSpoken},
		"denied":                     {row{status: jig.CallDenied, code: jig.CodeDenied}, untilSpoken, untilSpoken, untilSpoken},
		"denied after an attempt":    {row{status: jig.CallDenied, fence: 1, code: jig.CodeDenied}, untilSpoken, untilSpoken, untilSpoken},
		"expired":                    {row{status: jig.CallExpired, code: jig.CodeExpired}, untilSpoken, untilSpoken, untilSpoken},
		"canceled":                   {row{status: jig.CallCanceled, code: jig.CodeCanceled}, untilSpoken, untilSpoken, untilSpoken},
		"refused":                    {row{status: jig.CallFailed, code: jig.CodeUnavailable}, untilSpoken, never, untilSpoken},
		"failed":                     {row{status: jig.CallFailed, fence: 1, code: jig.CodeInternal}, always, untilSpoken, untilSpoken},
		"failed without effect":      {row{status: jig.CallFailed, fence: 1, code: jig.CodeConflict}, untilSpoken, untilSpoken, untilSpoken},
		"timed out":                  {row{status: jig.CallFailed, fence: 1, code: jig.CodeTimeout}, always, never, untilSpoken},
		"limited":                    {row{status: jig.CallFailed, fence: 1, code: jig.CodeRateLimited}, untilSpoken, never, untilSpoken},
		"unavailable":                {row{status: jig.CallFailed, fence: 1, code: jig.CodeUnavailable}, always, never, untilSpoken},
		"not found":                  {row{status: jig.CallFailed, fence: 1, code: jig.CodeNotFound}, untilSpoken, never, untilSpoken},
		"given up":                   {row{status: jig.CallFailed, fence: 1, code: jig.CodeOutcomeUnknown}, always, untilSpoken, untilSpoken},
		"canceled while it may have": {row{status: jig.CallCanceled, fence: 1, code: jig.CodeCanceled, doubt: true}, always, always, always},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, r.write, counts(r.row, false, false), "write")
			require.Equal(t, r.read, counts(r.row, true, false), "read")
			require.Equal(t, r.composed, counts(r.row, false, true), "composed")
		})
	}
}
