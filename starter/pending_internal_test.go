package starter

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// reviewed is an approval that needs several people.
func reviewed() jig.Pending {
	p := waitingCall()
	p.SessionID, p.RequestedBy, p.Agent, p.NextAt = "ses_1", "ana", "billing", noon.Add(30*time.Minute)
	p.Terms = &jig.Terms{
		Requirements: []jig.Requirement{
			{Rule: "pay/large", Approvers: jig.Approvers{Groups: []string{"finance"}}, Quorum: 2, Escalate: []jig.Escalation{
				{After: 30 * time.Minute, Approvers: jig.Approvers{People: []string{"dora"}}},
			}},
			{Rule: "pay/any", Quorum: 1},
		},
		NotRequester: true, OnExpiry: jig.ExpiryCancel,
	}
	p.Votes = []jig.Vote{{By: "ben", Claimed: true, Counts: []int{0, 1}, At: noon}}
	p.Delegations = []jig.Delegation{{From: "carla", To: "emil", At: noon, Counts: []int{0}}}
	return p
}

func TestPending_ShowsTerms(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, &fake{pending: []jig.Pending{reviewed()}}, nil, "approvals")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, `ses_1 3.1 file.write waits for approval
  write report.md
    path: report.md
  · a write asks
  requested by ana, agent billing
  needs 2 of group finance (pay/large); after 30m also dora
  needs 1 of anybody (pay/any)
  ana may not decide, having requested it
  approved so far by ben (claimed): 1 of 2 approvals by group finance, 1 missing
  carla delegated to emil
  from `+moment(noon.Add(30*time.Minute))+`, dora may also decide
  expires `+moment(noon.Add(time.Hour))+`, and then the session is canceled
`, got.stdout)
	require.Contains(t, got.stderr, "jig approve ses_1 3.1\n")
	require.Contains(t, got.stderr, "jig deny ses_1 3.1 --reason …\n")
	require.Contains(t, got.stderr, "jig delegate ses_1 3.1 --to …\n")
	require.Contains(t, got.stderr, "temporal workflow signal")
}

func TestPending_Facts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(p *jig.Pending)
		has    string
	}{
		"anybody":    {func(p *jig.Pending) { p.Terms = nil }, "anybody may decide"},
		"nobody":     {func(p *jig.Pending) { p.RequestedBy = "" }, "the requester may not decide, having requested it"},
		"reminder":   {func(p *jig.Pending) { p.NextAt = noon.Add(time.Minute) }, "next reminder " + moment(noon.Add(time.Minute))},
		"fails":      {func(p *jig.Pending) { p.Terms.OnExpiry = jig.ExpiryFail }, "and then the session fails"},
		"one line":   {func(p *jig.Pending) { p.Agent = "a\n\x1b[31mb" }, "agent a [31mb"},
		"enough":     {func(p *jig.Pending) { p.Terms = nil }, ": nothing is missing"},
		"reconciler": {func(p *jig.Pending) { p.Kind = jig.PendingReconcile }, "needs 2 of group finance"},
	} {
		p := reviewed()
		tt.change(&p)
		require.Contains(t, newApp("jig", nil, nil, nil, nil).pendingText(palette{}, p), tt.has, name)
		require.Contains(t, pendingInWords(p), tt.has, "%s: on the terminal, too", name)
	}
	p := waitingCall()
	p.Kind = jig.PendingReconcile
	text := newApp("jig", nil, nil, nil, nil).pendingText(palette{}, p)
	require.Contains(t, text, "3.1 file.write: outcome unknown")
	require.NotContains(t, text, "anybody may decide", "the tenant's settings decide, which the command does not know")
}

func TestQuestionsAreShown(t *testing.T) {
	t.Parallel()
	p := waitingCall()
	p.Kind, p.Tool, p.SessionID = jig.PendingQuestion, "person.ask", "ses_1"
	p.Question = &jig.Question{Text: "Which one?\nSay \x1b[31mso.", Options: values(`{"id": 7}`, `null`), Schema: json.RawMessage(`{"type":["object","null"]}`)}
	got := jigCLI(t, &fake{pending: []jig.Pending{p}}, nil, "approvals")
	require.Contains(t, got.stdout, "3.1 person.ask asks a person\n  Which one?\n  Say  [31mso.\n    1. {\"id\": 7}\n    2. null\n"+
		"  answer schema: {\"type\":[\"object\",\"null\"]}\n")
	require.NotContains(t, got.stdout, "path: report.md", "the question replaces the input")
	require.Contains(t, got.stderr, `jig answer ses_1 3.1 '{"id": 7}|null'`)
	require.Contains(t, got.stderr, "jig deny ses_1 3.1 --reason …")
}

func TestPending_WithAKeyShowsNoUnsignedSignal(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, &fake{pending: []jig.Pending{reviewed()}}, func(a *app) { a.env[signingKeySetting] = "ana.key" }, "approvals")
	require.Contains(t, got.stderr, "jig approve ses_1 3.1\n")
	require.NotContains(t, got.stderr, "temporal workflow signal", "the signal would need a token")
}

func TestEventsOfApprovalsAreReadable(t *testing.T) {
	t.Parallel()
	until, err := time.Parse(time.RFC3339, "2026-01-03T12:00:00Z")
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		kind jig.EventType
		data string
		want string
	}{
		"voted": {
			jig.EventApprovalVoted, `{"by":"ben","claimed":true,"note":"","digest":"d","missing":"1 of 2 approvals by group finance, 1 missing"}`,
			"approved in part · 1 of 2 approvals by group finance, 1 missing (by ben, claimed)",
		},
		"delegated":  {jig.EventApprovalDelegated, `{"by":"ana","claimed":false,"to":"ben","note":"he knows"}`, "approval delegated · to ben: he knows (by ana)"},
		"no note":    {jig.EventApprovalDelegated, `{"by":"ana","to":"ben"}`, "approval delegated · to ben (by ana)"},
		"reminded":   {jig.EventApprovalReminded, `{"due":"2026-01-02T12:00:00Z","missing":"0 of 1 approvals by ben, 1 missing"}`, "still waits for approval · 0 of 1 approvals by ben, 1 missing"},
		"escalated":  {jig.EventApprovalEscalated, `{"missing":"m","approvers":{"people":["dora"],"groups":["leads"]}}`, "more people may approve · now also dora or group leads"},
		"edited":     {jig.EventToolEdited, `{"by":"ana","edited":{"before":{},"after":{"n":1}},"missing":"0 of 1 approvals by ben, 1 missing"}`, `changed: waits for a new approval · changed to {"n":1}; 0 of 1 approvals by ben, 1 missing (by ana)`},
		"approved":   {jig.EventToolApproved, `{"by":"ana","edited":{"after":{"n":1}}}`, `approved · changed to {"n":1} (by ana)`},
		"covered":    {jig.EventToolApproved, `{"grant":"grt_1","digest":"d"}`, "approved · covered by grt_1"},
		"asked":      {jig.EventToolAsked, `{"kind":"question","summary":"cut","question":{"question":"Which one?"}}`, "asks a person · Which one?"},
		"answered":   {jig.EventToolAnswered, `{"by":"ana","claimed":true,"note":"","value":"the red one"}`, "answered · the red one (by ana, claimed)"},
		"a number":   {jig.EventToolAnswered, `{"by":"ana","value":7}`, "answered · 7 (by ana)"},
		"grant":      {jig.EventGrantCreated, `{"grant":"grt_1","by":["ana","ben"],"agent":"docs","when":"true","max_uses":1,"expires_at":"2026-01-03T12:00:00Z"}`, "standing approval given · grt_1: 1 call until " + moment(until) + " (by ana, ben)"},
		"grant when": {jig.EventGrantCreated, `{"grant":"grt_1","by":["ana"],"when":"input.n < 3","max_uses":3,"expires_at":"2026-01-03T12:00:00Z"}`, "3 calls until " + moment(until) + ", when input.n < 3 (by ana)"},
		"grant used": {jig.EventGrantUsed, `{"grant":"grt_1","by":["ana","ben"],"used":2,"max_uses":10}`, "standing approval used · grt_1: 2 of 10 calls (by ana, ben)"},
		"paused":     {jig.EventSessionPaused, `{"by":"ana","claimed":true,"reason":"look first"}`, "session paused · look first (by ana, claimed)"},
		"resumed":    {jig.EventSessionResumed, `{"by":"ana","claimed":false,"reason":""}`, "session resumed · by ana"},
		"odd data":   {jig.EventApprovalVoted, `{"by":7}`, "approved in part"},
		"custom":     {jig.EventCustom + "sent", `{"to":5,"value":"x","summary":"three letters"}`, "custom sent · three letters"},
	} {
		line := newApp("jig", nil, nil, nil, nil).eventLine(palette{}, jig.Event{Type: tt.kind, At: noon, Data: json.RawMessage(tt.data)})
		require.Contains(t, line, tt.want, name)
		require.NotContains(t, line, "\n", name)
	}
}
